# SPDX-License-Identifier: Apache-2.0
"""The first half of what a virtual machine host needs: everything that comes from Debian's packages and from nothing of ours.

In the directory that `fill` makes:
  6.1/, 6.12/    vmlinux, release (text), headers/ (to build modules with), modules/ (those that are used, uncompressed)
  6.12/vfio.symvers   the symbols of the vfio modules, where they are not the kernel's own
  qemu/          the headers of the installed QEMU
  uapi/          the declarations of VFIO and iommufd, of 6.12
  tools/         busybox, kmod and lspci for the host
  libvirt/       libvirt and the libraries of it that QEMU does not need
"""
import lzma
import pathlib
import re
import shutil
import subprocess

from debian import Archive, Missing, installed_source_version, jobs, run, unpack

KERNELS = {"6.1": "linux-image-amd64", "6.12": "linux-image-6.12-amd64"}
TOOLS = ["busybox-static", "kmod", "libkmod2", "pciutils", "libpci3"]
# The second line: libraries that a machine with QEMU may not have.
LIBVIRT = ["libvirt-daemon", "libvirt-daemon-driver-qemu", "libvirt-clients", "libvirt0", "dmidecode",
           "libparted2", "libpcap0.8", "libssh-4", "libyajl2", "libtirpc3", "libnl-3-200", "libdevmapper1.02.1", "libpciaccess0", "libcap-ng0"]
QEMU_HEADERS = ["include", "linux-headers", "tcg/i386"]
# Modules of the host, with those that they depend on. The first list is loaded before the root file system is there.
BOOT_MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay", "qemu_fw_cfg", "virtio_blk", "crc32c_generic", "ext4"]
MODULES = BOOT_MODULES + [
    "vfio-pci", "vfio_iommu_type1", "mdev", "kvm-amd", "kvm-intel", "vhost_net", "vhost_vsock", "tun", "snd-hda-intel",
    "veth", "bridge", "br_netfilter", "nf_tables", "nft_compat", "nft_chain_nat", "nft_masq", "nft_ct", "xt_MASQUERADE", "xt_comment",
    "xt_addrtype", "xt_conntrack", "loop", "fuse", "squashfs", "pci-pf-stub", "virtio_net"]
# Debian's 6.12 has neither iommufd nor /dev/vfio/devices, but exports everything that these modules need.
IOMMUFD_FLAGS = ("-DCONFIG_INTERVAL_TREE_SPAN_ITER=1 -DCONFIG_IOMMUFD_MODULE=1 -DCONFIG_IOMMUFD_DRIVER=1"
                 " -DCONFIG_VFIO_DEVICE_CDEV=1")
IOMMUFD = ["drivers/iommu/iommufd", "drivers/iommu/iommu-priv.h", "drivers/vfio", "lib/interval_tree.c"]


def release_of(image: str) -> str:
    return image.removeprefix("linux-image-")


def kernel_packages(archive: Archive, meta: str) -> list[str]:
    image = next(name for name in archive.depends(meta) if name.startswith("linux-image-"))
    headers = f"linux-headers-{release_of(image)}"
    parts = [name for name in archive.depends(headers) if re.match(r"linux-(headers|kbuild)-", name)]
    return [image, headers, *parts]


def packages(archive: Archive) -> tuple[dict[str, str], dict[str, str]]:
    """Every package with its version, and the release of each kernel."""
    names, releases = TOOLS + LIBVIRT + ["libglib2.0-dev", "linux-source-6.12"], {}
    for kernel, meta in KERNELS.items():
        found = kernel_packages(archive, meta)
        releases[kernel] = release_of(found[0])
        names += found
    return archive.versions(names), releases


def fill(archive: Archive, versions: dict[str, str], releases: dict[str, str], work: pathlib.Path, say) -> None:
    debs = work / "debs"
    debs.mkdir()
    archive.download(versions, debs)
    archive.source("qemu", installed_source_version("qemu-system-x86"), debs)
    say(f"downloaded {sum(path.stat().st_size for path in debs.iterdir()) >> 20} MiB of packages")
    make_tools(debs, TOOLS, work / "tools")
    make_tools(debs, LIBVIRT, work / "libvirt")
    for kernel, release in releases.items():
        make_kernel(debs, release, work / kernel, work / "tools")
        say(f"kernel {release}: unpacked, with headers")
    make_qemu_headers(debs, work / "qemu")
    say("headers of QEMU, with Debian's patches")
    make_iommufd(debs, work / "6.12", releases["6.12"])
    say("iommufd and vfio modules for 6.12")
    copy_interfaces(work / "6.12/headers", releases["6.12"], work / "uapi/linux")
    shutil.rmtree(debs)


