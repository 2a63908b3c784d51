#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader of walk-throughs: what it counts, what it compares, and that it can say no."""
import pathlib
import tempfile
import unittest

from walkthrough import BadPage, Count, commands_of, lane_of, matches, read_page

PAGE = """# A page
Machine: `k80`

```seed
nvidia-smi
```

```sh run
nvidia-smi -L
```

```output
GPU 0: ...
```

## Not run

- `zypper ref`, `zypper in x`: no network.
- `kubectl get pods`: no cluster.

Count: 1 commands run, 1 compared, 3 listed with a reason.
"""


def page(text: str):
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "page.md"
        path.write_text(text)
        return read_page(path)


class Walkthrough(unittest.TestCase):
    def test_a_page_has_its_machine_its_commands_and_its_list(self):
        read = page(PAGE)
        self.assertEqual([step.machine for step in read.steps], ["k80", ""])
        self.assertEqual(read.steps[1].expected, "GPU 0: ...\n")
        self.assertEqual(read.count(), Count(1, 1, 3))
        self.assertEqual(read.said, read.count())

    def test_a_command_without_output_is_run_and_not_compared(self):
        self.assertEqual(page(PAGE.replace("```output\nGPU 0: ...\n```\n", "")).count(), Count(1, 0, 3))

    def test_what_the_page_says_of_itself_may_be_wrong(self):
        read = page(PAGE.replace("Count: 1", "Count: 2"))
        self.assertNotEqual(read.said, read.count())

    def test_pages_that_break_the_format_are_refused(self):
        for wrong in (PAGE.replace("```seed", "```bash"), PAGE.replace("Count:", "Sum:"), PAGE.replace("```sh run", "```text"),
                      PAGE.replace("`: no cluster.", "`"), PAGE.removesuffix("Count: 1 commands run, 1 compared, 3 listed with a reason.\n") + "```text\n"):
            with self.assertRaises(BadPage):
                page(wrong)

    def test_a_page_about_a_cluster_says_so_and_names_no_machine(self):
        read = page(PAGE.replace("Machine: `k80`", "Cluster: `h200x8`"))
        self.assertEqual((read.cluster, len(read.steps)), ("h200x8", 1))
        self.assertEqual(page(PAGE).cluster, "")
        with self.assertRaises(BadPage):
            page(PAGE + "Cluster: `h200x8`\n")

    def test_a_page_about_a_virtual_machine_host_says_so(self):
        read = page(PAGE.replace("Machine: `k80`", "Host: `tests/vm/host.yaml`"))
        self.assertEqual((read.host, len(read.steps)), ("tests/vm/host.yaml", 1))
        self.assertEqual(page(PAGE).host, "")
        with self.assertRaises(BadPage):
            page(PAGE + "Host: `tests/vm/host.yaml`\n")

    def test_a_block_of_a_lane_is_run_by_that_lane(self):
        block = "```lane image\n$ docker build . \\\n> -t one\nbuilt\n...\n$ docker images\n```\n"
        read = page(PAGE + block + block.replace("image\n", "other\n", 1))
        self.assertEqual([one.name for one in read.lanes], ["image", "other"])
        self.assertEqual(read.lanes[0].commands(), ["docker build . -t one", "docker images"])
        self.assertEqual((read.run(), read.count()), (["nvidia-smi -L"], Count(1, 1, 3)))
        part = lane_of(read, "image")
        self.assertEqual([(step.script, step.expected) for step in part.steps],
                         [("docker build . \\\n-t one\n", "built\n...\n"), ("docker images\n", "")])
        self.assertEqual(part.said, part.count())

    def test_a_block_of_a_lane_may_be_a_file(self):
        block = "```lane image Dockerfile\nFROM x\nRUN a && \\\n    b\n```\n"
        read = page(PAGE + block)
        self.assertEqual((read.lanes[0].name, read.lanes[0].commands()), ("image", ["FROM x", "RUN a &&     b"]))

    def test_other_pages_are_read_for_the_blocks_that_are_run(self):
        with tempfile.TemporaryDirectory() as work:
            path = pathlib.Path(work) / "page.md"
            path.write_text("# A page\n\n```sh\nls\n```\n\n```sh run\nnvidia-smi -L\n```\n\n```output\nGPU 0: ...\n```\n\n```yaml\na: b\n```\n")
            read = read_page(path, strict=False)
            self.assertEqual((read.run(), read.steps[0].expected), (["nvidia-smi -L"], "GPU 0: ...\n"))
            with self.assertRaises(BadPage):
                read_page(path)

    def test_a_command_begins_a_line_and_has_its_continuations(self):
        self.assertEqual(commands_of("# a remark\none \\\n  --flag\ntwo | three\n"), ["one   --flag", "two | three"])
        self.assertEqual(commands_of("cat > file <<'END'\nnot one\nEND\ntwo\n"), ["cat > file <<'END'", "two"])

    def test_an_entry_of_the_list_has_its_commands_and_its_lines(self):
        read = page(PAGE.replace("no network.", "no\n  network."))
        self.assertEqual([entry.commands for entry in read.not_run], [["zypper ref", "zypper in x"], ["kubectl get pods"]])
        self.assertEqual(read.not_run[0].lines, ["- `zypper ref`, `zypper in x`: no", "  network."])

    def test_dots_stand_for_anything(self):
        self.assertTrue(matches("a\n...\nd\n", "a\nb\nc\nd\n"))
        self.assertTrue(matches("a\n...\nd\n", "a\nd\n"))
        self.assertTrue(matches("took ... ms", "took 12 ms   \n"))
        self.assertFalse(matches("took ... ms", "took\n ms\n"))

    def test_everything_else_is_itself(self):
        self.assertFalse(matches("a.c", "abc"))
        self.assertFalse(matches("a", "a\nb"))
        self.assertFalse(matches("a\nb", "a"))
        self.assertFalse(matches("", "a"))


if __name__ == "__main__":
    unittest.main()
