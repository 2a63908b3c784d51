# SPDX-License-Identifier: Apache-2.0
"""A separate world for a cluster: mount, process, network, host name and cgroup namespaces. Everything that the cluster
writes is in a tmpfs that exists only there. When the first process ends, the kernel ends all the others."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

PLACE = pathlib.Path("/mnt")  # short: the kubelet's sockets below it must fit into 107 characters
ADDRESS = "10.99.0.1"
HOST_NAME = "gpu-node"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# Sysctls that a kubelet wants to set for the whole machine. The machine is not ours, so it sees these files instead.
SYSCTLS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
           "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")


def call(*argv) -> None:
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(a) for a in argv)}: {done.stderr.strip()}")


def hierarchies() -> dict[str, str]:
    """The mount point of each cgroup hierarchy, and its name in /proc/self/cgroup; cgroup v2 has no name."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ")
        if kind == "cgroup":
            found[before.split(" ")[4]] = ",".join(o for o in options.split(",") if o not in ("rw", "ro", "xattr") and "=/" not in o)
        elif kind == "cgroup2" and before.split(" ")[4] == str(CGROUPS):
            found[str(CGROUPS)] = ""
    return found


def own_group(name: str) -> list[pathlib.Path]:
    """Moves this process into a new group of every hierarchy. In v1 the group is below the current one, so that its limits still
    apply; in v2 it is below the root, because a group with processes cannot have children with controllers."""
    groups = []
    for place, options in hierarchies().items():
        group = pathlib.Path(place) / (own_path(place).lstrip("/") if options else "") / name
        group.mkdir(exist_ok=True)
        for knob in ("cpuset.cpus", "cpuset.mems"):  # empty in a new v1 group; no process can enter while they are
            if (group / knob).exists() and not (group / knob).read_text().strip():
                (group / knob).write_text((group.parent / knob).read_text())
        (group / "cgroup.procs").write_text(str(os.getpid()))
        groups.append(group)
    return groups


def remove_groups(groups: list[pathlib.Path]) -> None:
    """Removes groups with rmdir, the innermost first. A group with a process in it stays."""
    for group in groups:
        for directory, _, _ in sorted(os.walk(group), reverse=True):
            for _ in range(50):
                try:
                    os.rmdir(directory)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)


def remove_pod_groups() -> None:
    """Removes the groups of all pods, as a reboot does."""
    remove_groups([pathlib.Path(place) / "kubepods" for place in hierarchies()])


def run_in(argv: list[str], *descriptors: int) -> int:
    """Runs a program in a new world and returns its status. The world ends with the program or with this process.
    The program inherits the descriptors."""
    before = {place: own_path(place) for place in hierarchies()}
    groups = own_group(f"gantry-cluster-{os.getpid()}")
    environment = dict(os.environ, GANTRY_WORLD="inside", TMPDIR=str(PLACE))
    # The shell is the world's first process and takes the orphans that shims leave behind.
    inside = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "--propagation", "private",
              "sh", "-c", '"$@" & wait $!', "cluster", *argv]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what follows is done then too
    process = subprocess.Popen(inside, env=environment, stdin=subprocess.DEVNULL, pass_fds=descriptors)
    try:
        for place, path in before.items():
            (pathlib.Path(place) / path.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
        return process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        remove_groups(groups)


def own_path(place: str) -> str:
    """Where this process is in the hierarchy mounted there."""
    options = hierarchies()[place]
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if (number == "0" and not options) or (options and controllers == options):
            return path
    return "/"


def mount_cgroups() -> None:
    """Mounts the hierarchies with this world's group as their root. Leaves out a unified hierarchy next to v1: some runtimes refuse it."""
    old = hierarchies()
    if old == {str(CGROUPS): ""}:
        call("mount", "-t", "cgroup2", "cgroup2", CGROUPS)
    else:
        call("mount", "-t", "tmpfs", "-o", "mode=755", "cgroups", CGROUPS)
        for place, options in old.items():
            pathlib.Path(place).mkdir()
            call("mount", "-t", "cgroup", "-o", f"none,{options}" if options.startswith("name=") else options, "cgroup", place)
    own_group("lane")  # a v2 group with processes cannot have children with controllers


def make_network() -> None:
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "node0", "type", "veth", "peer", "name", "wire0")
    for link in ("node0", "wire0"):
        call("ip", "link", "set", link, "up")
    call("ip", "address", "add", f"{ADDRESS}/24", "dev", "node0")
    call("ip", "route", "add", "default", "via", "10.99.0.254", "dev", "node0")
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def cover_sysctls() -> None:
    """Mounts plain files over sysctls that belong to the whole machine, and over the boot id, which a simulated reboot changes."""
    files = PLACE / "sysctl"  # a separate file system, or the kubelet takes one of these files for the place of its images
    files.mkdir()
    call("mount", "-t", "tmpfs", "-o", "mode=755", "sysctl", files)
    for name, value in SYSCTLS.items():
        cover(pathlib.Path("/proc/sys") / name, files / name, f"{value}\n")
    cover(BOOT_ID, files / "boot_id", BOOT_ID.read_text())


def cover(target: pathlib.Path, source: pathlib.Path, text: str) -> None:
    if target.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        call("mount", "--bind", source, target)


def furnish() -> None:
    """Prepares the new world. The program in it calls this first."""
    if os.environ.get("GANTRY_WORLD") != "inside":
        raise RuntimeError("not in a separate world: start it through world.run_in")
    call("mount", "-t", "proc", "proc", "/proc")
    call("mount", "-t", "tmpfs", "-o", "mode=755", "gantry-cluster", PLACE)
    call("mount", "--make-rshared", "/")
    socket.sethostname(HOST_NAME)
    mount_cgroups()
    make_network()
    cover_sysctls()
