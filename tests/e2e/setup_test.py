#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/setup on machines that exist only as apt's and dpkg's files: which packages each purpose installs, and that an engine of
another source is never removed. apt and dpkg are the real ones; nothing is installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("bash", "env", "apt-get", "dpkg", "dpkg-query", "awk", "paste", "grep", "mktemp", "rm", "id", "tail")
ENGINES = {"runc", "crun", "containerd", "docker.io", "podman", "uidmap", "prometheus"}
# The relations of Debian's and Docker's own packages.
RELATIONS = {
    "docker.io": "Depends: containerd (>= 0.9), runc (>= 0.9)\nConflicts: docker-ce\n",
    "containerd": "Depends: runc (>= 0.9)\n",
    "containerd.io": "Provides: containerd, runc\nConflicts: containerd, runc\nReplaces: containerd, runc\n",
    "docker-ce": "Depends: containerd.io\n",
}


def stanza(name: str, status: str = "") -> str:
    place = "" if status else f"Filename: ./{name}.deb\nSize: 1\nSHA256: {'0' * 64}\n"
    return (f"Package: {name}\n{status}Version: 1.0\nArchitecture: amd64\nMaintainer: a <a@example.com>\nDescription: a\n"
            f"{RELATIONS.get(name, '')}{place}\n")


class Machine:
    def __init__(self, work: pathlib.Path, installed: tuple[str, ...]) -> None:
        for directory in ("lists/partial", "cache/archives/partial", "dpkg/info", "dpkg/updates", "repository", "bin", "etc/apt.conf.d", "etc/preferences.d"):
            (work / directory).mkdir(parents=True)
        status = "".join(stanza(name, "Status: install ok installed\n") for name in installed)
        (work / "dpkg/status").write_text(status)
        offered = set(known_packages()) | set(RELATIONS) | ENGINES
        (work / "repository/Packages").write_text("".join(stanza(name) for name in sorted(offered)))
        (work / "sources.list").write_text(f"deb [trusted=yes] file:{work}/repository ./\n")
        (work / "apt.conf").write_text(
            f'Dir::State "{work}";\nDir::State::lists "{work}/lists";\nDir::State::status "{work}/dpkg/status";\nDir::Cache "{work}/cache";\n'
            f'Dir::Etc::sourcelist "{work}/sources.list";\nDir::Etc::sourceparts "-";\nDir::Etc::parts "{work}/etc/apt.conf.d";\n'
            f'Dir::Etc::preferencesparts "{work}/etc/preferences.d";\nDir::Etc::preferences "{work}/none";\nAPT::Architecture "amd64";\n'
            'APT::Architectures { "amd64"; };\nAPT::Sandbox::User "";\n')
        for tool in TOOLS:
            (work / "bin" / tool).symlink_to(shutil.which(tool))
        self.environment = {"PATH": str(work / "bin"), "APT_CONFIG": str(work / "apt.conf"), "DPKG_ADMINDIR": str(work / "dpkg"), "LC_ALL": "C"}
        subprocess.run(["apt-get", "update", "-q"], env=self.environment, check=True, capture_output=True)

    def setup(self, *words: str) -> subprocess.CompletedProcess:
        # The script adds /usr/sbin for engines; here only bin/ has programs.
        text = (TOP / "tools/setup").read_text().replace("PATH=$PATH:/usr/sbin:/sbin ", "")
        return subprocess.run(["bash", "-c", text, "setup", *words], env=self.environment, capture_output=True, text=True)

    def packages(self, purpose: str) -> set[str]:
        ran = self.setup("--print", purpose)
        assert ran.returncode == 0, ran.stderr
        commands = [line.split() for line in ran.stdout.splitlines() if line.startswith("sudo apt-get install")]
        return {word for words in commands for word in words[3:] if not word.startswith("--")}


def known_packages() -> list[str]:
    """Every word of the script that looks like a package: too many do no harm in a repository."""
    words = (TOP / "tools/setup").read_text().replace("(", " ").replace(")", " ").replace(";", " ").split()
    return [word for word in words if word[0].islower() and all(c.isalnum() or c in "+-." for c in word) and len(word) > 1]


class Setup(unittest.TestCase):
    def machine(self, *installed: str) -> Machine:
        work = tempfile.TemporaryDirectory(prefix="gantry-setup-")
        self.addCleanup(work.cleanup)
        return Machine(pathlib.Path(work.name), installed)

    def test_a_build_installs_no_engine_and_make_run_only_runc(self):
        machine = self.machine()
        build = machine.packages("build")
        self.assertFalse(build & ENGINES)
        self.assertLessEqual(len(build), 16)  # the last one is zlib, for the layers of images
        self.assertEqual(machine.packages("run") - build, {"runc"})

    def test_engines_and_prometheus_come_with_the_tests(self):
        machine = self.machine()
        self.assertLessEqual(ENGINES, machine.packages("test"))
        for purpose in ("dev", "lint", "image", "package"):
            self.assertFalse(machine.packages(purpose) & ENGINES)

    def test_an_engine_of_another_source_stays(self):
        for installed in (("containerd.io",), ("containerd.io", "docker-ce")):
            machine = self.machine(*installed)
            ran = machine.setup("--print", "test")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertFalse(machine.packages("test") & {"containerd", "docker.io", "runc"})
            self.assertIn("Not installing docker.io: apt would remove ", ran.stdout)
            self.assertIn("--no-remove", ran.stdout)

    def test_nothing_is_said_if_nothing_is_missing(self):
        everything = self.machine(*self.machine().packages("lint"))
        ran = everything.setup("lint")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def test_an_unknown_purpose_is_answered_with_those_there_are(self):
        ran = self.machine().setup("everything")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("build, run, dev, test, lint", ran.stderr)


if __name__ == "__main__":
    if shutil.which("apt-get") is None:
        print("SKIP setup: apt-get is not installed")
        sys.exit(77)
    os.environ.pop("APT_CONFIG", None)
    unittest.main()
