# SPDX-License-Identifier: Apache-2.0
"""The node agent and a fake kubelet, for the lanes that run them on simulated machines."""
import atexit
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

from lane_support import Lane

PLUGINS = "var/lib/kubelet/device-plugins"
POD_RESOURCES = "var/lib/kubelet/pod-resources"
started: list[subprocess.Popen] = []
atexit.register(lambda: [process.kill() for process in started if process.poll() is None])


class Kubelet:
    """gantry-fake-kubelet: a line of JSON for each command."""

    def __init__(self, lane: Lane, root: pathlib.Path, version: str = "1.36", plugins: str = PLUGINS) -> None:
        for name in (plugins, POD_RESOURCES):
            (root / name).mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [lane.bin / "gantry-fake-kubelet", "--dir", root / plugins, "--pod-resources", root / POD_RESOURCES / "kubelet.sock",
             "--version", version], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(self.process)

    def ask(self, command: str) -> dict:
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def allocatable(self, resource: str = "nvidia.com/gpu") -> int:
        return len(self.ask("dump")["resources"].get(resource, {"allocatable": []})["allocatable"])

    def quit(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


class Agent:
    def __init__(self, lane: Lane, root: pathlib.Path, *flags: str, name: str = "agent", program: tuple[str, ...] = ("gantry", "agent"),
                 env: dict[str, str] | None = None) -> None:
        self.log = lane.work / f"{name}.log"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([lane.bin / program[0], *program[1:], "--root", root, *flags], stdout=log, stderr=log,
                                            env=kept | {"HOME": str(lane.work)} | (env or {}))
        started.append(self.process)

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)

    def said(self) -> str:
        return self.log.read_text(errors="replace")


def page(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return answer.read().decode()


def until(wish, seconds: float = 60.0):
    """Calls `wish` until it returns something true, and returns that, or its last answer. A page that is not served yet counts as nothing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            got = wish()
        except OSError:
            got = None
        if got:
            return got
        time.sleep(0.05)
    return wish()
