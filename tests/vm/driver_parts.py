# SPDX-License-Identifier: Apache-2.0
"""What topic driver_install needs besides the host: simulated driver packages, and modules of them that were built outside, as a
central place builds and signs them.

In the directory that `make` returns:
  NVIDIA-Linux-x86_64-VERSION.run    for each of VERSIONS
  VERSION/, VERSION-open/            the modules for the kernel of host 6.1
  VERSION-signed/                    the proprietary ones, signed with the key that 6.1-own-key trusts
  */SHA256SUMS                       the digests of the modules beside it
  nouveau.ko                         a driver with nouveau's name
"""
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e")]

import user_cache  # noqa: E402
from debian import jobs, run  # noqa: E402

VERSIONS = ("460.56", "580.159.04")
NOUVEAU = pathlib.Path(__file__).with_name("nouveau.c")
FLAVOURS = {"kernel": "", "kernel-open": "-open"}


def make(binary: pathlib.Path, parts: pathlib.Path) -> pathlib.Path:
    """`binary` is the directory of our programs, `parts` what tools/vm-prepare made."""
    with tempfile.TemporaryDirectory(prefix="gantry-vm-drivers-") as work:
        packages = [package(binary, version, pathlib.Path(work)) for version in VERSIONS]
        recipe = [pathlib.Path(__file__), NOUVEAU, *packages, (parts / "6.1/headers").resolve(), parts / "signing/certificate.pem"]
        return user_cache.once("vm-drivers", [str(part) if part.is_dir() else part for part in recipe], lambda out: fill(packages, parts, out))


def package(binary: pathlib.Path, version: str, work: pathlib.Path) -> pathlib.Path:
    path = work / f"NVIDIA-Linux-x86_64-{version}.run"
    run([binary / "gantry", "sim", "package", "--driver", version, "-o", path])
    return path


def fill(packages: list[pathlib.Path], parts: pathlib.Path, out: pathlib.Path) -> None:
    release = (parts / "6.1/release").read_text().strip()
    headers = parts / f"6.1/headers/linux-headers-{release}"
    for path in packages:
        shutil.copy(path, out)
        version = path.name.removesuffix(".run").rpartition("-")[2]
        tree = out / f"tree-{version}"
        run(["sh", path, "-x", "--target", tree])
        for folder, suffix in FLAVOURS.items():
            if (tree / folder).is_dir():
                run(["make", "-C", tree / folder, f"SYSSRC={headers}", jobs(), "modules"])
                copy_modules(tree / folder, out / f"{version}{suffix}")
        shutil.copytree(out / version, out / f"{version}-signed")
        for module in (out / f"{version}-signed").glob("*.ko"):
            sign(headers, parts / "signing", module)
        shutil.rmtree(tree)
    for modules in {path.parent for path in out.glob("*/*.ko")}:
        list_digests(modules)
    build_nouveau(headers, out)


def build_nouveau(headers: pathlib.Path, out: pathlib.Path) -> None:
    build = out / "build-nouveau"
    build.mkdir()
    shutil.copy(NOUVEAU, build)
    (build / "Kbuild").write_text("obj-m := nouveau.o\n")
    run(["make", "-s", "-C", headers, f"M={build}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"])
    shutil.copy(build / "nouveau.ko", out)
    shutil.rmtree(build)


def copy_modules(build: pathlib.Path, out: pathlib.Path) -> None:
    out.mkdir()
    for module in build.glob("*.ko"):
        run(["strip", "-g", module])
        shutil.copy(module, out)


def list_digests(modules: pathlib.Path) -> None:
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(modules.glob("*.ko"))]
    (modules / "SHA256SUMS").write_text("".join(lines))


def sign(headers: pathlib.Path, signing: pathlib.Path, module: pathlib.Path) -> None:
    subprocess.run([headers / "scripts/sign-file", "sha256", signing / "key.pem", signing / "certificate.pem", module], check=True)
