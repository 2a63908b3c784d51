# SPDX-License-Identifier: Apache-2.0
"""The share daemon killed and stopped under a tenant with a hard cap of 50 %, on a real GPU: how long the tenant stalls, what it has of the GPU in each
second, and when a daemon controls it again."""
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

from fenced import Died, Gantry, Programs, Worker, rate, soon, wait_for

CAP = 50
KERNEL_US = 300
BEFORE_S = 3.0  # with a daemon
SOCKET = "/run/gantry/keeper.sock"


def daemon_pid() -> int:
    """The process that listens on the control socket; 0: none does."""
    with socket.socket(socket.AF_UNIX) as ask:
        ask.settimeout(1)
        try:
            ask.connect(SOCKET)
        except OSError:
            return 0
        return struct.unpack("3i", ask.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def signal_daemon(how: int) -> None:
    pid = daemon_pid()
    if pid <= 1:
        raise RuntimeError("no share daemon listens on " + SOCKET)
    os.kill(pid, how)


def answers() -> bool:
    """A daemon that is stopped accepts connections, but does not answer."""
    with socket.socket(socket.AF_UNIX) as ask:
        ask.settimeout(0.05)
        try:
            ask.connect(SOCKET)
            ask.sendall(b'{"ask":"list"}\n')
            return ask.recv(1) == b"{"
        except OSError:
            return False


def watchdogs() -> list[int]:
    found = subprocess.run(["pgrep", "-f", "share watch"], capture_output=True, text=True).stdout
    return [int(pid) for pid in found.split()]


class LostDaemon:
    def __init__(self, lane, build: pathlib.Path, keep_text) -> None:
        self.lane, self.keep, self.gantry, self.programs = lane, keep_text, Gantry(build), Programs("tenant")
        self.lines: list[str] = []

    def calibrate(self) -> None:
        with Worker([self.programs["tenant"]]) as native:
            native.read()
            self.rounds = native.ask(f"calibrate {KERNEL_US}")["rounds"]
            self.native = rate(native.ask(f"load {self.rounds} {soon(200)} 2"), 0.2, 2)

    def tenant(self) -> Worker:
        worker = Worker([*self.gantry.run("--memory", "4GiB", "--compute", f"{CAP}%", "--hard"), self.programs["tenant"]])
        worker.read()
        return worker

    def tell(self, what: str, answer: dict, lost_s: float, seconds: float) -> tuple[float, list[float]]:
        """Prints and returns the longest time without a kernel, and the percentage of each second, since the daemon was lost."""
        gaps = [length for at, length in answer["gaps"] if at + length >= lost_s * 1000]
        stall = max(gaps, default=answer["bin_ms"])
        before = max((length for at, length in answer["gaps"] if 500 <= at and at + length < lost_s * 1000), default=answer["bin_ms"])
        parts = [rate(answer, lost_s + i, lost_s + i + 1) / self.native * 100 for i in range(int(seconds))]
        line = f"{what}: longest time without a kernel {stall:.0f} ms (with a daemon {before:.0f} ms), per second {' '.join(f'{one:.1f}' for one in parts)} %"
        print("      " + line, flush=True)
        self.lines.append(line)
        return stall, parts

    def lose(self, what: str, lose, seconds: float, back_within: float | None) -> None:
        with self.tenant() as tenant:
            at = soon()
            tenant.send(f"load {self.rounds} {at} {BEFORE_S + seconds + 0.5}")
            time.sleep(max(0, at / 1000 + BEFORE_S - time.time()))
            lost_s = time.time() - at / 1000
            lose()
            start = time.monotonic()
            back = None
            if back_within is not None:
                wait_for(lambda: not answers(), 0.2, 0.001)
                if wait_for(answers, back_within + 2, 0.01):
                    back = time.monotonic() - start
            answer = tenant.read(BEFORE_S + seconds + 30)
        stall, parts = self.tell(what, answer, lost_s, seconds)
        self.lane.check(f"lost daemon, {what}: no stall of more than 100 ms ({stall:.0f} ms)", stall <= 100)
        self.lane.check(f"lost daemon, {what}: the cap of {CAP} % holds in every second (most {max(parts):.1f} %)", max(parts) <= CAP + 4, str(parts))
        if back_within is not None:
            words = "never" if back is None else f"after {back * 1000:.0f} ms"
            self.lines.append(f"{what}: a daemon answers again {words}")
            self.lane.check(f"lost daemon, {what}: a daemon answers again {words}", back is not None and back <= back_within)

    def killed(self) -> None:
        self.lose("killed", lambda: signal_daemon(signal.SIGKILL), 6, 1.0)

    def stopped(self) -> None:
        self.lose("stopped", lambda: signal_daemon(signal.SIGSTOP), 8, 5.0)

    @staticmethod
    def kill_both() -> None:
        for pid in watchdogs():
            os.kill(pid, signal.SIGKILL)
        signal_daemon(signal.SIGKILL)

    def killed_for_good(self) -> None:
        """With the watchdog: nobody starts another daemon. After ten seconds the tenant's launches are refused; `gantry share ls` brings the daemon back."""
        self.lose("killed with its watchdog", self.kill_both, 6, None)
        self.gantry.call("ls")
        with self.tenant() as tenant:
            at = soon()
            tenant.send(f"load {self.rounds} {at} 20")
            time.sleep(max(0, at / 1000 + 2 - time.time()))
            self.kill_both()
            start = time.monotonic()
            try:
                said = tenant.read(30)
            except Died as problem:
                said = {"failed": str(problem)}
            took = time.monotonic() - start
        line = f"killed with its watchdog: a launch is refused after {took:.1f} s: CUDA error {said.get('error', 'none')}"
        print("      " + line, flush=True)
        self.lines.append(line)
        self.lane.check(f"lost daemon: a launch is refused after {took:.1f} s without one", said.get("error") == 802 and 9.5 <= took <= 12, str(said)[:500])
        listed = self.gantry.call("ls")
        self.lane.check("lost daemon: `gantry share ls` answers again", listed.returncode == 0, listed.stderr)

    def run(self) -> None:
        self.calibrate()
        for part in (self.killed, self.stopped, self.killed_for_good):
            try:
                part()
            except Exception as problem:  # one part that breaks must not hide the others
                self.lane.check(f"lost daemon: {part.__name__}", False, repr(problem))
        self.keep("lost-daemon.txt", "\n".join(self.lines) + "\n")


def lost_daemon(lane, build: pathlib.Path, keep_text) -> None:
    if os.geteuid() != 0:
        lane.skip("lost daemon", "not root")
        return
    parts = LostDaemon(lane, build, keep_text)
    try:
        if parts.programs.failed:
            lane.check("lost daemon: the tenant builds", False, str(parts.programs.failed)[-3000:])
            return
        parts.run()
    finally:
        parts.programs.remove()
