# SPDX-License-Identifier: Apache-2.0
"""A Chromium without a window, told by its DevTools protocol what to do: over two pipes, so that no port is open."""
import json
import os
import pathlib
import select
import subprocess
import time

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe")


class Browser:
    def __init__(self, profile: pathlib.Path) -> None:
        profile.mkdir()
        commands, self.to = os.pipe()
        self.answers, answers = os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4.
        line = f'exec "$@" 3<&{commands} 4>&{answers}'
        with open(profile / "browser.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(["bash", "-c", line, "browser", "chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"],
                                            pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=os.environ | {"HOME": str(profile)})
        os.close(commands)
        os.close(answers)
        self.read, self.number = b"", 0

    def call(self, method: str, session: str = "", seconds: float = 30, **parameters) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            answer = json.loads(self.message(until))
            if answer.get("id") != self.number:
                continue  # an event
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def message(self, until: float) -> bytes:
        while b"\0" not in self.read:
            if not select.select([self.answers], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.answers, 65536)
            if not more:
                raise EOFError("the browser has ended")
            self.read += more
        first, _, self.read = self.read.partition(b"\0")
        return first

    def open(self, url: str) -> "Page":
        target = self.call("Target.createTarget", url=url)["targetId"]
        return Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def value(self, expression: str):
        """What the expression is in the page; None where it fails, as before the page has loaded."""
        answer = self.browser.call("Runtime.evaluate", self.session, expression=expression, returnByValue=True, awaitPromise=True)
        return None if "exceptionDetails" in answer else answer["result"].get("value")
