# SPDX-License-Identifier: Apache-2.0
"""The CUDA programs of docs/images.md, compiled on this machine as the Dockerfiles and tests/gpu/images/README.md say: with
g++ for each of the three kinds of images, and with nvcc. Each runs on the host and in a container that our runtime starts, in
a root without the driver's files. The outputs are kept as image-program-*.txt."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from containers import Bundles, without_driver
from samples import compiler

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
IMAGES = ROOT / "deploy/images"
CUDA_SOURCE = ROOT / "tests/gpu/images/vector_add.cu"


def dockerfile_command(kind: str) -> list[str]:
    """The words of the line that compiles the program in deploy/images/Dockerfile.KIND."""
    text = (IMAGES / f"Dockerfile.{kind}").read_text().replace("\\\n", " ")
    return shlex.split(re.search(r"^RUN (g\+\+ .*)$", text, re.M)[1])


def page_command() -> list[str]:
    """The words of the line with nvcc in tests/gpu/images/README.md."""
    return shlex.split(re.search(r"^nvcc .*$", (ROOT / "tests/gpu/images/README.md").read_text(), re.M)[0], comments=True)


def in_place(words: list[str], toolkit: pathlib.Path, source: pathlib.Path, program: pathlib.Path) -> list[str]:
    """The same command with this machine's toolkit, and with the source and the program where they are here."""
    words = [word.replace("/usr/local/cuda", str(toolkit)) for word in words]
    words[words.index("-o") + 1] = str(program)
    return [str(source) if word.endswith(source.name) else word for word in words]


def image_program(lane, build: pathlib.Path, keep) -> None:
    nvcc = compiler()
    if nvcc is None:
        lane.skip("the programs of docs/images.md", "no nvcc on this machine")
        return
    toolkit = pathlib.Path(nvcc).resolve().parent.parent
    commands = {"nvcc": in_place([nvcc, *page_command()[1:]], toolkit, CUDA_SOURCE, pathlib.Path("vector-add"))}
    for kind in ("devel", "runtime", "base"):
        commands[kind] = in_place(dockerfile_command(kind), toolkit, IMAGES / "vector_add.cpp", pathlib.Path("vector-add"))
    name = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "-i", "0"], capture_output=True, text=True).stdout.strip()
    work = pathlib.Path(tempfile.mkdtemp(prefix="gantry-containers-"))
    try:
        bundles = Bundles(build, work)
        root = without_driver(work)
        for kind, command in commands.items():
            if "-lcublas" in command and not (toolkit / "lib64/libcublas.so").exists():
                lane.skip(f"docs/images.md, {kind}", f"{toolkit}/lib64 has no libcublas.so to link with")
                continue
            one_program(lane, bundles, root, kind, command, f"[Vector addition of 50000 elements on {name}]", keep)
    finally:
        subprocess.run(["umount", "-l", work / "overlay/root", work / "overlay"], check=False)
        shutil.rmtree(work, ignore_errors=True)


def one_program(lane, bundles: Bundles, root: pathlib.Path, kind: str, command: list[str], first: str, keep) -> None:
    directory = bundles.work / f"image-program-{kind}"
    directory.mkdir()
    made = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300)
    lane.check(f"docs/images.md, {kind}: {pathlib.Path(command[0]).name} compiles it", made.returncode == 0, made.stdout + made.stderr)
    if made.returncode != 0:
        return
    # As in NVIDIA's runtime image, where the loader finds CUDA's libraries.
    libraries = next((word[2:] for word in command if word.startswith("-L") and not word.endswith("stubs")), None)
    paths = {} if libraries is None else {"LD_LIBRARY_PATH": libraries}
    on_host = subprocess.run([directory / "vector-add"], capture_output=True, text=True, timeout=60, env={**os.environ, **paths})
    said = on_host.stdout.splitlines()
    passed = on_host.returncode == 0 and said[:1] == [first] and said[-1] == "Test PASSED"
    lane.check(f"docs/images.md, {kind}: it finds this GPU and adds on the host", passed, on_host.stdout + on_host.stderr)
    shutil.copy(directory / "vector-add", root / "usr/bin/vector-add")
    runtime = bundles.build / "bin/nvidia-container-runtime"
    env = [f"{key}={value}" for key, value in paths.items()]
    inside = bundles.run(runtime, bundles.bundle(["vector-add"], ["NVIDIA_VISIBLE_DEVICES=all", *env], root=root), f"image-program-{kind}")
    keep(f"image-program-{kind}.txt", inside)
    lane.check(f"docs/images.md, {kind}: in a container it prints what it prints on the host", passed and inside.returncode == 0 and
               inside.stdout == on_host.stdout, inside.stdout + inside.stderr)
    none = bundles.run(runtime, bundles.bundle(["vector-add"], env, root=root), f"image-program-{kind}-none")
    lane.check(f"docs/images.md, {kind}: it finds no GPU in a container that asks for none", none.returncode != 0 and
               "Test PASSED" not in none.stdout, none.stdout + none.stderr)
