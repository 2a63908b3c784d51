# SPDX-License-Identifier: Apache-2.0
"""Images that lack one thing each, for the scenario that asks why."""
import os
import pathlib
import shutil

from archive import docker_archive
from images import busybox

GLIBC = "localhost/why-glibc:1"          # a loader, and nothing of CUDA
CUDA = "localhost/why-cuda:1"            # with CUDA's runtime: everything right
MUSL = "localhost/why-musl:1"
PROCESSOR = "localhost/why-cpu-torch:1"  # PyTorch built without CUDA
SHADOW = "localhost/why-own-driver:1"    # has another libcuda, which comes first in the search path
HOSTILE = "localhost/why-hostile:1"
TORCH = "usr/local/lib/python3.11/site-packages/torch/version.py"


def put(path: pathlib.Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def glibc(root: pathlib.Path) -> None:
    busybox(root)
    for library, place in (("/lib64/ld-linux-x86-64.so.2", "lib64"), ("/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu")):
        (root / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), root / place / os.path.basename(library))


def cuda(root: pathlib.Path) -> None:
    glibc(root)
    put(root / "usr/local/cuda/lib64/libcudart.so.12")


def musl(root: pathlib.Path) -> None:
    busybox(root)
    put(root / "lib/ld-musl-x86_64.so.1")


def processor(root: pathlib.Path) -> None:
    glibc(root)
    put(root / TORCH, "__version__ = '2.4.0+cpu'\ncuda = None\n")


def shadow(root: pathlib.Path) -> None:
    cuda(root)
    put(root / "opt/old/libcuda.so.384.98")
    (root / "opt/old/libcuda.so.1").symlink_to("libcuda.so.384.98")


def hostile(root: pathlib.Path) -> None:
    """A FIFO where a file is expected, links that lead out of the root, and a link to itself."""
    cuda(root)
    (root / TORCH).parent.mkdir(parents=True)
    os.mkfifo(root / TORCH)
    os.mkfifo(root / "etc/ld.so.cache")
    (root / "evil").symlink_to("../../../../../../../proc/1/root")
    (root / "loop").symlink_to("loop")
    put(root / "dev.table", "/dev/nvidia7 c 195 7 0666 0 0\n")


def make(place: pathlib.Path) -> list[pathlib.Path]:
    place.mkdir(parents=True, exist_ok=True)
    made = []
    for name, fill, env in ((GLIBC, glibc, ()), (CUDA, cuda, ()), (MUSL, musl, ()), (PROCESSOR, processor, ()),
                            (SHADOW, shadow, ("LD_LIBRARY_PATH=/opt/old",)),
                            (HOSTILE, hostile, ("LD_LIBRARY_PATH=/evil/usr/lib:/loop", "PYTHONPATH=/evil:/loop", "CUDA_VISIBLE_DEVICES=\x1b[2Jnone"))):
        root = place / fill.__name__
        fill(root)
        made.append(docker_archive(root, place / f"{fill.__name__}.tar", (name,), command=["sh"], env=("PATH=/bin", *env)))
        shutil.rmtree(root)
    return made
