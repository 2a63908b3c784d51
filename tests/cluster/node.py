# SPDX-License-Identifier: Apache-2.0
"""The simulated machine on which kubelet and engine run: its /run and /var/lib/kubelet are the world's."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import uuid

import world

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from lane_support import mounts_below  # noqa: E402

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


class Node:
    def __init__(self, programs: pathlib.Path, machine: str) -> None:
        self.gantry = programs / "gantry"
        self.root = world.PLACE / "node"
        self.kept = world.PLACE / "run-at-boot"
        self.call("sim", "create", machine, "--root", self.root, "--nodes", "real")
        (self.root / "run").rename(self.kept)
        self.boot()
        (self.root / "var/run").symlink_to("/run")
        # A kubelet removes the logs of pods that it does not know. On the machine's own directories these would be another cluster's.
        for directory in ("var/lib/kubelet", "var/lib/cni", "var/log/pods", "var/log/containers"):
            self.serve(directory)
        self.serve("run", "/run")
        self.serve_libraries()

    def call(self, *argv) -> str:
        done = subprocess.run([str(self.gantry), *(str(a) for a in argv)], capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"gantry {' '.join(str(a) for a in argv)}: {done.stdout}{done.stderr}")
        return done.stdout

    def inject(self, *argv) -> str:
        return self.call("sim", "inject", "--root", self.root, *argv)

    def inventory(self) -> dict:
        return json.loads(self.call("info", "--json", "--root", self.root))

    def serve(self, directory: str, at: str = "") -> None:
        target = pathlib.Path(at or f"/{directory}")
        (self.root / directory).mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        world.call("mount", "--bind", self.root / directory, target)

    def serve_libraries(self) -> None:
        """Puts the driver where people's hostPath volumes look for it. An overlay, because engines create the directories that such a
        volume names, and they must not appear on the machine below this world."""
        upper, work = world.PLACE / "usr-lib", world.PLACE / "usr-lib-work"
        for directory in (upper / LIBRARIES.name, work):
            directory.mkdir(parents=True)
        for library in (self.root / LIBRARIES.relative_to("/")).glob("libcuda.so*"):
            (upper / LIBRARIES.name / library.name).symlink_to(library)
        world.call("mount", "-t", "overlay", "node-libraries", "-o", f"lowerdir=/usr/lib,upperdir={upper},workdir={work}", "/usr/lib")

    def boot(self) -> None:
        """Makes a new /run with only the files of the machine's own services, and a new boot id."""
        run = self.root / "run"
        run.mkdir(exist_ok=True)
        world.call("mount", "-t", "tmpfs", "-o", "mode=755", "run", run)
        shutil.copytree(self.kept, run, dirs_exist_ok=True, copy_function=copy)
        boot_id = f"{uuid.uuid4()}\n"
        (world.PLACE / "sysctl/boot_id").write_text(boot_id)
        simulated = self.root / "proc/sys/kernel/random/boot_id"
        simulated.parent.mkdir(parents=True, exist_ok=True)
        simulated.write_text(boot_id)

    def go_down(self) -> None:
        """Unmounts /run. Nothing is deleted through a mount."""
        for place in ("/run", str(self.root / "run")):
            for mount in reversed([*mounts_below(pathlib.Path(place)), place]):
                subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)

    def reboot(self) -> None:
        self.go_down()
        self.boot()
        self.serve("run", "/run")


def copy(source: str, target: str) -> str:
    """Copies files. A socket becomes an empty file: no process listens on it in a simulated machine either."""
    if os.path.isfile(source):
        return shutil.copy2(source, target)
    pathlib.Path(target).touch()
    return target
