# SPDX-License-Identifier: Apache-2.0
"""Directories that tests build or download once and that all checkouts of this user share. Each is
${XDG_CACHE_HOME:-$HOME/.cache}/gantry/NAME-KEY, where KEY is a hash of everything that its content depends on.

A directory gets its name by a rename when it is complete, so an interrupted build leaves no half of one. It is always safe to
delete the whole cache."""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import time

from lane_support import mounts_below

UNUSED_DAYS = 30  # how long a directory with an outdated key is kept


def directory() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (pathlib.Path(base) if base.startswith("/") else pathlib.Path.home() / ".cache") / "gantry"


def key(recipe: list) -> str:
    """A hash of strings and of files' contents. Lengths are part of it: ["ab", "c"] is not ["a", "bc"]."""
    digest = hashlib.sha256()
    for part in recipe:
        data = part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode()
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:16]


def once(name: str, recipe: list, make) -> pathlib.Path:
    """Returns the directory for this recipe. If it does not exist, `make(work)` fills a new directory, which is then renamed.
    Programs that need the same name at the same time wait for the first."""
    place = directory() / f"{name}-{key(recipe)}"
    if not place.is_dir():
        directory().mkdir(parents=True, exist_ok=True)
        with locked(name):
            if not place.is_dir():
                for leftover in directory().glob(f".{name}-*"):  # of a process that was killed: we hold the lock
                    remove(leftover)
                build(place, make)
                remove_unused(name, place)
    with contextlib.suppress(OSError):
        os.utime(place)  # the time of its last use
    return place


@contextlib.contextmanager
def locked(name: str):
    with (directory() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(place: pathlib.Path, make) -> None:
    work = place.with_name(f".{place.name}")
    try:
        work.mkdir()
        work.chmod(0o755)
        make(work)
        work.rename(place)
    finally:
        remove(work)


def remove_unused(name: str, current: pathlib.Path) -> None:
    """Removes directories of other recipes that have not been used for a while."""
    oldest = time.time() - UNUSED_DAYS * 86400
    for other in directory().glob(f"{name}-*"):
        if other != current and re.fullmatch(re.escape(name) + "-[0-9a-f]{16}", other.name) and other.stat().st_mtime < oldest:
            remove(other)


def remove(path: pathlib.Path) -> None:
    """Leaves a directory alone that something is mounted in: files of the mounted file system must not be deleted."""
    if not mounts_below(path):
        shutil.rmtree(path, ignore_errors=True)
