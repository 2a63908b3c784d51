# SPDX-License-Identifier: Apache-2.0
"""Support for the end-to-end lanes: checks that are counted, skips with a reason, simulated machines."""
import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # ctest's SKIP_RETURN_CODE of these lanes


class Lane:
    def __init__(self, name: str) -> None:
        self.name = name
        self.failures: list[str] = []  # printed again at the end, where a log that is cut still shows them
        self.count = 0
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"gantry-{name}-"))
        self.work.chmod(0o755)  # nvidia-container-cli reads it as user nobody
        self.bin = pathlib.Path(sys.argv[1]).resolve()

    def check(self, what: str, ok: bool, detail: str = "") -> None:
        self.count += 1
        if ok:
            print(f"ok     {what}", flush=True)
            return
        failure = f"FAILED {what}" + (f"\n{detail}" if detail else "")
        self.failures.append(failure)
        print(failure, flush=True)

    @property
    def failed(self) -> int:
        return len(self.failures)

    def equal(self, what: str, ours, theirs) -> None:
        self.check(what, ours == theirs, f"  ours:   {ours!r}\n  wanted: {theirs!r}")

    def machine(self, name: str, *flags: str) -> pathlib.Path:
        root = self.work / name
        self.run(self.bin / "gantry", "sim", "create", name, "--root", root, *flags, check=True)
        return root

    def run(self, *argv, check: bool = False, **kwargs) -> subprocess.CompletedProcess:
        kwargs.setdefault("timeout", 120)
        return subprocess.run([str(a) for a in argv], capture_output=True, text=True, errors="replace", check=check, **kwargs)

    def on(self, root: pathlib.Path, *argv, **kwargs) -> subprocess.CompletedProcess:
        """Runs a program on the simulated machine below root."""
        return self.run(self.bin / "gantry", "sim", "run", "--root", root, "--", *argv, **kwargs)

    def skip(self, what: str, why: str) -> None:
        print(f"SKIP {self.name} {what}: {why}", flush=True)

    def end(self) -> None:
        # Nothing is deleted through a mount: a lane may have bound this machine's /dev below its directory.
        unmount_below(self.work)
        shutil.rmtree(self.work, ignore_errors=True)
        for failure in self.failures:
            print(failure if len(failure) < 4000 else f"{failure[:2000]}\n[...]\n{failure[-2000:]}")
        print(f"{self.count - self.failed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)


def wait_until(what: str, holds, seconds: float = 60) -> None:
    """Waits for the state that a check is about; on a loaded machine it may come late."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(f"after {seconds:g} s not yet: {what}")
        time.sleep(0.01)


def mounts_below(path: pathlib.Path) -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        places = [line.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape") for line in lines]
    return [place for place in places if place.startswith(f"{path}/")]


def unmount_below(path: pathlib.Path) -> None:
    for place in reversed(mounts_below(path)):
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
    if mounts_below(path):
        sys.exit(f"{path} still has mounts below it and is left alone: {mounts_below(path)}")


def skip_lane(name: str, why: str) -> None:
    print(f"SKIP {name}: {why}")
    sys.exit(SKIPPED)


def own_mounts() -> None:
    """Starts the lane again in a new mount namespace, so that no other program sees what it binds over /run/cdi or /etc. Drops the copies of
    other lanes' mounts: they would vanish at any moment, when such a lane deletes its directory."""
    state = os.environ.get("GANTRY_LANE_MOUNTS")
    if state is None:
        os.execvpe("unshare", ["unshare", "--mount", sys.executable, *sys.argv], dict(os.environ, GANTRY_LANE_MOUNTS="new"))
    if state == "new":
        os.environ["GANTRY_LANE_MOUNTS"] = "own"
        for place in reversed(mounts_below(pathlib.Path(tempfile.gettempdir()))):
            if place.startswith(f"{tempfile.gettempdir()}/gantry-"):
                subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def own_network() -> None:
    """Starts the lane again in a new network namespace, so that several lanes can use the same ports at the same time."""
    if os.environ.get("GANTRY_LANE_NETWORK") != "own":
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], dict(os.environ, GANTRY_LANE_NETWORK="own"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x41))  # SIOCSIFFLAGS: IFF_UP | IFF_RUNNING


def needs_root(name: str) -> None:
    if os.geteuid() != 0:
        skip_lane(name, "needs root")


def needs_program(name: str, program: str) -> None:
    if shutil.which(program) is None:
        skip_lane(name, f"{program} is not installed")
