# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the images cuda:base, cuda:runtime and cuda:devel, made from this machine's own files: busybox and glibc;
libstdc++ and a cuBLAS that knows its version; g++ with its headers, our declarations of CUDA, and the simulated libcuda to
link with. Each has what the one before has."""
import os
import pathlib
import shutil
import subprocess

from archive import docker_archive
from bundle import fill
from lane_support import Lane

ENV = ("PATH=/usr/local/bin:/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility", "NVIDIA_REQUIRE_CUDA=cuda>=12.4")
LIBRARIES = "lib/x86_64-linux-gnu"
HEADERS = ("libc6-dev", "linux-libc-dev")
NOT_NEEDED = ("/usr/share/", "lib/x86_64-linux-gnu/libc.a", "lib/x86_64-linux-gnu/libm-")
CUBLAS = "unsigned long cublasGetCudartVersion(void) { return 12040; }\n"
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def put(root: pathlib.Path, path: str | pathlib.Path) -> None:
    """One of this machine's files, at the same place. A link becomes the file that it leads to."""
    source = pathlib.Path(path)
    target = root / str(source)[1:]
    if target.exists() or not source.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def put_libraries(lane: Lane, root: pathlib.Path, program: str | pathlib.Path) -> None:
    for line in lane.run("ldd", program).stdout.splitlines():
        for word in line.split():
            if word.startswith("/") and "ld-linux" not in word:
                target = root / LIBRARIES / os.path.basename(word)
                if not target.exists():
                    shutil.copy(os.path.realpath(word), target)


def base(lane: Lane, root: pathlib.Path) -> None:
    fill(lane, root, ())
    (root / "usr/local/bin").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    cuda = root / "usr/local/cuda-12.4/lib64"
    cuda.mkdir(parents=True)
    (root / "usr/local/cuda").symlink_to("cuda-12.4")
    (cuda / "libcudart.so.12.4.127").touch()  # only its name counts here: the program does not load it


def runtime(lane: Lane, root: pathlib.Path) -> None:
    put_libraries(lane, root, compiler("cc1plus"))
    for library in ("libstdc++.so.6", "libgcc_s.so.1"):
        shutil.copy(os.path.realpath(named(library)), root / LIBRARIES / library)
    cuda = root / "usr/local/cuda-12.4/lib64"
    library = cuda / "libcublas.so.12"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-Wl,-soname,libcublas.so.12"], input=CUBLAS, text=True, check=True)
    (root / "etc/ld.so.conf").write_text("/usr/local/cuda/lib64\n")
    lane.run("/sbin/ldconfig", "-r", root, check=True)


def devel(lane: Lane, root: pathlib.Path) -> None:
    put_compiler(lane, root)
    cuda = root / "usr/local/cuda-12.4"
    (cuda / "lib64/libcublas.so").symlink_to("libcublas.so.12")
    (cuda / "lib64/stubs").mkdir()
    shutil.copy(lane.bin.parent / "lib/gantry/sim/libcuda.so", cuda / "lib64/stubs/libcuda.so")
    (cuda / "include/gpu").mkdir(parents=True)
    shutil.copytree(SOURCE / "src/gpu/abi", cuda / "include/gpu/abi", ignore=shutil.ignore_patterns("*.cpp", "*.c", "*.cmake", "nvml*"))
    (cuda / "include/cuda.h").write_text('#include "gpu/abi/cuda.h"\n')


def compiler(name: str) -> str:
    return subprocess.run(["g++", f"-print-prog-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


def named(library: str) -> str:
    return subprocess.run(["g++", f"-print-file-name={library}"], capture_output=True, text=True, check=True).stdout.strip()


def put_compiler(lane: Lane, root: pathlib.Path) -> None:
    own = pathlib.Path(os.path.realpath(compiler("cc1plus"))).parent  # /usr/lib/gcc/x86_64-linux-gnu/12
    for path in (own / name for name in ("cc1plus", "collect2", "lto-wrapper", "liblto_plugin.so")):
        if path.exists():
            put(root, path)
            put_libraries(lane, root, path)
    for pattern in ("*.o", "libgcc*", "libstdc++.*", "libsupc++.a"):
        for path in own.glob(pattern):
            put(root, path)
    shutil.copytree(own / "include", root / str(own)[1:] / "include")
    for directory in ("c++", "x86_64-linux-gnu/c++"):
        shutil.copytree(pathlib.Path("/usr/include") / directory, root / "usr/include" / directory)
    for package in HEADERS:
        for line in lane.run("dpkg", "-L", package).stdout.splitlines():
            if not any(word in line for word in NOT_NEEDED):
                put(root, line)
    for name in ("g++", "as", "ld"):
        program = os.path.realpath(shutil.which(name))
        shutil.copy(program, root / "usr/bin" / name)
        put_libraries(lane, root, program)
    shutil.copy("/lib/x86_64-linux-gnu/libmvec.so.1", root / LIBRARIES)  # libm.so, a linker script, names it


def archives(lane: Lane) -> dict[str, pathlib.Path]:
    """The three images as archives, by their names."""
    made = {}
    root = lane.work / "base"
    for kind, add in (("base", base), ("runtime", runtime), ("devel", devel)):
        add(lane, root)
        made[f"localhost/cuda:{kind}"] = docker_archive(root, lane.work / f"{kind}.tar", (f"localhost/cuda:{kind}",), ["/bin/sh"], ENV)
    shutil.rmtree(root)
    return made
