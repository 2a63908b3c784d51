# SPDX-License-Identifier: Apache-2.0
"""Malicious images. Each function makes one of an image's root; `host` is what its author would like to reach."""
import os
import pathlib
import shutil
import stat
import subprocess
import sys

SECRET = "the host's own words"
UP = "../" * 16


# What the container sees: the secret anywhere, or a mount whose source is not the driver's.
LOOK = f"""find / -xdev -name secret | head; find /etc /usr/local -type f -size -64k -exec grep -l "{SECRET}" '{{}}' ';'
grep -v -e ' - proc ' -e ' - sysfs ' -e ' - tmpfs ' -e ' - devpts ' -e ' - mqueue ' -e ' - cgroup' /proc/self/mountinfo; echo looked"""


def mounts_seen(text: str) -> list[str]:
    """Sources of the mounts below the container's root, as paths of their file system."""
    return [line.split()[3] for line in text.splitlines() if " - " in line and line.split()[4] != "/"]


def make_host(host: pathlib.Path) -> None:
    for directory in ("lib64", "etc/ld.so.conf.d", "nvidia/lib64", "glibc-hwcaps/x86-64-v2", "volume", "cached"):
        (host / directory).mkdir(parents=True)
    (host / "secret").write_text(SECRET)
    (host / "etc/ld.so.cache").write_text(SECRET)
    (host / "cached/ld.so.cache").write_text("the volume's")


