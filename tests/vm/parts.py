# SPDX-License-Identifier: Apache-2.0
"""The second half of what a virtual machine host needs: what is built from this tree, on top of base.py's directory.

In the directory that `fill` makes:
  gantry-gpu.so       sim/pci, for LD_PRELOAD
  6.1/, 6.12/         vmlinux, initrd, release, root/ (laid over the host's root file system: modules, kmod, lspci)
  bin/                tests/vm/programs, static
  libvirt/            laid over /usr and /etc of a host that uses libvirt
  versions            one "name version" per line
"""
import os
import pathlib
import shutil
import subprocess

import base
from debian import Missing, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILED = ["sim/pci", "sim/kernel"]
OTHERS = ["sim/host", "tests/vm/programs"]


def sources(folders: list[str]) -> list[pathlib.Path]:
    return [path for name in folders for path in sorted((ROOT / name).iterdir()) if path.is_file()]


def compile_all(base_dir: pathlib.Path, releases: dict[str, str], work: pathlib.Path, say) -> None:
    """The PCI device and the kernel modules. They take longer than the rest, and have a directory of their own for that reason."""
    build_device(base_dir / "qemu", work / "gantry-gpu.so")
    say("gantry-gpu.so: the PCI device")
    for kernel, release in releases.items():
        build_driver(base_dir / kernel, release, work / "build", work / kernel)
        say(f"kernel {release}: simulated driver")


def fill(base_dir: pathlib.Path, compiled: pathlib.Path, releases: dict[str, str], versions: dict[str, str], work: pathlib.Path) -> None:
    shutil.copy(compiled / "gantry-gpu.so", work)
    (work / "bin").mkdir()
    for source in sorted((ROOT / "tests/vm/programs").glob("*.c")):
        run(["gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror", "-D__user=", f"-I{base_dir / 'uapi'}", f"-I{ROOT}", "-o", work / "bin" / source.stem, source])
    lay_below_usr(base_dir / "libvirt", work / "libvirt")
    shutil.copytree(base_dir / "libvirt/etc/libvirt", work / "libvirt/etc/libvirt")
    for kernel, release in releases.items():
        make_host(base_dir, compiled, kernel, release, work / kernel)
    (work / "versions").write_text("".join(f"{name} {version}\n" for name, version in sorted(versions.items())))


def build_device(qemu: pathlib.Path, out: pathlib.Path) -> None:
    generated, glib = qemu / "generated", qemu / "glib/usr"
    includes = [ROOT / "sim/pci", generated, generated / "qapi", qemu / "include", qemu, qemu / "tcg/i386",
                glib / "include/glib-2.0", glib / "lib/x86_64-linux-gnu/glib-2.0/include"]
    system = [qemu / "linux-headers", generated / "linux-headers"]
    run(["gcc", "-shared", "-fPIC", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-fno-strict-aliasing", "-Wall", "-Werror",
         *[f"-I{path}" for path in includes], *[word for path in system for word in ("-isystem", path)], "-o", out, ROOT / "sim/pci/gpu.c"])


def make_host(base_dir: pathlib.Path, compiled: pathlib.Path, kernel: str, release: str, out: pathlib.Path) -> None:
    given = base_dir / kernel
    modules = out / f"root/usr/lib/modules/{release}"
    out.mkdir()
    os.link(given / "vmlinux", out / "vmlinux")
    shutil.copy(given / "release", out / "release")
    shutil.copytree(given / "modules", modules)
    shutil.copytree(compiled / kernel, modules / "updates", dirs_exist_ok=True)
    add_tools(base_dir / "tools", out / "root")
    index_modules(base_dir / "tools", out / "root/usr", release)
    make_initrd(base_dir / "tools", modules, out)


