# SPDX-License-Identifier: Apache-2.0
"""One program of the cluster: start, stop, kill, restart. Its output goes to a file."""
import os
import pathlib
import signal
import subprocess
import time


class Part:
    def __init__(self, name: str, argv: list, logs: pathlib.Path, env: dict[str, str] | None = None) -> None:
        self.name, self.argv, self.env = name, [str(a) for a in argv], env or {}
        self.log = logs / f"{name}.log"
        self.process: subprocess.Popen | None = None
        self.meant_to_end = False  # we ended it: a thread that waits for something must not report a crash

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ, **self.env))
        self.meant_to_end = False

    @property
    def pid(self) -> int:
        return self.process.pid if self.process is not None else 0

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self, seconds: float = 20) -> None:
        """Sends SIGTERM, and SIGKILL if that does not help."""
        if self.process is None:
            return
        self.meant_to_end = True
        if self.running():
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self.process is not None:
            self.meant_to_end = True
            self.process.kill()
            self.process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def words(self, since: int = 0) -> str:
        return self.log.read_text(errors="replace")[since:]

    def check_alive(self) -> None:
        process = self.process
        if process is not None and process.poll() is not None and not self.meant_to_end and process is self.process:
            raise RuntimeError(f"{self.name} ended with status {process.returncode}:\n{self.words()[-3000:]}")


def wait_for(what: str, true, seconds: float = 30, pause: float = 0.1, alive: tuple[Part, ...] = ()):
    """Returns the first truthy answer. An exception of the question counts as no. The error after the timeout says what was awaited."""
    deadline = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            last = true()
            if last:
                return last
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            last = error
        for part in alive:
            part.check_alive()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; last answer: {last!r}")
        time.sleep(pause)
