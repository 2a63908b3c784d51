# SPDX-License-Identifier: Apache-2.0
"""Packages of this machine's own Debian archive, without installing any. apt works on private lists and a private list of
sources, which is the machine's own with source packages added, so this file names no mirror."""
import os
import pathlib
import re
import subprocess
import time

LISTS_DAYS = 7  # how long the lists are used before they are fetched again
SOURCES = (pathlib.Path("/etc/apt/sources.list"), pathlib.Path("/etc/apt/sources.list.d"))


class Missing(Exception):
    """Something that this machine or its archive does not have. The text is for a person."""


def run(command: list, **options) -> str:
    """Runs a command and returns what it printed. A failure shows its last lines."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()[-15:]
        raise Missing(f"{' '.join(str(word) for word in command[:6])} ...: exit status {done.returncode}\n" + "\n".join(lines))
    return done.stdout


def with_sources(name: str, text: str) -> str:
    """The same sources, each with its source packages."""
    if name.endswith(".sources"):
        return re.sub(r"(?m)^Types:.*$", "Types: deb deb-src", text)
    lines = [line for line in text.splitlines() if re.match(r"\s*deb\s", line)]
    return "".join(f"{line}\n{re.sub(r'deb', 'deb-src', line, count=1)}\n" for line in lines)


def machine_sources() -> dict[str, str]:
    files = [SOURCES[0]] if SOURCES[0].is_file() else []
    if SOURCES[1].is_dir():
        files += sorted(path for path in SOURCES[1].iterdir() if path.suffix in (".list", ".sources"))
    return {path.name: with_sources(path.name, path.read_text()) for path in files}


class Archive:
    def __init__(self, state: pathlib.Path):
        self.state = state
        self.parts = state / "sources"
        for name in ("sources", "lists/partial", "cache/archives/partial"):
            (state / name).mkdir(parents=True, exist_ok=True)
        self.options = ["-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={self.parts}",
                        "-o", f"Dir::State::Lists={state / 'lists'}", "-o", f"Dir::Cache={state / 'cache'}",
                        "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"]

    def update(self, fresh: bool = False) -> bool:
        """Fetches the lists if they are old, or always. Returns True if it fetched them."""
        stamp = self.state / "updated"
        sources = machine_sources()
        same = {path.name: path.read_text() for path in self.parts.iterdir()} == sources
        if same and not fresh and stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_DAYS * 86400:
            return False
        for path in self.parts.iterdir():
            path.unlink()
        for name, text in sources.items():
            (self.parts / name).write_text(text)
        run(["apt-get", "-q", *self.options, "update"])
        stamp.touch()
        return True

    def depends(self, package: str) -> list[str]:
        text = run(["apt-cache", *self.options, "depends", package])
        return re.findall(r"(?m)^ [ |]Depends: ([^<\s]\S*)$", text)

    def versions(self, packages: list[str]) -> dict[str, str]:
        text = run(["apt-cache", *self.options, "show", "--no-all-versions", *packages])
        found = {}
        for stanza in text.split("\n\n"):
            fields = dict(re.findall(r"(?m)^(Package|Version): (\S+)$", stanza))
            if len(fields) == 2:
                found.setdefault(fields["Package"], fields["Version"])
        absent = [name for name in packages if name not in found]
        if absent:
            raise Missing(f"this machine's package sources do not have {', '.join(absent)}. It must be Debian 12 with its security archive.")
        return found

    def download(self, versions: dict[str, str], into: pathlib.Path) -> None:
        run(["apt-get", "-q", *self.options, "download", *[f"{name}={version}" for name, version in versions.items()]], cwd=into)

    def source(self, name: str, version: str, into: pathlib.Path) -> None:
        run(["apt-get", "-q", *self.options, "source", "--download-only", f"{name}={version}"], cwd=into)


def installed_source_version(package: str) -> str:
    done = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status} ${source:Version}", package], capture_output=True, text=True, check=False)
    status, _, version = done.stdout.partition(" ")
    if done.returncode != 0 or status != "installed":
        raise Missing(f"{package} is not installed. Run: tools/setup vm")
    return version


def unpack(package: pathlib.Path, into: pathlib.Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    run(["dpkg-deb", "-x", package, into])


def codename() -> str:
    fields = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return fields.get("VERSION_CODENAME", "").strip('"')


def jobs() -> str:
    return f"-j{os.cpu_count() or 1}"