def only(debs: pathlib.Path, pattern: str) -> pathlib.Path:
    found = list(debs.glob(pattern))
    if len(found) != 1:
        raise Missing(f"{pattern}: apt-get downloaded {len(found)} files of this name instead of one")
    return found[0]


def make_tools(debs: pathlib.Path, packages_of_it: list[str], tools: pathlib.Path) -> None:
    for name in packages_of_it:
        unpack(only(debs, f"{name}_*.deb"), tools)


def depmod(tools: pathlib.Path, root: pathlib.Path, release: str) -> None:
    """`root` has lib/modules."""
    run([tools / "bin/busybox", "depmod", "-b", root, release])


# ---- one kernel

def make_kernel(debs: pathlib.Path, release: str, out: pathlib.Path, tools: pathlib.Path) -> None:
    image, headers = out / "image", out / "headers"
    unpack(only(debs, f"linux-image-{release}_*.deb"), image)
    common = release.removesuffix("-amd64")
    for pattern in (f"linux-headers-{release}_*.deb", f"linux-headers-{common}-common_*.deb"):
        unpack(only(debs, pattern), headers)
    for package in debs.glob(f"linux-kbuild-{kbuild_version(release)}*_*.deb"):
        unpack(package, headers)
    (out / "release").write_text(release + "\n")
    (out / "vmlinux").write_bytes(uncompressed((image / f"boot/vmlinuz-{release}").read_bytes()))
    depmod(tools, image, release)
    copy_modules(image / f"lib/modules/{release}", out / "modules", MODULES)
    shutil.rmtree(image)


def kbuild_version(release: str) -> str:
    return "6.1" if release.startswith("6.1.") else release.removesuffix("-amd64")


def uncompressed(kernel: bytes) -> bytes:
    """The ELF file inside a bzImage. QEMU starts it directly, which saves the time of the unpacking in the guest."""
    for magic, unpacked in ((b"\xfd7zXZ\x00", unxz), (b"\x28\xb5\x2f\xfd", unzstd)):
        at = kernel.find(magic)
        while at >= 0:
            data = unpacked(kernel[at:])
            if data[:4] == b"\x7fELF":
                return data
            at = kernel.find(magic, at + 1)
    raise Missing("the kernel image has no part that is compressed by xz or zstd")


def unxz(data: bytes) -> bytes:
    try:
        return lzma.LZMADecompressor().decompress(data)
    except lzma.LZMAError:
        return b""


def unzstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False).stdout


def dependencies(tree: pathlib.Path) -> dict[str, list[str]]:
    """Module name (with _) -> its file and the files that it needs, in modules.dep's order."""
    found = {}
    for line in (tree / "modules.dep").read_text().splitlines():
        path, _, needs = line.partition(":")
        found[module_name(path)] = [path, *needs.split()]
    return found


def module_name(path: str) -> str:
    return pathlib.PurePath(path).name.split(".ko")[0].replace("-", "_")


def copy_modules(tree: pathlib.Path, out: pathlib.Path, names: list[str]) -> None:
    needed = dependencies(tree)
    for name in names:
        for path in needed.get(name.replace("-", "_"), []):
            target = out / re.sub(r"\.xz$", "", path)
            target.parent.mkdir(parents=True, exist_ok=True)
            data = (tree / path).read_bytes()
            target.write_bytes(lzma.decompress(data) if path.endswith(".xz") else data)
    for name in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
        if (tree / name).exists():
            shutil.copy(tree / name, out / name)


def build_modules(headers: pathlib.Path, release: str, source: pathlib.Path, *options: str) -> None:
    """Debian's headers name /usr/src; this makes them name the place where they are now."""
    tree = headers / f"usr/src/linux-headers-{release}"
    makefile = tree / "Makefile"
    text = re.sub(r"\S*/usr/src/", f"{headers}/usr/src/", makefile.read_text())
    if text != makefile.read_text():
        makefile.write_text(text)
    # Without BTF, which would need pahole; programs that read it are not what these modules are for.
    run(["make", "-s", "-C", tree, f"M={source}", "CONFIG_DEBUG_INFO_BTF_MODULES=", *options, jobs(), "modules"])


