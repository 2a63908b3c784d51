#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hosts of tests/vm/run: every file in checks/ is a topic of one of them, so that none is forgotten, and README.md names each."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def program():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("vm_run", str(HERE / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("vm_run", loader))
    loader.exec_module(module)
    return module


PROGRAM = program()
HOSTS = PROGRAM.HOSTS


class Hosts(unittest.TestCase):
    def test_every_topic_is_in_a_host_and_has_a_file(self):
        topics = {topic for boots in HOSTS.values() for boot in boots for topic in boot["topics"]}
        self.assertEqual(topics, {path.stem for path in (HERE / "checks").glob("*.sh")})

    def test_the_readme_names_every_host_with_its_kernels(self):
        rows = dict(re.findall(r"(?m)^\| ([A-Z]) \| ([\d.]+)", (HERE / "README.md").read_text()))
        self.assertEqual(rows, {name: boots[0]["kernel"].removesuffix("-own-key") for name, boots in HOSTS.items()})

    def test_a_run_says_what_it_leaves_out(self):
        self.assertEqual(PROGRAM.left_out(list(HOSTS)), [])
        left = PROGRAM.left_out([*set(HOSTS) - {"A", "J"}, "A:machine,faults"])
        self.assertEqual(left, ["A:driver,vfio,vgpu,gantry_vfio", "J:eight_gpus"])

    def test_what_failed_is_said_again_at_the_end(self):
        console = PROGRAM.Console(HERE / "monitor")
        with contextlib.redirect_stdout(io.StringIO()):
            for line in ("ok      there is /dev/kvm", "FAILED  a guest sees the VF", "ok      the kernel has no warning"):
                console.line(line)
        self.assertEqual((console.passed, console.failures, console.last_check), (2, ["a guest sees the VF"], "the kernel has no warning"))


if __name__ == "__main__":
    unittest.main()
