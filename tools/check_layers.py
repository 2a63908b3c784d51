#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every #include "module/..." below src/ with the DEPS of its gantry_module()."""
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"


def declared(module: pathlib.Path) -> set[str]:
    text = (module / "CMakeLists.txt").read_text()
    deps = re.findall(r"\bDEPS\s+([a-z_ \n]+)", text)
    return {name for group in deps for name in group.split()}


def closure(name: str, direct: dict[str, set[str]]) -> set[str]:
    seen, todo = set(), [name]
    while todo:
        for dep in direct.get(todo.pop(), ()):
            if dep not in seen:
                seen.add(dep)
                todo.append(dep)
    return seen


def main() -> int:
    direct = {m.name: declared(m) for m in SRC.iterdir() if (m / "CMakeLists.txt").exists()}
    bad = [f"{name}: depends on itself" for name in direct if name in closure(name, direct)]
    for file in sorted(SRC.rglob("*.[ch]*")):
        if file.suffix not in (".cpp", ".hpp", ".h", ".c"):
            continue
        module = file.relative_to(SRC).parts[0]
        allowed = closure(module, direct) | {module}
        if file.stem.endswith("_test"):
            allowed.add("sim")  # simulated machines are what tests run on
        for include in re.findall(r'^#include "([a-z_]+)/[^"]*"', file.read_text(), re.M):
            if include in direct and include not in allowed:
                bad.append(f"{file.relative_to(SRC)}: includes {include}, not among DEPS of {module}")
            elif include == "support" and not file.stem.endswith("_test"):
                bad.append(f"{file.relative_to(SRC)}: includes test support")
    print("\n".join(bad) or f"{len(direct)} modules, all includes follow DEPS")
    return 1 if bad else 0


sys.exit(main())
