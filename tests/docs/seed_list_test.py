#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/walkthroughs/README.md lists every problem of the notes with the heading that answers it, and every command that is not run with its
reason. The lists are compared with the pages, and with what the notes contain (seed_problems.txt, seed_commands.txt)."""
import copy
import re
import sys
import unittest

sys.dont_write_bytecode = True
import seed_lists  # noqa: E402
from seed_lists import FOLDER, LINK, README, rows, sections, target  # noqa: E402

TOP = FOLDER.parents[1]
MAX_SHOWN = 20


def without(readme: str, row: seed_lists.Row) -> str:
    return "\n".join(line for line in readme.splitlines() if not line.startswith(f"| {row.seed} | {row.text} | "))


class SeedLists(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.readme, cls.pages = README.read_text(), seed_lists.pages()
        cls.problems, cls.commands = seed_lists.problems(), seed_lists.commands()

    def test_every_problem_has_a_row_whose_heading_answers_it(self) -> None:
        self.assertEqual(seed_lists.unanswered(self.readme, self.problems), [])
        self.assertEqual([(row.seed, row.text) for row in rows(self.readme)], [(one.seed, one.text) for one in self.problems])

    def test_a_removed_row_is_noticed(self) -> None:
        for row in rows(self.readme):
            self.assertNotEqual(seed_lists.unanswered(without(self.readme, row), self.problems), [], row)

    def test_an_answer_elsewhere_is_noticed(self) -> None:
        for row in rows(self.readme):
            moved = self.readme.replace(f"| {row.text} |", "| something else |")
            self.assertNotEqual(seed_lists.unanswered(moved, self.problems), [], row)
            elsewhere = self.readme
            for answer in row.answers:
                elsewhere = elsewhere.replace(f"({answer})", "(README.md#how-to-read-a-page)")
            self.assertNotEqual(seed_lists.unanswered(elsewhere, self.problems), [], row)

    def test_every_command_is_run_or_listed_with_a_reason(self) -> None:
        self.assertEqual(seed_lists.uncovered(self.pages, self.commands)[:MAX_SHOWN], [])

    def test_the_list_is_that_of_the_pages(self) -> None:
        self.assertEqual(seed_lists.with_not_run(self.readme, self.pages), self.readme, "type tools/update_not_run")

    def test_a_removed_line_is_noticed(self) -> None:
        for number, page in enumerate(self.pages):
            for which, entry in enumerate(page.not_run):
                fewer = copy.deepcopy(self.pages)
                del fewer[number].not_run[which]
                self.assertNotEqual(seed_lists.uncovered(fewer, self.commands), [], entry.commands)
                self.assertNotEqual(seed_lists.with_not_run(self.readme, fewer), self.readme, entry.commands)
                self.assertNotIn("".join(f"{line}\n" for line in entry.lines), seed_lists.not_run(fewer))

    def test_a_command_that_is_no_longer_run_is_noticed(self) -> None:
        for seed, command in self.commands:
            fewer = copy.deepcopy(self.pages)
            steps = [step for page in fewer if seed_lists.seed_of(page) == seed
                     for step in page.steps + [step for block in page.lanes for step in block.steps]
                     if command in [seed_lists.as_typed(one) for one in step.commands()]]
            for step in steps:
                step.script = ""
            self.assertEqual(bool(steps), bool(seed_lists.uncovered(fewer, self.commands)), command)

    def test_every_page_counts_right(self) -> None:
        for page in self.pages:
            self.assertEqual(str(page.said), str(page.count()), page.path.name)

    def test_every_page_has_a_runner(self) -> None:
        """The runners of machines and clusters take every page by its name; a virtual machine host runs the pages that its checks name."""
        everything = "[0-9]*.md"
        self.assertIn(f"docs/walkthroughs/{everything}", (TOP / "tests/CMakeLists.txt").read_text())
        self.assertIn(f'"docs/walkthroughs").glob("{everything}")', (TOP / "tests/cluster/scenarios/walkthroughs.py").read_text())
        checks = "".join(path.read_text() for path in (TOP / "tests/vm/checks").glob("*.sh"))
        for page in self.pages:
            if page.host:
                self.assertIn(f"docs/walkthroughs/{page.path.name}", checks)

    def test_every_lane_block_has_a_test_that_runs_it(self) -> None:
        for page in self.pages:
            for block in page.lanes:
                found = seed_lists.runners(block.name)
                self.assertEqual(len(found), 1, f"{page.path.name}: lane {block.name}")
                missing = [command for command in block.commands() if not seed_lists.lane_runs(seed_lists.source(found[0]), page, command)]
                self.assertEqual(missing, [], f"{page.path.name}: lane {block.name}")

    def test_links_lead_to_headings(self) -> None:
        for page in (README, *(page.path for page in self.pages)):
            for link in LINK.findall(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)):
                path, anchor = target(page, link)
                if not link.startswith("https:"):
                    self.assertTrue(path.exists(), f"{page.name}: {link}")
                    self.assertTrue(not anchor or anchor in sections(path), f"{page.name}: {link}")

    def test_the_list_names_the_equivalent_of_the_operators_repository(self) -> None:
        [add] = re.findall(r"^helm repo add .*$", (TOP / "docs/install.md").read_text(), re.M)
        [page] = [page for page in self.pages if seed_lists.seed_of(page) == "000"]
        self.assertIn(f"`{add}`", "\n".join(line for entry in page.not_run for line in entry.lines))


class Reading(unittest.TestCase):
    def test_a_lane_has_a_command_or_reads_the_page(self) -> None:
        page = seed_lists.pages()[0]
        lane = f'TEXT = """RUN  a && \\\\\n    b\n"""\nrun("docker build .")\n'
        self.assertEqual([seed_lists.lane_runs(lane, page, command) for command in ("RUN a && b", "docker build .", "docker pull x")], [True, True, False])
        self.assertTrue(seed_lists.lane_runs(f"PAGE = {page.path.name!r}", page, "docker pull x"))

    def test_anchors_are_those_of_github(self) -> None:
        for heading, anchor in (("NUMA node -1", "numa-node--1"), ("daemon.json, word for word", "daemonjson-word-for-word"),
                                ('user = "root:video"', "user--rootvideo"), ("`docker run --gpus all`", "docker-run---gpus-all")):
            self.assertEqual(seed_lists.slug(heading), anchor)

    def test_dots_at_the_end_of_an_entry_are_any_rest(self) -> None:
        self.assertTrue(seed_lists.lists("helm install --wait ...", "helm install --wait x"))
        self.assertFalse(seed_lists.lists("helm install", "helm install --wait x"))
        self.assertFalse(seed_lists.lists("helm ...", "helmet"))


if __name__ == "__main__":
    unittest.main()
