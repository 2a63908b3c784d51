# SPDX-License-Identifier: Apache-2.0
"""Support for the repository lane: the commands of docs/install.md, a web server on loopback, and keys that sign."""
import functools
import http.server
import pathlib
import re
import subprocess
import threading

from lane_support import Lane

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/install.md"
PLACEHOLDER, PORT = "https://packages.example.com", 8080
URL = f"http://127.0.0.1:{PORT}"


class Page:
    """The blocks of docs/install.md. The first word after `sh` or `output` is who runs it or prints it."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        found = re.findall(r"^```(sh|output) ([^\n]+)\n(.*?)^```$", PAGE.read_text(), flags=re.M | re.S)
        self.blocks = {(kind, name): text.replace(PLACEHOLDER, URL) for kind, name, text in found}
        self.used: set[tuple[str, str]] = set()

    def block(self, kind: str, name: str) -> str:
        self.used.add((kind, name))
        return self.blocks[kind, name]

    def printed(self, name: str, output: str) -> None:
        """Each line of the block `output NAME` must be in the output; `...` is anything."""
        for line in self.block("output", name).splitlines():
            pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
            self.lane.check(f"the page's words: {line.strip()[:70]}", re.search(pattern, output) is not None, output)


class Handler(http.server.SimpleHTTPRequestHandler):
    def send_head(self):
        # Repositories take turns under one address: a file may be another one and yet not newer.
        del self.headers["If-Modified-Since"]
        return super().send_head()

    def log_message(self, *_) -> None:
        pass


class Server:
    """What is served is a link, so that another repository can take the first one's place."""

    def __init__(self, lane: Lane) -> None:
        self.link = lane.work / "served"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), functools.partial(Handler, directory=str(self.link)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, repository: pathlib.Path) -> None:
        fresh = self.link.with_name("served.new")
        fresh.symlink_to(repository)
        fresh.replace(self.link)

    def end(self) -> None:
        """Frees the port for what runs next in this process."""
        self.server.shutdown()
        self.server.server_close()


class Keys:
    """A keyring for this lane alone."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.home = lane.work / "gnupg"
        self.home.mkdir(mode=0o700)

    def gpg(self, *argv: str) -> subprocess.CompletedProcess:
        return self.lane.run("gpg", "--batch", *argv, env={"PATH": "/usr/bin:/bin", "GNUPGHOME": str(self.home)})

    def make(self, name: str) -> str:
        made = self.gpg("--passphrase", "", "--quick-generate-key", f"{name} <{name}@example.com>", "rsa3072", "sign", "1d")
        self.lane.check(f"a key for {name}", made.returncode == 0, made.stderr)
        return f"{name}@example.com"

    def end(self) -> None:
        self.lane.run("gpgconf", "--kill", "gpg-agent", env={"PATH": "/usr/bin:/bin", "GNUPGHOME": str(self.home)})
