#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every walk-through and every decision record has a number that no other file has, and its folder's README lists it.
A decision number without a record is explained there."""
import pathlib
import re
import unittest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def numbered(folder: str) -> dict[str, list[str]]:
    """File names by the number that they begin with."""
    found: dict[str, list[str]] = {}
    for path in sorted((DOCS / folder).glob("[0-9]*.md")):
        found.setdefault(path.name.split("-")[0], []).append(path.name)
    return found


def listed(folder: str) -> list[str]:
    """Files of the folder that its README links to."""
    return re.findall(r"\]\((\d[\w.-]*\.md)\)", (DOCS / folder / "README.md").read_text())


class Numbering(unittest.TestCase):
    def test_no_number_is_used_twice(self) -> None:
        for folder in ("walkthroughs", "decisions"):
            with self.subTest(folder):
                self.assertEqual([names for names in numbered(folder).values() if len(names) > 1], [])

    def test_readme_lists_every_file_once(self) -> None:
        for folder in ("walkthroughs", "decisions"):
            with self.subTest(folder):
                self.assertEqual(sorted(listed(folder)), [name for names in numbered(folder).values() for name in names])

    def test_headings_have_the_number_of_the_file(self) -> None:
        for folder in ("walkthroughs", "decisions"):
            for number, (name, *_) in numbered(folder).items():
                with self.subTest(name):
                    self.assertTrue((DOCS / folder / name).read_text().startswith(f"# {number}: "))

    def test_missing_decision_numbers_are_explained(self) -> None:
        used = {int(number) for number in numbered("decisions")}
        missing = set(range(1, max(used) + 1)) - used
        gaps = (DOCS / "decisions/README.md").read_text().split("## Gaps")[1]
        self.assertEqual({int(number) for number in re.findall(r"^- (\d{4}):", gaps, re.MULTILINE)}, missing)


if __name__ == "__main__":
    unittest.main()
