#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SECURITY.md's table of attacks names tests that are there and that name the weakness themselves."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
WANTED = ("CVE-2024-0132", "CVE-2024-0133", "CVE-2025-23359", "CVE-2025-23266", "CVE-2025-23267", "CVE-2024-0134", "CVE-2024-0135",
          "CVE-2024-0136", "CVE-2024-0137", "CVE-2026-24260", "CVE-2021-1056")


def spelled_out(path: str) -> list[str]:
    braces = re.search(r"\{([^}]*)\}", path)
    return [path[:braces.start()] + word + path[braces.end():] for word in braces[1].split(",")] if braces else [path]


def words_of(path: pathlib.Path) -> str:
    text = path.read_text()
    if "hostile_images" in text:  # the images that this lane uses, each with its label
        images = (TOP / "tests/e2e/hostile_images.py").read_text()
        text += "".join(line for line in images.splitlines() if "CVE-" in line)
    return text


problems, seen = [], set()
for line in (TOP / "SECURITY.md").read_text().splitlines():
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if len(cells) != 3 or not line.startswith("|") or "tests/e2e" not in cells[2]:
        continue
    names = re.findall(r"CVE-\d+-\d+", cells[0])
    seen.update(names)
    for path in (TOP / each for code in re.findall(r"`([^`]*)`", cells[2]) if "/" in code for each in spelled_out(code)):
        if not path.exists():
            problems.append(f"{cells[0]}: there is no {path}")
        elif path.is_file():
            problems += [f"{path} does not name {name}" for name in names if name not in words_of(path)]
problems += [f"SECURITY.md has no test of {name}" for name in WANTED if name not in seen]
print("\n".join(problems) or f"{len(seen)} weaknesses, each with its tests")
sys.exit(1 if problems else 0)
