# SPDX-License-Identifier: Apache-2.0
"""Containers of plain runc and crun whose config.json knows of no GPU but for a prestart hook."""
import hashlib
import json
import os
import pathlib
import subprocess

from bundle import Bundles
from lane_support import Lane

HERE = pathlib.Path(__file__).resolve().parent
UNIFIED = "/sys/fs/cgroup/unified"  # where v1 and v2 stand side by side

class Machine:
    """A simulated machine, made ready for containers, and the configuration of its hook."""

    def __init__(self, lane: Lane, bundles: Bundles, name: str, config: str = "", cli: str = "") -> None:
        self.lane, self.root = lane, lane.machine(name, "--nodes", "real")
        self.bundles = bundles
        refreshed = lane.run(lane.bin / "gantry", "cdi", "refresh", "--root", self.root)
        lane.check(f"{name}: inventory and driver directory are made", refreshed.returncode == 0, refreshed.stdout + refreshed.stderr)
        self.inventory = json.loads(lane.run(lane.bin / "gantry", "info", "--json", "--root", self.root).stdout)
        self.uuids = [gpu["uuid"] for gpu in self.inventory["gpus"]]
        self.log = lane.work / f"{name}.log"
        self.config = lane.work / f"{name}.toml"
        self.config.write_text(f'{config}\n[nvidia-container-cli]\nroot = "{self.root}"\ndebug = "{self.log}"\n{cli}\n')


class Bundle:
    count = 0

    def __init__(self, machine: Machine, argv: list[str], env: dict[str, str], old_kernel: bool = False, **kwargs) -> None:
        Bundle.count += 1
        self.lane = machine.lane
        self.id = f"gantry-classic-{os.getpid()}-{Bundle.count}"
        self.path = machine.bundles.make(self.id, argv, [f"{k}={v}" for k, v in env.items()], **kwargs)
        self.rootfs = self.path / "rootfs"
        self.spec = json.loads((self.path / "config.json").read_text())
        self.spec["linux"]["cgroupsPath"] = f"/{self.id}"
        hook = str(self.lane.bin / "nvidia-container-runtime-hook")
        args = ["nvidia-container-runtime-hook", "-config", str(machine.config), "prestart"]
        path = hook
        if old_kernel:
            path, args = str(HERE / "without_calls"), ["without_calls", hook] + args
        self.spec["hooks"] = {"prestart": [{"path": path, "args": args, "env": ["PATH=" + os.environ["PATH"]]}]}

    def run(self, runtime: str = "runc", timeout: int = 60) -> subprocess.CompletedProcess:
        """runtime: "runc", "crun", or "runc, cgroup v2" for one that sees the v2 hierarchy alone."""
        (self.path / "config.json").write_text(json.dumps(self.spec))
        program = runtime.split(",")[0]
        where = ["--root", self.lane.work / program]
        command = [program, *where, "run", "--bundle", self.path, self.id]
        if program == "crun":  # refuses to work if a v2 hierarchy is mounted next to those of v1
            command = [program, "--cgroup-manager=cgroupfs", *command[1:]]
            if os.path.ismount(UNIFIED):
                command = ["unshare", "-m", "sh", "-c", f'umount {UNIFIED}; exec "$@"', "sh", *command]
        elif runtime != program and os.path.ismount(UNIFIED):
            alone = f'mount --bind {UNIFIED} /mnt && umount -l /sys/fs/cgroup && mount --bind /mnt /sys/fs/cgroup && umount /mnt && exec "$@"'
            command = ["unshare", "-m", "sh", "-c", alone, "sh", *command]
        try:
            return self.lane.run(*command, timeout=timeout)
        finally:
            self.lane.run(program, *where, "delete", "--force", self.id)


def fingerprint(path: pathlib.Path) -> dict[str, tuple]:
    """Everything about a tree that a program could have changed."""
    seen = {}
    for each in sorted([path, *path.rglob("*")]):
        st = each.lstat()
        content = os.readlink(each) if each.is_symlink() else hashlib.sha256(each.read_bytes()).hexdigest() if each.is_file() else ""
        seen[str(each)] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_ino, content)
    return seen


def host_mounts() -> list[str]:
    return sorted(line.split(" ", 2)[2] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


def device_rules(pid: int) -> str:
    """The devices that the cgroup of a process allows; "" with cgroup v2, where a program decides."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        rules = pathlib.Path(f"/sys/fs/cgroup/devices{path}/devices.list")
        if controllers == "devices" and rules.exists():
            return rules.read_text()
    return ""
