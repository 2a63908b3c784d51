# SPDX-License-Identifier: Apache-2.0
"""OCI bundles made by hand: busybox, this machine's glibc, and our programs."""
import json
import os
import pathlib
import shutil
import subprocess

from lane_support import Lane

APPLETS = ("sh", "sleep", "cat", "ls", "id", "mknod", "head", "true", "tail", "stat", "find", "grep", "test", "env")
PROGRAMS = ("gantry-vector-add", "gantry-device-query")
WORKLOADS = (*PROGRAMS, "gantry-trainer", "gantry-notebook")
DIRECTORIES = ("bin", "usr/bin", "usr/local", "lib64", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "proc", "dev", "sys", "tmp", "etc")


def fill(lane: Lane, path: pathlib.Path, programs: tuple[str, ...] = PROGRAMS) -> None:
    """An image's root file system, without a loader's cache."""
    for directory in DIRECTORIES:
        (path / directory).mkdir(parents=True)
    (path / "tmp").chmod(0o1777)
    shutil.copy("/bin/busybox", path / "bin/busybox")
    for name in APPLETS:
        (path / "bin" / name).symlink_to("busybox")
    # libdl for nvidia-smi: as in any image with glibc.
    libraries = {"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libc.so.6"}
    for program in programs:
        shutil.copy(lane.bin / program, path / "usr/bin" / program)
        for line in lane.run("ldd", lane.bin / program).stdout.splitlines():
            libraries |= {word for word in line.split() if word.startswith("/")}
    for library in libraries:
        directory = "lib64" if "ld-linux" in library else "lib/x86_64-linux-gnu"
        shutil.copy(os.path.realpath(library), path / directory / os.path.basename(library))


class Bundles:
    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.image = lane.work / "image"
        fill(lane, self.image)
        lane.run("/sbin/ldconfig", "-r", self.image)

    def make(self, name: str, argv: list[str], env: list[str], *, readonly: bool = False, uid: int = 0,
             annotations: dict[str, str] | None = None, capabilities: list[str] | None = None,
             user_namespace: bool = False) -> pathlib.Path:
        path = self.lane.work / "bundles" / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        shutil.copytree(self.image, path / "rootfs", symlinks=True)
        subprocess.run(["runc", "spec"], cwd=path, check=True)
        spec = json.loads((path / "config.json").read_text())
        spec["process"].update(args=argv, terminal=False, env=["PATH=/usr/bin:/bin", *env])
        spec["process"]["user"] = {"uid": uid, "gid": uid}
        spec["root"]["readonly"] = readonly
        if annotations:
            spec["annotations"] = annotations
        if user_namespace:
            mapping = [{"containerID": 0, "hostID": 100000, "size": 65536}]
            spec["linux"]["namespaces"].append({"type": "user"})
            spec["linux"].update(uidMappings=mapping, gidMappings=mapping)
            for directory, _, files in os.walk(path / "rootfs"):
                for entry in (directory, *(os.path.join(directory, f) for f in files)):
                    os.lchown(entry, 100000, 100000)
        for held in spec["process"]["capabilities"].values():
            held.extend(capabilities or [])
        (path / "config.json").write_text(json.dumps(spec))
        return path

    def true_runtime(self) -> pathlib.Path:
        """A configuration whose low-level runtime does nothing, for tests of what happens before it."""
        path = self.lane.work / "true.toml"
        path.write_text('[nvidia-container-runtime]\nruntimes = ["/bin/true"]\n')
        return path
