# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects, built from their Go modules and kept in the user's cache (user_cache.py)."""
import os
import pathlib
import platform
import shutil
import subprocess
import time

import user_cache


class Missing(Exception):
    """Something that this machine lacks and that a build needs."""


def go() -> str:
    found = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if found is None:
        raise Missing("no Go toolchain on this machine")
    return found


def build(name: str, module: pathlib.Path, packages: list[str], flags: list[str], cgo: bool = False) -> pathlib.Path:
    """Returns the directory that has the programs of these packages, and builds them if it does not exist."""
    return user_cache.once(name, recipe(module, packages, flags, cgo), lambda work: compile_into(work, name, module, packages, flags, cgo))


def recipe(module: pathlib.Path, packages: list[str], flags: list[str], cgo: bool) -> list:
    """Everything the programs depend on: our own sources, by go.sum everybody else's, the toolchain, and with cgo the C library."""
    ours = [source for package in packages if package.startswith("./") for source in sorted((module / package).glob("*.go"))]
    toolchain = subprocess.run([go(), "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOFLAGS", "GOEXPERIMENT"], cwd=module, capture_output=True,
                               text=True, check=True).stdout
    return [module / "go.mod", module / "go.sum", *ours, *packages, *flags, toolchain, *(platform.libc_ver() if cgo else ())]


def compile_into(work: pathlib.Path, name: str, module: pathlib.Path, packages: list[str], flags: list[str], cgo: bool) -> None:
    """A long build prints every 20 seconds how far it is."""
    argv = ["nice", "-n", "10", go(), "build", "-p", "2", "-v", *flags, "-o", f"{work}/", *packages]
    log = user_cache.directory() / f"{name}.log"
    start = time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(argv, cwd=module, stdout=out, stderr=out, env=dict(os.environ, CGO_ENABLED=str(int(cgo))))
        while True:
            try:
                process.wait(timeout=20)
                break
            except subprocess.TimeoutExpired:
                done = log.read_text(errors="replace").splitlines()
                print(f"building {name}: {len(done)} packages, {time.monotonic() - start:.0f} s", flush=True)
    if process.returncode != 0:
        raise RuntimeError(f"{name} does not build:\n{log.read_text(errors='replace')[-3000:]}")
    print(f"built {name} in {time.monotonic() - start:.0f} s, kept in {user_cache.directory()}", flush=True)
