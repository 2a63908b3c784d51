# SPDX-License-Identifier: Apache-2.0
"""Support for the lanes of the real engines: an image made by hand, a simulated machine prepared for containers, and daemons in separate
directories that end with the lane."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from archive import docker_archive  # noqa: E402
from bundle import fill  # noqa: E402
from lane_support import Lane, needs_program, needs_root, own_mounts, skip_lane  # noqa: E402, F401

IMAGE = "docker.io/library/gantry-test:1"


def uuids(text: str) -> list[str]:
    return [word.rstrip(")") for word in text.split() if word.startswith(("GPU-", "MIG-"))]


def sees(lane: Lane, what: str, ran: subprocess.CompletedProcess, wanted: list[str]) -> None:
    lane.check(what, ran.returncode == 0 and uuids(ran.stdout) == wanted, f"{ran.stdout}{ran.stderr}\nwanted {wanted}")


def image_archive(lane: Lane, env: tuple[str, ...] = ()) -> pathlib.Path:
    """The root file system as a docker-archive, which podman, docker and containerd all load."""
    root = lane.work / "image"
    fill(lane, root)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nuser:x:1000:\n")
    archive = docker_archive(root, lane.work / "image.tar", (IMAGE,), ["/bin/sh"], ("PATH=/usr/bin:/bin", *env))
    shutil.rmtree(root)
    return archive


class Machine:
    """A simulated machine with the driver directory, inventory and CDI spec published."""

    def __init__(self, lane: Lane, name: str) -> None:
        self.lane, self.name = lane, name
        self.root = lane.machine(name, "--nodes", "real")
        lane.run(lane.bin / "gantry", "cdi", "refresh", "--root", self.root, check=True)
        self.inventory = json.loads(lane.run(lane.bin / "gantry", "info", "--json", "--root", self.root).stdout)
        self.gpus = self.inventory["gpus"]

    def serve(self) -> None:
        """From here on this is the machine whose specs and configuration the engines and hooks read."""
        bind(self.root / "var/run/cdi", pathlib.Path("/run/cdi"))
        config = self.root / "etc/nvidia-container-runtime/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f'[gantry]\nroot = "{self.root}"\n')
        bind(config.parent, pathlib.Path("/etc/nvidia-container-runtime"))


    def serve_nodes(self) -> None:
        """The machine's nodes in /dev itself: where a rootless runtime, which cannot mknod, binds them from."""
        aside = self.lane.work / f"dev-{self.name}"
        aside.mkdir()
        subprocess.run(["mount", "--rbind", "/dev", aside], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "gantry-lane", "/dev"], check=True)
        for source in [*aside.iterdir(), *(self.root / "dev").iterdir()]:
            target = pathlib.Path("/dev") / source.name
            if source.is_symlink():
                target.symlink_to(os.readlink(source))
            elif not target.exists():
                target.mkdir() if source.is_dir() else target.touch()
                subprocess.run(["mount", "--rbind", source, target], check=True)


def bind(source: pathlib.Path, target: pathlib.Path) -> None:
    """Binds in this namespace only. The machine itself sees no more than an empty directory."""
    source.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", source, target], check=True)


class Daemon:
    """A daemon that this lane starts and always ends."""

    def __init__(self, lane: Lane, name: str, argv: list, ready: pathlib.Path, env: dict[str, str]) -> None:
        self.log = lane.work / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([str(a) for a in argv], stdout=log, stderr=log, env=dict(os.environ, **env))
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.05)
        if not ready.exists():
            self.stop()
            raise RuntimeError(f"{name} did not start:\n{self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
