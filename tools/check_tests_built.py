#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a test file of the tree is compiled by no target, or is a script that ctest does not run.

check_tests_built.py BUILD     BUILD is a configured build folder with tests, such as build/dev

CMake finds tests by their names, but only in the folders of modules that are declared. A test elsewhere would never
run, and no other test would notice.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "apps", "sim", "tests", "bench")
NAME = re.compile(r"_(test|fuzz|tsan)\.(c|cpp|py)$")


def tests_of_tree() -> list[pathlib.Path]:
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))
    return sorted(file for file in files if NAME.search(file.name))


def compiled(build: pathlib.Path) -> set[pathlib.Path]:
    commands = json.loads((build / "compile_commands.json").read_text())
    files = {(pathlib.Path(command["directory"]) / command["file"]).resolve() for command in commands}
    for joined in [file for file in files if file.name.startswith("unity_")]:
        files |= {pathlib.Path(name).resolve() for name in re.findall(r'#include "([^"]+)"', joined.read_text())}
    return files


def entries(build: pathlib.Path) -> str:
    return "\n".join(file.read_text() for file in build.rglob("CTestTestfile.cmake"))


def problems(build: pathlib.Path) -> list[str]:
    sources, tests = compiled(build), entries(build)
    bad = []
    for file in tests_of_tree():
        name = file.relative_to(ROOT)
        if file.stem.endswith("_fuzz"):  # compiled by the preset fuzz, run by the others
            if file not in sources and not re.search(rf"\bfuzz_{file.stem}\b", tests):
                bad.append(f"{name}: no fuzz target; its folder must be a module of gantry_module()")
        elif file.suffix == ".py":
            if str(file) not in tests:
                bad.append(f"{name}: no add_test() runs it")
        elif file not in sources:
            bad.append(f"{name}: no target compiles it")
    return bad


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    bad = problems(pathlib.Path(sys.argv[1]).resolve())
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
