# SPDX-License-Identifier: Apache-2.0
"""Root file systems in which packages are installed: what a package changes is seen there, and nothing of it stays on this machine."""
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess

from lane_support import Lane

# What the package managers themselves write, whatever is installed.
THEIRS = ("var/lib/dpkg", "var/lib/apt", "var/lib/rpm", "var/lib/dnf", "var/lib/zypp", "var/lib/swcatalog", "usr/lib/sysimage/rpm", "var/log", "var/cache", "root", "tmp",
          "run/lock", "etc/ld.so.cache")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Root:
    """A root file system with this machine's /proc and /dev."""

    def __init__(self, lane: Lane, root: pathlib.Path) -> None:
        self.lane, self.root = lane, root

    def mount_kernel(self) -> None:
        for kernel in ("proc", "dev"):
            (self.root / kernel).mkdir(exist_ok=True)
            subprocess.run(["mount", "--rbind", f"/{kernel}", self.root / kernel], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "gantry-lane", self.root / "run"], check=True)

    def run(self, *argv, **kwargs) -> subprocess.CompletedProcess:
        environment = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        return self.lane.run("chroot", self.root, *argv, env=environment, **kwargs)

    def path(self, below: str) -> pathlib.Path:
        return self.root / below


class DebRoot(Root):
    """This machine's root in an overlay, or another image; changes go to a separate directory."""

    def __init__(self, lane: Lane, name: str, image: pathlib.Path = pathlib.Path("/")) -> None:
        self.image = image
        base = lane.work / name
        base.mkdir()
        # An overlay cannot have its upper layer below its lower one: both go on a tmpfs.
        subprocess.run(["mount", "-t", "tmpfs", "gantry-lane", base], check=True)
        self.upper = base / "upper"
        super().__init__(lane, base / "root")
        for directory in (self.upper, base / "work", self.root):
            directory.mkdir()
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={image},upperdir={self.upper},workdir={base}/work", self.root], check=True)
        self.mount_kernel()
        # With the journals of a Gantry on this machine, removing the package would undo its changes to the engines of this machine, and the
        # lane would count them as files that the package left.
        self.run("rm", "-rf", "/var/lib/gantry", "/etc/gantry", check=True)
        self.remember()

    def remember(self) -> None:
        self.before = self.changed()

    def left(self) -> list[str]:
        """What changed since remember()."""
        return sorted(set(self.changed()) ^ set(self.before))

    def changed(self) -> list[str]:
        """Files and links that are not as in the image, and directories that are new."""
        found = []
        for directory, _, files in os.walk(self.upper):
            below = os.path.relpath(directory, self.upper)
            found += [os.path.normpath(os.path.join(below, file)) for file in files]
            found += [] if os.path.isdir(self.image / below) else [below]
        return sorted(path for path in found if not path.startswith(THEIRS))


LIBRARIES = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "ld-linux-x86-64.so.2")
APPLETS = ("cat", "chmod", "cp", "cut", "env", "grep", "head", "ls", "mkdir", "mv", "readlink", "rm", "rmdir", "sed", "sh", "test")
# Says what it was asked, so that a lane can look at what the scripts of a package do.
RECORDER = '#!/bin/sh\necho "${0##*/} $*" >>/var/log/asked\n'
SPEC = """Name: {name}
Version: {version}
Release: {release}
Summary: A stand-in for a test
License: Apache-2.0
{header}
%description
A stand-in for a test.
%files
%defattr(-,root,root)
{files}
"""


# Content, a file to copy, the target of a link, or None for a directory.
Files = dict[str, bytes | pathlib.Path | str | None]


def place_files(top: pathlib.Path, files: Files) -> None:
    top.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        place = top / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.mkdir(exist_ok=True)
        elif isinstance(content, str):
            place.unlink(missing_ok=True)
            place.symlink_to(content)
        else:
            place.write_bytes(content.read_bytes() if isinstance(content, pathlib.Path) else content)
            place.chmod(0o755)


def stub_rpm(lane: Lane, name: str, files: Files, version: str = "1.0", header: str = "AutoProv: no") -> pathlib.Path:
    """The version may have a release behind a dash."""
    version, _, release = version.partition("-")
    release = release or "1"
    top = lane.work / f"rpm-{name}-{version}-{release}"
    place_files(top / "root", files)
    listed = "\n".join(("%dir " if content is None else "") + path for path, content in files.items())
    (top / "stub.spec").write_text(SPEC.format(name=name, version=version, release=release, header=header, files=listed))
    definitions = {"_topdir": top, "_rpmdir": lane.work / "stubs", "_build_id_links": "none", "_binary_payload": "w0.gzdio", "__os_install_post": "%{nil}"}
    defined = [word for key, value in definitions.items() for word in ("--define", f"{key} {value}")]
    made = lane.run("rpmbuild", "-bb", "--quiet", "--target", "x86_64", "--buildroot", top / "root", *defined, top / "stub.spec")
    if made.returncode != 0:
        raise RuntimeError(f"rpmbuild of {name}: {made.stderr}")
    return lane.work / f"stubs/x86_64/{name}-{version}-{release}.x86_64.rpm"