def copy_interfaces(headers: pathlib.Path, release: str, out: pathlib.Path) -> None:
    """The declarations of VFIO and iommufd for programs: this machine's own are those of 6.1."""
    out.mkdir(parents=True)
    common = headers / f"usr/src/linux-headers-{release.removesuffix('-amd64')}-common"
    for name in ("vfio.h", "iommufd.h"):
        shutil.copy(common / "include/uapi/linux" / name, out / name)


# ---- QEMU

def make_qemu_headers(debs: pathlib.Path, out: pathlib.Path) -> None:
    source = debs / "qemu-source"
    source.mkdir()
    run(["tar", "-C", source, "--strip-components=1", "-xf", only(debs, "qemu_*.orig.tar.xz")])
    run(["tar", "-C", source, "-xf", only(debs, "qemu_*.debian.tar.xz")])
    # The patches change structs that devices contain, so headers without them would give a device that does not fit.
    for line in (source / "debian/patches/series").read_text().splitlines():
        name = line.split("#")[0].strip()
        if name:
            run(["patch", "-s", "-f", "-p1", "-i", f"debian/patches/{name}"], cwd=source)
    generated = out / "generated"
    generated.mkdir(parents=True)
    run(["python3", source / "scripts/qapi-gen.py", "-b", "-o", generated / "qapi", source / "qapi/qapi-schema.json"])
    for name in QEMU_HEADERS:
        shutil.copytree(source / name, out / name, symlinks=True)
    (generated / "config-poison.h").touch()
    (generated / "linux-headers").mkdir()
    (generated / "linux-headers/asm").symlink_to("../../linux-headers/asm-x86")
    unpack(only(debs, "libglib2.0-dev_*.deb"), out / "glib")


# ---- iommufd

def make_iommufd(debs: pathlib.Path, out: pathlib.Path, release: str) -> None:
    source = debs / "iommufd"
    source.mkdir()
    deb = only(debs, "linux-source-6.12_*.deb")
    wanted = " ".join(f"linux-source-6.12/{name}" for name in IOMMUFD)
    run(["bash", "-o", "pipefail", "-c", f'dpkg-deb --fsys-tarfile "$0" | tar -xO ./usr/src/linux-source-6.12.tar.xz | tar -C "$1" --strip-components=1 -xJ {wanted}', deb, source])
    for path, text in iommufd_makefiles().items():
        (source / path).write_text(text)
    (source / "drivers/iommu/iommufd/span.c").write_text(span_functions((source / "lib/interval_tree.c").read_text()))
    build_modules(out / "headers", release, source)
    target = out / "modules/updates"
    target.mkdir(parents=True)
    shutil.copy(source / "Module.symvers", out / "vfio.symvers")
    for path in source.glob("drivers/**/*.ko"):
        run(["strip", "-g", path])
        shutil.copy(path, target / path.name)


def span_functions(interval_tree: str) -> str:
    """The part of lib/interval_tree.c that only a kernel with iommufd has; the kernel itself exports the rest."""
    block = re.search(r"(?s)#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER\n(.*?)#endif", interval_tree)
    if block is None:
        raise Missing("lib/interval_tree.c of linux-source-6.12 has no span iterator")
    return "#include <linux/interval_tree.h>\n#include <linux/compiler.h>\n#include <linux/export.h>\n" + block[1]


def iommufd_makefiles() -> dict[str, str]:
    return {
        "Kbuild": f"subdir-ccflags-y := {IOMMUFD_FLAGS}\nobj-m := drivers/iommu/iommufd/ drivers/vfio/\n",
        "drivers/iommu/iommufd/Makefile": "obj-m := iommufd.o\niommufd-y := device.o fault.o hw_pagetable.o io_pagetable.o ioas.o main.o"
                                          " pages.o vfio_compat.o iova_bitmap.o span.o\n",
        "drivers/vfio/Makefile": "obj-m := vfio.o vfio_iommu_type1.o pci/ mdev/\nvfio-y := vfio_main.o device_cdev.o group.o iommufd.o"
                                 " container.o virqfd.o\n",
        "drivers/vfio/pci/Makefile": "obj-m := vfio-pci-core.o vfio-pci.o\nvfio-pci-core-y := vfio_pci_core.o vfio_pci_intrs.o"
                                     " vfio_pci_rdwr.o vfio_pci_config.o\nvfio-pci-y := vfio_pci.o vfio_pci_igd.o\n",
        "drivers/vfio/mdev/Makefile": "obj-m := mdev.o\nmdev-y := mdev_core.o mdev_sysfs.o mdev_driver.o\n",
    }