def build_driver(given: pathlib.Path, release: str, build: pathlib.Path, target: pathlib.Path) -> None:
    symbols = given / "vfio.symvers"
    # Structs of vfio have other members with iommufd than without.
    options = [f"KBUILD_EXTRA_SYMBOLS={symbols}", f"GANTRY_VFIO_FLAGS={base.IOMMUFD_FLAGS}"] if symbols.exists() else []
    for name in ("pci", "kernel"):
        shutil.copytree(ROOT / "sim" / name, build / name)
    base.build_modules(given / "headers", release, build / "kernel", *options)
    target.mkdir()
    for path in (build / "kernel").glob("*.ko"):
        run(["strip", "-g", path])
        shutil.copy(path, target / path.name)
    shutil.rmtree(build)


def index_modules(tools: pathlib.Path, root: pathlib.Path, release: str) -> None:
    """By kmod's own depmod: modprobe needs its binary files, and it prefers modules in updates/ to those of the same name."""
    libraries = f"{tools}/lib/x86_64-linux-gnu:{tools}/usr/lib/x86_64-linux-gnu"
    run(["depmod", "-b", root, release], executable=str(tools / "bin/kmod"), env=os.environ | {"LD_LIBRARY_PATH": libraries})


def lay_below_usr(tools: pathlib.Path, root: pathlib.Path) -> None:
    """All programs and libraries below /usr, whether or not the host's file system has /bin apart from /usr/bin."""
    for name in ("bin", "sbin", "lib", "usr/bin", "usr/sbin", "usr/lib", "usr/share/libvirt"):
        if (tools / name).is_dir():
            shutil.copytree(tools / name, root / "usr" / name.removeprefix("usr/"), symlinks=True, dirs_exist_ok=True)


def add_tools(tools: pathlib.Path, root: pathlib.Path) -> None:
    """kmod and lspci."""
    lay_below_usr(tools, root)
    (root / "usr/bin/busybox").unlink(missing_ok=True)
    for name in ("modprobe", "insmod", "rmmod", "lsmod", "modinfo", "depmod"):
        link = root / "usr/sbin" / name
        link.unlink(missing_ok=True)
        link.symlink_to("../bin/kmod")
    (root / "usr/bin/lsmod").unlink(missing_ok=True)
    (root / "usr/bin/lsmod").symlink_to("kmod")


def make_initrd(tools: pathlib.Path, modules: pathlib.Path, out: pathlib.Path) -> None:
    tree = out / "initrd-tree"
    for name in ("bin", "modules", "proc", "sys", "dev", "host", "layer", "changes", "new"):
        (tree / name).mkdir(parents=True)
    busybox = tools / "bin/busybox"
    shutil.copy(busybox, tree / "bin/busybox")
    for applet in run([busybox, "--list"]).split():
        if applet != "busybox":
            (tree / "bin" / applet).symlink_to("busybox")
    for name in ("init", "start"):
        shutil.copy(ROOT / "sim/host" / name, tree / name)
        (tree / name).chmod(0o755)
    (tree / "modules/order").write_text("".join(f"{path.name}\n" for path in boot_modules(modules, tree / "modules")))
    with (out / "initrd").open("wb") as file:
        find = subprocess.run(["find", ".", "-print0"], cwd=tree, capture_output=True, check=True).stdout
        packed = subprocess.run([busybox, "cpio", "-0", "-o", "-H", "newc", "-R", "0:0"], cwd=tree, input=find, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=False)
        if packed.returncode != 0:
            raise Missing("busybox cpio failed")
        file.write(packed.stdout)
    shutil.rmtree(tree)


def boot_modules(modules: pathlib.Path, into: pathlib.Path) -> list[pathlib.Path]:
    """Copies the modules that the root file system needs, and returns them in the order in which they must be loaded."""
    needed, order = base.dependencies(modules), []
    for name in base.BOOT_MODULES:
        for path in reversed(needed.get(name.replace("-", "_"), [])):
            target = into / pathlib.PurePath(path).name
            if target not in order:
                shutil.copy(modules / path, target)
                order.append(target)
    return order
