# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's nvidia-mig-parted (a Go module, built here by name and version) and ours, each on fresh copies of simulated machines."""
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import go_programs  # noqa: E402
from lane_support import Lane  # noqa: E402

MODULE = pathlib.Path(__file__).resolve().parent / "mig_parted_module"
PACKAGE = "github.com/NVIDIA/mig-parted/cmd/nvidia-mig-parted"
FILES = "/mig"  # where a machine has the configuration files
LOG = re.compile(r'^time="[^"]*" level=(\w+) msg="?(.*?)"?$')


class Ran(typing.NamedTuple):
    code: int
    out: str
    said: list[str]  # "fatal: Error ...": the log without its times

    def describe(self) -> str:
        return f"exit {self.code}\n{self.out}{os.linesep.join(self.said)}"


def build() -> pathlib.Path:
    """Raises go_programs.Missing without a Go toolchain."""
    return go_programs.build("nvidia-mig-parted", MODULE, [PACKAGE], [], cgo=True) / "nvidia-mig-parted"


def module_directory() -> pathlib.Path:
    """The module as Go unpacked it: it has NVIDIA's example files."""
    found = subprocess.run([go_programs.go(), "list", "-m", "-f", "{{.Dir}}", PACKAGE.removesuffix("/cmd/nvidia-mig-parted")], cwd=MODULE, check=True,
                           capture_output=True, text=True)
    return pathlib.Path(found.stdout.strip())


class Machines:
    """Creates machines, each with NVIDIA's program and what it needs to run with the machine's tree as its root."""

    def __init__(self, lane: Lane, theirs: pathlib.Path) -> None:
        self.lane, self.theirs, self.count = lane, theirs, 0
        ours = lane.bin / "nvidia-mig-parted"
        self.ours = ours if ours.exists() else None
        words = (word for line in lane.run("ldd", theirs).stdout.splitlines() for word in line.split())
        self.needed = {library: library.lstrip("/") for library in words if library.startswith("/")} | {str(theirs): "nvidia-mig-parted"}

    def node(self, name: str, program: str) -> "Node":
        self.count += 1
        root = self.lane.work / f"{name}-{self.count}"
        self.lane.run(self.lane.bin / "gantry", "sim", "create", name, "--root", root, "--nodes", "real", check=True)
        for source, target in self.needed.items():
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / target)
        if not (root / "dev/null").exists():  # for hooks
            os.mknod(root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (root / FILES.lstrip("/")).mkdir()
        return Node(self, root, program)

    def programs(self) -> list[str]:
        return ["NVIDIA's", "ours"] if self.ours else ["NVIDIA's"]


class Node:
    """A simulated machine and the program under test. NVIDIA's reads /proc/modules and /sys of the machine that it runs on, so the tree is its
    root; ours takes the tree from GANTRY_ROOT, and files by their own paths."""

    def __init__(self, machines: Machines, root: pathlib.Path, program: str) -> None:
        self.machines, self.lane, self.root, self.program = machines, machines.lane, root, program
        marker = dict(line.split(" ", 1) for line in (root / ".gantry-sim").read_text().splitlines())
        self.libraries, self.tools = os.path.dirname(marker["nvml"]), marker["bin"]

    def write(self, name: str, text: str) -> str:
        """Returns the file's path for the program."""
        (self.root / FILES.lstrip("/") / name).write_text(text)
        return self.path(name)

    def path(self, name: str) -> str:
        return f"{FILES}/{name}" if self.program == "NVIDIA's" else f"{self.root}{FILES}/{name}"

    def read(self, name: str) -> str:
        return (self.root / FILES.lstrip("/") / name).read_text()

    def run(self, *words: str, text: str | None = None, **variables: str) -> Ran:
        environment = {"PATH": f"{self.tools}:/usr/bin:/bin", "HOME": "/", **variables}
        if self.program == "NVIDIA's":
            argv = ["/usr/sbin/chroot", self.root, "/nvidia-mig-parted"]
            environment["LD_LIBRARY_PATH"] = self.libraries
        else:
            argv = [self.machines.ours]
            environment["GANTRY_ROOT"] = str(self.root)
        done = self.lane.run(*argv, *words, env=environment, input=text)
        said = [self.plain(line) for line in done.stderr.splitlines() if line.strip()]
        return Ran(done.returncode, self.plain(done.stdout), said)

    def plain(self, text: str) -> str:
        """Without times and without the directory of the machine."""
        found = LOG.match(text)
        if found:
            text = f"{found[1]}: " + found[2].replace('\\"', '"')
        return text.replace(str(self.root), "")

    def inject(self, *words: str) -> None:
        self.lane.run(self.lane.bin / "gantry", "sim", "inject", "--root", self.root, *words, check=True)

    def state(self) -> dict:
        return json.loads(self.lane.run(self.lane.bin / "gantry", "sim", "state", "--root", self.root, "--json", check=True).stdout)

    def layout(self) -> list[dict]:
        """Of each GPU the MIG mode, the pending one, and the instances with their placements."""
        return layout_of(self.state())

    def destroyed(self) -> tuple[int, int]:
        return destroyed_of(self.state())

    def calls(self) -> int:
        """How often a function was called that changes MIG."""
        return sum(row["calls"] for row in self.state()["mig_calls"])


def layout_of(state: dict) -> list[dict]:
    return [{key: gpu[key] for key in ("mig", "mig_pending", "mig_layout")} for gpu in state["gpus"]]


def destroyed_of(state: dict) -> tuple[int, int]:
    """How many GPU instances and compute instances NVML destroyed since the machine was created."""
    count = {row["function"]: row["successes"] for row in state["mig_calls"]}
    return count["nvmlGpuInstanceDestroy"], count["nvmlComputeInstanceDestroy"]
