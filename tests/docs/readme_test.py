#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md stays short enough to be read, and docs/README.md lists every page."""
import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
LINES = 120  # fewer


def links(page: pathlib.Path) -> set[pathlib.Path]:
    """The files and folders of the tree that a page links to."""
    found = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    return {(page.parent / link).resolve() for link in found}


class Readme(unittest.TestCase):
    def test_is_short(self) -> None:
        self.assertLess(len((TOP / "README.md").read_text().splitlines()), LINES)

    def test_links_lead_somewhere(self) -> None:
        for page in (TOP / "README.md", TOP / "docs/README.md"):
            self.assertEqual([str(link) for link in links(page) if not link.exists()], [], page)

    def test_docs_lists_every_page(self) -> None:
        pages = set((TOP / "docs").glob("*.md")) - {TOP / "docs/README.md"}
        listed = links(TOP / "docs/README.md")
        self.assertEqual(sorted(str(page.relative_to(TOP)) for page in pages - listed), [])


unittest.main()
