# SPDX-License-Identifier: Apache-2.0
"""Which container has which GPU, read from the containers' own /dev. Neither the kubelet nor the agent is asked."""
import os
import pathlib
import re
import stat
import threading
import time

CONTAINER = re.compile(r"/kubepods/.*?/pod([0-9a-f-]{36})/([0-9a-f]{64})$")
NODE = re.compile(r"nvidia\d+$|nvidia-caps/nvidia-cap\d+$")


class Seen:
    """A live container: the process it was found by, and the device numbers of its GPU nodes."""

    def __init__(self, pod: str, container: str, pid: int, devices: frozenset[tuple[int, int]]) -> None:
        self.pod, self.container, self.pid, self.devices = pod, container, pid, devices

    def alive(self) -> bool:
        found = container_of(self.pid)
        return found is not None and found[1] == self.container


def container_of(pid: int) -> tuple[str, str] | None:
    """Pod and container of a live process, by its group."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            found = CONTAINER.search(line)
            if found:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                return found.groups() if state not in "ZX" else None
    except OSError:
        pass
    return None


def gpus_of(pid: int) -> frozenset[tuple[int, int]] | None:
    """Device numbers, not names: a node with another name is the same GPU. Returns None if the process ended meanwhile."""
    dev = pathlib.Path(f"/proc/{pid}/root/dev")
    found = set()
    try:
        entries = list(os.scandir(dev)) + (list(os.scandir(dev / "nvidia-caps")) if (dev / "nvidia-caps").is_dir() else [])
        for entry in entries:
            if NODE.match(os.path.relpath(entry.path, dev)):
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISCHR(info.st_mode):
                    found.add((os.major(info.st_rdev), os.minor(info.st_rdev)))
    except OSError:
        return None
    return frozenset(found)


def settled(pid: int) -> bool:
    """Returns false for a child of the runtime, which still has the host's root."""
    try:
        return not pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("runc")
    except OSError:
        return False


class Observer(threading.Thread):
    def __init__(self, shared: frozenset[tuple[int, int]] = frozenset()) -> None:
        super().__init__(daemon=True)
        self.shared = shared  # numbers that several containers may have
        self.done = threading.Event()
        self.known: dict[str, frozenset[tuple[int, int]]] = {}
        self.doubles: list[str] = []
        self.containers: set[str] = set()
        self.busiest = self.looks = 0
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            while not self.done.is_set():
                self.look()
                self.done.wait(0.05)
        except Exception as problem:  # end() raises it: otherwise nothing would tell that the observer stopped
            self.problem = problem

    def end(self) -> None:
        self.done.set()
        self.join()
        if self.problem is not None:
            raise RuntimeError("the observer stopped here") from self.problem

    def live(self) -> list[Seen]:
        found: dict[str, Seen] = {}
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            pid = int(entry.name)
            where = container_of(pid)
            if where is None or where[1] in found or not settled(pid):
                continue
            if where[1] not in self.known:
                devices = gpus_of(pid)
                if devices is None or container_of(pid) != where:
                    continue
                self.known[where[1]] = devices
            found[where[1]] = Seen(*where, pid, self.known[where[1]])
        return list(found.values())

    def look(self) -> None:
        self.looks += 1
        holders: dict[tuple[int, int], Seen] = {}
        busy = 0
        for seen in self.live():
            busy += len(seen.devices)
            if seen.devices:
                self.containers.add(seen.container)
            for device in seen.devices - self.shared:
                other = holders.setdefault(device, seen)
                # One may have ended while the other began. Only two that are alive at the same time count.
                if other is not seen and other.alive() and seen.alive():
                    self.doubles.append(f"{time.strftime('%X')} {device}: {other.pod}/{other.container[:12]} and {seen.pod}/{seen.container[:12]}")
        self.busiest = max(self.busiest, busy)