def link(path: pathlib.Path, target: str) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def usr_lib_is_the_root(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr/lib", "/")


def climbing(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr/local", UP + str(host)[1:])


def destination_is_the_hosts(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr/local/nvidia", str(host / "nvidia"))


def destination_is_at_the_hosts_path(root: pathlib.Path, host: pathlib.Path) -> None:
    destination_is_the_hosts(root, host)
    (root / str(host / "nvidia")[1:]).mkdir(parents=True)


def all_is_at_the_hosts_path(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / str(host / "etc/ld.so.conf.d")[1:]).mkdir(parents=True)
    configuration_is_the_hosts(root, host)
    all_of_etc_is_the_hosts(root, host)


def program_is_the_hosts(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr/bin/nvidia-smi", str(host / "secret"))


def through_proc(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr/local/nvidia", f"/proc/1/root{host}")


def cache_is_the_hosts(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "etc/ld.so.cache", str(host / "etc/ld.so.cache"))


def configuration_is_the_hosts(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "etc/ld.so.conf.d", str(host / "etc/ld.so.conf.d"))
    link(root / "etc/ld.so.conf", str(host / "secret"))


def all_of_etc_is_the_hosts(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "etc", str(host / "etc"))


def directories_for_compat(root: pathlib.Path, host: pathlib.Path) -> None:
    compat = root / "usr/local/cuda/compat"
    (compat / "libcuda.so.999.99.99").mkdir(parents=True)
    link(compat / "libnvidia-ptxjitcompiler.so.999.99.99", str(host / "secret"))


def compat_is_the_hosts(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr/local/cuda/compat", str(host / "lib64"))
    link(root / "usr/local/cuda/compat2/libcuda.so.1", "/etc/shadow")


def directory_for_a_file(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / "usr/bin/nvidia-smi").mkdir()


def fifos(root: pathlib.Path, host: pathlib.Path) -> None:
    for name in ("etc/ld.so.cache", "etc/ld.so.conf"):
        (root / name).unlink(missing_ok=True)
        os.mkfifo(root / name)
    os.mkfifo(root / "usr/bin/nvidia-smi")


def damaged_cache(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / "etc/ld.so.cache").write_bytes(b"glibc-ld.so.cache1.1" + b"\xff" * 4096)


def loop_of_links(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr/local/nvidia", "nvidia")


def etc_is_in_a_volume(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / "data").mkdir()
    link(root / "etc", "/data")


def etc_with_a_cache_is_in_a_volume(root: pathlib.Path, host: pathlib.Path) -> None:
    etc_is_in_a_volume(root, host)


def destination_is_in_a_volume(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / "data").mkdir()
    link(root / "usr/local", "/data")


def program_is_in_a_volume(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / "data").mkdir()
    link(root / "usr/bin", "/data")


def etc_is_in_a_volume_with_dots_in_its_name(root: pathlib.Path, host: pathlib.Path) -> None:
    etc_is_in_a_volume(root, host)


def etc_is_in_a_volume_that_is_not_there_yet(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "etc", "/data")


def volume_over_etc(root: pathlib.Path, host: pathlib.Path) -> None:
    pass


def volume_over_run(root: pathlib.Path, host: pathlib.Path) -> None:
    pass


def volume_over_usr(root: pathlib.Path, host: pathlib.Path) -> None:
    pass


def all_of_usr_is_the_hosts(root: pathlib.Path, host: pathlib.Path) -> None:
    link(root / "usr", str(host))


def cache_is_a_device(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / "etc/ld.so.cache").unlink(missing_ok=True)
    os.mknod(root / "etc/ld.so.cache", 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero: endless


def cache_is_a_directory(root: pathlib.Path, host: pathlib.Path) -> None:
    (root / "etc/ld.so.cache").unlink(missing_ok=True)
    (root / "etc/ld.so.cache").mkdir()


def cache_is_huge(root: pathlib.Path, host: pathlib.Path) -> None:
    with open(root / "etc/ld.so.cache", "r+b") as file:
        file.truncate(1 << 40)


def nodes_are_links(root: pathlib.Path, host: pathlib.Path) -> None:
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        link(root / "dev" / name, str(host / "secret"))


def note(name: bytes, size: int, content: bytes) -> bytes:
    return len(name).to_bytes(4, "little") + size.to_bytes(4, "little") + (1).to_bytes(4, "little") + name + content


def hostile_notes(root: pathlib.Path, host: pathlib.Path) -> None:
    """A libcuda whose section with the note says that it is longer than all memory, and lies elsewhere."""
    compat = root / "usr/local/cuda/compat"
    compat.mkdir(parents=True)
    names = b"\0.note.cuda.compat\0.shstrtab\0"
    sections = [bytes(64)]
    for at, offset, size in ((1, 0xFFFFFFFFFFFFFF00, 0xFFFFFFFFFFFFFFF0), (19, 64, len(names))):
        kind = 7 if at == 1 else 3
        sections.append(at.to_bytes(4, "little") + kind.to_bytes(4, "little") + bytes(16) + offset.to_bytes(8, "little") + size.to_bytes(8, "little") + bytes(24))
    table = 64 + len(names)
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + (62).to_bytes(2, "little") + (1).to_bytes(4, "little") + bytes(16)
    header += table.to_bytes(8, "little") + bytes(4) + (64).to_bytes(2, "little") + (56).to_bytes(2, "little") + bytes(2) + (64).to_bytes(2, "little")
    header += (0xFFFF).to_bytes(2, "little") + (2).to_bytes(2, "little")
    (compat / "libcuda.so.999.99.99").write_bytes(header + names + b"".join(sections) + note(b"NVIDIA\0\0", 0xFFFFFFF0, b"{"))


def own_ldconfig(root: pathlib.Path, host: pathlib.Path) -> None:
    """Whoever runs it with the host in reach leaves a word there."""
    (root / "sbin").mkdir(exist_ok=True)
    (root / "sbin/ldconfig").write_text(f"#!/bin/sh\necho ran > {host}/ran\necho ran > /ran\n")
    (root / "sbin/ldconfig").chmod(0o755)


def preloaded(root: pathlib.Path, host: pathlib.Path) -> None:
    """A library for LD_PRELOAD=/proc/self/cwd/poc.so that leaves a word on the host when it is loaded there."""
    source = root / "poc.c"
    source.write_text('#include <fcntl.h>\n__attribute__((constructor)) static void in(void) { open("%s/loaded", O_CREAT | O_WRONLY, 0600); }\n' % host)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(root / "poc.so"), str(source)], check=True)


def exchanging(one: pathlib.Path, other: pathlib.Path) -> subprocess.Popen:
    """Exchanges two names for as long as it lives, as fast as it can (RENAME_EXCHANGE)."""
    loop = ("import ctypes, os, sys\nlibc = ctypes.CDLL(None)\na, b = (os.fsencode(p) for p in sys.argv[1:])\n"
            "while True: libc.renameat2(-100, a, -100, b, 2)")
    return subprocess.Popen([sys.executable, "-c", loop, str(one), str(other)])


# A volume of the host, at /data unless DESTINATIONS says otherwise: nothing is created in it, whether the image's links lead there or not.
VOLUMES = {etc_is_in_a_volume: "volume", etc_with_a_cache_is_in_a_volume: "cached", destination_is_in_a_volume: "volume", program_is_in_a_volume: "volume",
           etc_is_in_a_volume_with_dots_in_its_name: "volume", etc_is_in_a_volume_that_is_not_there_yet: "volume", volume_over_etc: "volume", volume_over_run: "volume",
           volume_over_usr: "volume"}
DESTINATIONS = {etc_is_in_a_volume_with_dots_in_its_name: "/a/../data", volume_over_etc: "/etc", volume_over_run: "/run", volume_over_usr: "/usr"}

# Which known weakness of other tools an image is made for (docs: SECURITY.md has the table).
CVE = {usr_lib_is_the_root: "CVE-2024-0134", climbing: "CVE-2024-0133", destination_is_the_hosts: "CVE-2024-0133", destination_is_at_the_hosts_path: "CVE-2024-0133",
       program_is_the_hosts: "CVE-2024-0133", through_proc: "CVE-2024-0132", cache_is_the_hosts: "CVE-2025-23267", configuration_is_the_hosts: "CVE-2025-23267",
       all_of_etc_is_the_hosts: "CVE-2025-23267", all_is_at_the_hosts_path: "CVE-2025-23267", directories_for_compat: "CVE-2024-0132",
       compat_is_the_hosts: "CVE-2024-0132", preloaded: "CVE-2025-23266", own_ldconfig: "CVE-2024-0135, CVE-2024-0136, CVE-2024-0137"}


def label(image) -> str:
    name = image.__name__.replace("_", " ")
    return f"{name} [{CVE[image]}]" if image in CVE else name


def add_volume(image, spec: dict, host: pathlib.Path) -> None:
    if image in VOLUMES:
        spec["mounts"].append({"destination": DESTINATIONS.get(image, "/data"), "type": "bind", "source": str(host / VOLUMES[image]), "options": ["rbind", "rw"]})
