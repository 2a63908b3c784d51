#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check_docs: what it rejects, what it leaves alone, and that wrapping changes no word."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("check_docs", str(TOP / "tools/check_docs"))
check_docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_docs", loader))
loader.exec_module(check_docs)

WORDS = "word " * 30


def problems(text: str) -> list[int]:
    return [number for number, _ in check_docs.check_markdown(text.splitlines())]


def wrapped(text: str) -> list[str]:
    return check_docs.wrap_markdown(text.splitlines())


class CheckDocs(unittest.TestCase):
    def test_a_long_line_and_a_long_cell_are_problems(self):
        self.assertEqual(problems(f"short\n{WORDS}\n"), [2])
        self.assertEqual(problems(f"| a | {'x' * 81} |\n| a | {'x' * 80} |\n"), [1])

    def test_code_links_and_generated_tables_are_left_alone(self):
        self.assertEqual(problems(f"```sh\n{WORDS}\n```\n"), [])
        self.assertEqual(problems(f"[a page]({'x' * 120})\n"), [])
        self.assertEqual(problems(f"<!-- table -->\n| {'x' * 90} |\n<!-- end of table -->\n"), [])

    def test_a_line_after_a_code_block_is_checked_again(self):
        self.assertEqual(problems(f"```\ncode\n```\n{WORDS}\n"), [4])

    def test_wrapping_ends_the_problem_and_keeps_the_words(self):
        for text in (WORDS, f"- {WORDS}", f"1. {WORDS}\n   {WORDS}", f"# Title\n\n{WORDS}\n\n{WORDS}"):
            lines = wrapped(text)
            self.assertEqual(problems("\n".join(lines)), [])
            self.assertEqual(" ".join(lines).split(), text.split())

    def test_wrapping_indents_a_list_item_and_keeps_code_in_one_piece(self):
        lines = wrapped(f"- {'x' * 85} `gantry share run --memory 10GiB`")
        self.assertEqual(lines[1], "  `gantry share run --memory 10GiB`")
        self.assertEqual(wrapped(f"- `src/doctor`: `gantry doctor` {WORDS}")[0][:40], "- `src/doctor`: `gantry doctor` word wor")

    def test_wrapping_leaves_what_walk_throughs_need_in_one_line(self):
        count = "Count: 20 commands run, 19 compared, 3 listed with a reason. " + WORDS
        self.assertEqual(wrapped(count), [count])
        commands = "- " + ", ".join(f"`command number {i}`" for i in range(8)) + ": because"
        self.assertEqual(wrapped(commands), [commands])

    def test_a_man_page_is_checked_without_its_requests(self):
        self.assertEqual([n for n, _ in check_docs.check_man_page([f".B {WORDS}", WORDS])], [2])


if __name__ == "__main__":
    unittest.main()
