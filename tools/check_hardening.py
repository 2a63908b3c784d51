#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_hardening.py FILE... [--link-only FILE...]: fails if a program or library lacks what Debian hardens its packages with.

Position independent, RELRO with BIND_NOW, no executable stack, no text relocations. Stack protector and
FORTIFY are looked for in the code of our own functions: a static program always has __stack_chk_fail, because
the C library in it was built with it. After --link-only the code is not looked at: cmake/GantryFenceLibrary.cmake says why the
fence has no stack protector."""
import re
import subprocess
import sys

OWN = re.compile(r"6gantry")  # the mangled namespace
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
CALL = re.compile(r"\b(?:call|jmp)\s.*<([^>+]+)")
LINK_ONLY = "--link-only"
LEAST_PROTECTED = 0.05  # of our functions; -fstack-protector-strong protects those with arrays
# FORTIFY replaces most calls of these.
REPLACED = {"printf", "fprintf", "sprintf", "snprintf", "vsnprintf", "realpath", "readlink", "strcpy", "strcat", "strncpy"}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout


def linked_badly(path: str) -> list[str]:
    text = output("readelf", "-hlWd", path)
    stack = re.search(r"GNU_STACK(?:\s+0x[0-9a-f]+){5}\s+(\S+)", text)
    problems = {
        "it is not position independent": not re.search(r"Type:\s+DYN", text),
        "it has no GNU_RELRO segment": "GNU_RELRO" not in text,
        "its symbols are not bound at its start (-z now)": not re.search(r"BIND_NOW|Flags:.*\bNOW\b", text),
        "its stack is executable": stack is None or "E" in stack[1],
        "its code is relocated": "TEXTREL" in text,
    }
    return [problem for problem, found in problems.items() if found]


def calls(path: str) -> dict[str, set[str]]:
    """Our own functions, each with what it calls."""
    found: dict[str, set[str]] = {}
    into: set[str] | None = None
    for line in output("objdump", "-d", "--no-show-raw-insn", path).splitlines():
        if function := FUNCTION.match(line):
            into = found.setdefault(function[1], set()) if OWN.search(function[1]) else None
        elif into is not None and (call := CALL.search(line)):
            into.add(call[1].split("@")[0])
    return found


def main() -> int:
    failed = False
    split = sys.argv.index(LINK_ONLY) if LINK_ONLY in sys.argv else len(sys.argv)
    for path in sys.argv[split + 1:]:
        problems = linked_badly(path)
        print(f"{path}: " + ("; ".join(problems) or "linked as it should be"))
        failed = failed or bool(problems)
    for path in sys.argv[1:split]:
        problems = linked_badly(path)
        functions = calls(path)
        protected = sum("__stack_chk_fail" in called for called in functions.values())
        every = set().union(*functions.values())
        checked = {name for name in every if re.fullmatch(r"__\w+_chk", name)}
        if not functions:
            problems.append("it has no function of ours with a name: check it before it is stripped")
        elif protected < LEAST_PROTECTED * len(functions):
            problems.append(f"the stack protector is in {protected} of {len(functions)} functions")
        elif not checked and every & REPLACED:
            problems.append(f"{', '.join(sorted(every & REPLACED))} are called, but no checked variant (__*_chk): it has no FORTIFY")
        print(f"{path}: " + ("; ".join(problems) or f"{protected} of {len(functions)} functions with stack protector, {', '.join(sorted(checked)) or 'nothing for FORTIFY'}"))
        failed = failed or bool(problems)
    return 1 if failed or len(sys.argv) < 2 else 0


sys.exit(main())
