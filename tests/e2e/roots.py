# SPDX-License-Identifier: Apache-2.0
"""Root file systems of real distributions for containers, made once from the mirror that this machine uses and
kept in the user's cache. Nothing changes such a directory: containers get an overlay of it."""
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile

import user_cache

# Not in a minimal system, depends on libc6 alone, and runs ldconfig when it is installed.
PACKAGE = "libyaml-0-2"


class Missing(Exception):
    """A root that cannot be had here, and why."""


def run(*argv, seconds: int = 900, **kwargs) -> str:
    try:
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, errors="replace", timeout=seconds,
                              check=False, **kwargs)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(str(error)) from error
    if done.returncode != 0:
        raise Missing(f"{argv[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def mirror() -> str:
    """Where this machine has its Debian packages from."""
    for line in run("apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(COMPONENT)", "Created-By: Packages").splitlines():
        uri, *rest = line.split()
        if rest[:2] == ["Debian", "main"] and uri.rstrip("/").endswith("/debian"):
            return uri
    raise Missing("no Debian archive among this machine's package sources")


def once(name: str, make) -> pathlib.Path:
    """The root of that name, made again when this file or the machine's C library changes."""
    return user_cache.once(f"root-{name}", [pathlib.Path(__file__), name, *platform.libc_ver()], make)


def debian(suite: str) -> pathlib.Path:
    """A minimal system with apt, and a package that can be installed without a network: /opt/package.deb."""
    def make(root: pathlib.Path) -> None:
        if shutil.which("debootstrap") is None:
            raise Missing("debootstrap is not installed")
        run("debootstrap", "--variant=minbase", suite, root, mirror())
        run("chroot", root, "apt-get", "install", "-y", "--download-only", PACKAGE)
        package = next((root / "var/cache/apt/archives").glob(f"{PACKAGE}_*.deb"))
        shutil.copy(package, root / "opt/package.deb")
        for unused in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(root / unused, ignore_errors=True)
        (root / "var/cache/apt/archives/partial").mkdir(parents=True)
    return once(suite, make)


def busybox(root: pathlib.Path) -> None:
    program = shutil.which("busybox")
    if program is None or "interpreter" in run("readelf", "-lW", program):
        raise Missing("busybox-static is not installed")
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy(program, root / "bin/busybox")
    for name in ("sh", "ls", "cat", "rm", "echo", "true"):
        (root / "bin" / name).symlink_to("busybox")


def package(root: pathlib.Path, name: str, architecture: str) -> None:
    """One package's files, without what it depends on; of any architecture, by a package list of our own."""
    with tempfile.TemporaryDirectory(prefix="gantry-apt-") as work:
        unpack(pathlib.Path(work), root, name, architecture)


def unpack(state: pathlib.Path, root: pathlib.Path, name: str, architecture: str) -> None:
    for directory in ("lists/partial", "cache/archives/partial", "etc"):
        (state / directory).mkdir(parents=True, exist_ok=True)
    (state / "etc/sources.list").write_text(f"deb {mirror()} bookworm main\n")
    (state / "status").touch()
    apt = ["apt-get", "-q", "-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::State::status={state}/status",
           "-o", f"Dir::Cache={state}/cache", "-o", f"Dir::Etc::sourcelist={state}/etc/sources.list", "-o", "Dir::Etc::sourceparts=-",
           "-o", f"APT::Architecture={architecture}", "-o", f"APT::Architectures={architecture}", "-o", "APT::Sandbox::User=root"]
    run(*apt, "update")
    run(*apt, "download", name, cwd=state)
    run("dpkg-deb", "-x", next(state.glob(f"{name}_*.deb")), root)


def lib64() -> pathlib.Path:
    """glibc as Fedora and SUSE lay it out: the 64-bit libraries that Debian has for 32-bit systems, whose loader looks
    in /lib64 and /usr/lib64 by itself."""
    def make(root: pathlib.Path) -> None:
        busybox(root)
        package(root, "libc6-amd64", "i386")
        (root / "usr/lib64").mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath("/lib/x86_64-linux-gnu/libgcc_s.so.1"), root / "usr/lib64/libgcc_s.so.1")
        (root / "sbin").mkdir(exist_ok=True)
        shutil.copy("/sbin/ldconfig", root / "sbin/ldconfig")
        (root / "etc/ld.so.conf.d").mkdir(parents=True, exist_ok=True)
        (root / "etc/ld.so.conf").write_text("include ld.so.conf.d/*.conf\n/lib64\n/usr/lib64\n")
        run("chroot", root, "/sbin/ldconfig")
        for directory in ("proc", "sys", "dev", "tmp", "run", "usr/bin"):
            (root / directory).mkdir(exist_ok=True)
    return once("lib64", make)


def musl() -> pathlib.Path:
    """musl alone: busybox, and musl's loader as Debian packages it."""
    def make(root: pathlib.Path) -> None:
        busybox(root)
        package(root, "musl", "amd64")
        for directory in ("proc", "sys", "dev", "tmp", "run", "etc", "usr/bin"):
            (root / directory).mkdir(parents=True, exist_ok=True)
    return once("musl", make)
