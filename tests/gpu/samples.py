# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's CUDA samples vectorAdd, deviceQuery and deviceQueryDrv beside our workloads, line by line.

We may not distribute the samples. If build/samples has their sources (a tree with Common/ and Samples/ as in NVIDIA's
repository), nvcc compiles them on this machine. They run on the host and in a container that our runtime starts."""
import pathlib
import re
import shutil
import subprocess
import tempfile

from containers import Bundles, without_driver

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "build/samples"
SOURCES = {"vectorAdd": "vectorAdd.cu", "deviceQuery": "deviceQuery.cpp", "deviceQueryDrv": "deviceQueryDrv.cpp"}
# gantry-device-query prints the lines of the sample by whose name it is called.
OURS = {"vectorAdd": "gantry-vector-add", "deviceQuery": "deviceQuery", "deviceQueryDrv": "gantry-device-query"}
# Where deviceQuery names the CUDA runtime, which our program does not contain.
RUNTIME = re.compile(r"CUDA Device Query \(|Runtime Version")


def compiler() -> str | None:
    return shutil.which("nvcc") or next((p for p in ["/usr/local/cuda/bin/nvcc"] if pathlib.Path(p).exists()), None)


def compiled(nvcc: str, name: str, work: pathlib.Path) -> subprocess.CompletedProcess:
    source = next(SAMPLES.rglob(f"{name}/{SOURCES[name]}"))
    return subprocess.run([nvcc, "-O2", "-I", SAMPLES / "Common", source, "-o", work / name, "-lcuda"], capture_output=True, text=True)


def lines(text: str) -> list[str]:
    """Without the path of the program, which both print in their first line, and without spaces at the ends."""
    return [re.sub(r"^\S*/(?=\S+ Starting)", "", line).rstrip() for line in text.splitlines()]


def differences(ours: str, theirs: str) -> list[str]:
    one, other = lines(ours), lines(theirs)
    rows = [f"ours   {line}" for line in one if line and line not in other]
    return rows + [f"theirs {line}" for line in other if line and line not in one]


def samples(lane, build: pathlib.Path, keep) -> None:
    nvcc = compiler()
    if nvcc is None or not SAMPLES.exists():
        lane.skip("NVIDIA's samples", "no nvcc on this machine" if nvcc is None else f"no sources in {SAMPLES}")
        return
    work = pathlib.Path(tempfile.mkdtemp(prefix="gantry-containers-"))
    bundles = Bundles(build, work)
    root = without_driver(work)
    try:
        for name in SOURCES:
            made = compiled(nvcc, name, work)
            lane.check(f"nvcc compiles {name}", made.returncode == 0, made.stdout + made.stderr)
            if made.returncode == 0:
                one_sample(lane, bundles, root, name, keep)
    finally:
        subprocess.run(["umount", "-l", root, work / "overlay"], check=False)
        shutil.rmtree(work, ignore_errors=True)


def one_sample(lane, bundles: Bundles, root: pathlib.Path, name: str, keep) -> None:
    on_host = keep(f"sample-{name}.txt", subprocess.run([bundles.work / name], capture_output=True, text=True, timeout=60))
    passed = "PASS" in on_host.stdout
    lane.check(f"{name} passes on the host", passed, on_host.stdout + on_host.stderr)
    shutil.copy(bundles.work / name, root / "usr/bin" / name)
    bundle = bundles.bundle([name], ["NVIDIA_VISIBLE_DEVICES=all"], root=root)
    inside = bundles.run(bundles.build / "bin/nvidia-container-runtime", bundle, f"sample-{name}".lower())
    keep(f"container-sample-{name}.txt", inside)
    lane.check(f"{name} in a container prints what it prints on the host", lines(inside.stdout) == lines(on_host.stdout) and passed,
               inside.stdout + inside.stderr)
    if ours := OURS.get(name):
        printed = subprocess.run([bundles.build / "bin" / ours], capture_output=True, text=True, timeout=60).stdout.replace(ours, name)
        rows = differences(printed, on_host.stdout)
        keep(f"sample-{name}-differences.txt", subprocess.CompletedProcess([ours, "beside", name], 0, "\n".join(rows) + "\n", ""))
        others = [row for row in rows if name != "deviceQuery" or not RUNTIME.search(row)]
        lane.check(f"our {ours} prints the lines of {name}", not others, "\n".join(rows))