def found_library(name: str) -> pathlib.Path:
    for directory in ("/lib64", "/lib/x86_64-linux-gnu", "/usr/lib64"):
        if os.path.exists(f"{directory}/{name}"):
            return pathlib.Path(f"{directory}/{name}").resolve()
    raise FileNotFoundError(name)


def system_rpms(lane: Lane) -> list[pathlib.Path]:
    """What every rpm system has and Gantry's package needs: directories, glibc, a shell, systemctl and udevadm. rpmbuild finds by itself
    which symbol versions the libraries provide, as it does for the real packages."""
    directories = ("/dev", "/etc", "/proc", "/root", "/run", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin", "/usr/lib/systemd",
                   "/usr/lib/systemd/system", "/usr/lib/udev", "/usr/lib/udev/rules.d", "/usr/share", "/usr/share/bash-completion",
                   "/usr/share/bash-completion/completions", "/usr/share/doc", "/usr/share/man", "/usr/share/man/man1", "/usr/share/man/man8",
                   "/usr/share/zsh", "/var", "/var/lib", "/var/log", "/var/tmp")
    links = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64", "/usr/lib/x86_64-linux-gnu": "../lib64"}
    shell = {"/usr/bin/busybox": pathlib.Path(shutil.which("busybox")), **{f"/usr/bin/{name}": "busybox" for name in APPLETS}}
    return [stub_rpm(lane, "filesystem", {**dict.fromkeys(directories), **links}),
            stub_rpm(lane, "glibc", {f"/usr/lib64/{name}": found_library(name) for name in LIBRARIES}, header="AutoReq: no\nProvides: rtld(GNU_HASH)"),
            stub_rpm(lane, "bash", shell, header="AutoProv: no\nProvides: /bin/sh"),
            stub_rpm(lane, "systemd", {f"/usr/bin/{name}": RECORDER.encode() for name in ("systemctl", "udevadm")})]


class RpmRoot(Root):
    """A root of rpm packages alone, and rpm, dnf and zypper of this machine, which work on it."""

    def __init__(self, lane: Lane, name: str, packages: list[pathlib.Path]) -> None:
        super().__init__(lane, lane.work / name)
        self.root.mkdir()
        # Debian's rpm keeps its database in the home directory.
        self.home = lane.work / f"{name}-home"
        self.home.mkdir()
        (self.home / ".rpmmacros").write_text("%_dbpath /var/lib/rpm\n")
        self.rpm("-i", *packages, check=True)
        self.mount_kernel()
        (self.root / "run/systemd/system").mkdir(parents=True)
        self.remember()

    def manage(self, *argv, **kwargs) -> subprocess.CompletedProcess:
        return self.lane.run(*argv, env={"PATH": PATH, "HOME": str(self.home), "LC_ALL": "C.UTF-8"}, **kwargs)

    def rpm(self, *argv, **kwargs) -> subprocess.CompletedProcess:
        return self.manage("rpm", "--root", self.root, *argv, **kwargs)

    def remember(self) -> None:
        self.before = self.files()

    def left(self) -> list[str]:
        """What changed since remember()."""
        now = self.files()
        return sorted(path for path in self.before.keys() | now.keys() if self.before.get(path) != now.get(path))

    def files(self) -> dict[str, tuple]:
        found = {}
        for directory, names, files in os.walk(self.root):
            below = os.path.relpath(directory, self.root)
            names[:] = [name for name in names if not os.path.ismount(os.path.join(directory, name))]
            for name in (*names, *files):
                path = os.path.normpath(os.path.join(below, name))
                if not path.startswith(THEIRS):
                    found[path] = described(pathlib.Path(directory, name))
        return found


def described(path: pathlib.Path) -> tuple:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return (status.st_mode, os.readlink(path))
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
    return (status.st_mode, status.st_uid, status.st_gid, content)


def stub_deb(lane: Lane, name: str, files: Files, version: str = "1.0", header: str = "") -> pathlib.Path:
    top = lane.work / f"deb-{name}-{version}"
    place_files(top, files)
    (top / "DEBIAN").mkdir(exist_ok=True)
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a <a@example.com>\n{header}Description: a stand-in\n"
    (top / "DEBIAN/control").write_text(control)
    made = lane.run("dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "-b", top, lane.work / f"{name}-{version}.deb")
    if made.returncode != 0:
        raise RuntimeError(f"dpkg-deb of {name}: {made.stderr}")
    return lane.work / f"{name}-{version}.deb"
