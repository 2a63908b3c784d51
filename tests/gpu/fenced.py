# SPDX-License-Identifier: Apache-2.0
"""Programs in shares of a real GPU: built from tests/gpu/share with the machine's own CUDA compiler, started natively or by `gantry share run`."""
import ctypes
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

SOURCES = pathlib.Path(__file__).resolve().parent / "share"
TORCH = next((p for p in ("/opt/torch/.venv/bin/python3",) if os.path.exists(p)), None)
MIB = 1 << 20
GIB = 1 << 30


def cuda_home() -> pathlib.Path:
    return pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def driver_library() -> str:
    """libcuda.so.1 as the loader finds it."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    found = [line.split("=> ")[1] for line in listed.splitlines() if "libcuda.so.1 " in line and "x86-64" in line]
    return found[0] if found else "/usr/local/nvidia/lib64/libcuda.so.1"


def to_link_with() -> str:
    """The toolkit's stand-in for libcuda, or libcuda itself."""
    stub = cuda_home() / "lib64/stubs/libcuda.so"
    return str(stub) if stub.exists() else driver_library()


class Programs:
    """Builds all at once, or only some: a compiler run each, and the machine has cores."""

    def __init__(self, *only: str) -> None:
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="gantry-share-"))
        self.failed: dict[str, str] = {}
        nvcc = shutil.which("nvcc") or str(cuda_home() / "bin/nvcc")
        plain = ["g++", "-std=c++17", "-O2", "-static-libstdc++", "-static-libgcc", f"-I{cuda_home()}/include"]
        cuda = [nvcc, "-std=c++17", "-O2", "-arch=native"]
        lines = {
            "limit": [*plain, "limit.cpp", "families.cpp", to_link_with()],
            "several": [*plain, "several.cpp", "families.cpp", to_link_with()],
            "start": [*plain, "start.cpp", to_link_with()],
            "facts": [*plain, "facts.cpp", "families.cpp", to_link_with()],
            "exported": [*plain, "exported.cpp", "-ldl"],
            "any_runtime": [*plain, "any_runtime.cpp", "-ldl"],
            "ways": [*plain, "ways.cpp", "-ldl"],
            "hostile": [*plain, "hostile.cpp", "-ldl"],
            "tenant": [*cuda, "tenant.cu"],
            "runtime-static": [*cuda, "-cudart", "static", "runtime.cu"],
            "runtime-shared": [*cuda, "-cudart", "shared", "runtime.cu"],
            "runtime-stream-per-thread": [*cuda, "--default-stream", "per-thread", "runtime.cu"],
        }
        runs = {name: subprocess.Popen([*line, "-o", str(self.place / name)], cwd=SOURCES, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for name, line in lines.items() if not only or name in only}
        for name, run in runs.items():
            said = run.communicate(timeout=300)[0]
            if run.returncode != 0:
                self.failed[name] = said

    def __getitem__(self, name: str) -> str:
        return str(self.place / name)

    def remove(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)


class Died(Exception):
    """A program ended, or said nothing, where it should have answered."""


class Worker:
    """A program that answers lines with lines of JSON."""

    def __init__(self, argv: list[str], env: dict[str, str] | None = None) -> None:
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=dict(os.environ, **(env or {})))
        self.argv = argv
        self.rest = b""

    def read(self, timeout: float = 60) -> dict:
        end = time.monotonic() + timeout
        while b"\n" not in self.rest:
            ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
            data = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
            if not data:
                raise Died(f"{' '.join(self.argv)}: {'no answer' if not ready else 'it ended'}: {self.said_wrong()}")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def send(self, line: str = "") -> None:
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, line: str, timeout: float = 60) -> dict:
        self.send(line)
        answer = self.read(timeout)
        if "failed" in answer:
            raise Died(f"{' '.join(self.argv)}: {line}: {answer}")
        return answer

    def said_wrong(self) -> str:
        self.errors.seek(0)
        return self.errors.read()[-2000:]

    def end(self) -> int:
        """Closes its input, which ends all of these programs."""
        try:
            self.process.stdin.close()
            return self.process.wait(timeout=20)
        except (subprocess.TimeoutExpired, OSError):
            self.process.kill()
            return self.process.wait(timeout=20)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_) -> None:
        self.end()


class Gantry:
    def __init__(self, build: pathlib.Path) -> None:
        self.program = str(build / "bin/gantry")

    def run(self, *limits: str) -> list[str]:
        return [self.program, "share", "run", *limits, "--"]

    def call(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.program, "share", *words], capture_output=True, text=True, timeout=60)

    def shares(self) -> dict[str, dict]:
        listed = self.call("ls", "--json")
        return {state["share"]["name"]: state for state in json.loads(listed.stdout or "[]")}


class ProcessInfo(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class UtilizationSample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("at_us", ctypes.c_ulonglong), ("sm", ctypes.c_uint), ("memory", ctypes.c_uint), ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


class Nvml:
    """The host's view of GPU 0."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlInit_v2()
        self.device = ctypes.c_void_p()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def processes(self) -> dict[int, int]:
        many = (ProcessInfo * 256)()
        count = ctypes.c_uint(256)
        self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), many)
        return {many[i].pid: many[i].used for i in range(count.value)}

    def used_by(self, pid: int) -> int:
        """By a process and all that it started."""
        family = descendants(pid)
        return sum(used for one, used in self.processes().items() if one in family)

    def busy(self, pid: int, begin_ms: float, end_ms: float) -> float | None:
        """Per cent of the GPU's time that a process and its children had, by samples of 200 ms."""
        many, count = (UtilizationSample * 4096)(), ctypes.c_uint(4096)
        if self.library.nvmlDeviceGetProcessUtilization(self.device, many, ctypes.byref(count), ctypes.c_ulonglong(int(begin_ms * 1000))) != 0:
            return None
        family = descendants(pid)
        samples = [one for one in many[:count.value] if one.pid in family and begin_ms + 250 <= one.at_us / 1000 <= end_ms]
        return sum(one.sm for one in samples) / len(samples) if samples else None

    def used(self) -> int:
        """Of the whole card, by whomever."""
        memory = (ctypes.c_ulonglong * 3)()  # total, free, used
        self.library.nvmlDeviceGetMemoryInfo(self.device, memory)
        return memory[2]


def descendants(pid: int) -> set[int]:
    found, todo = set(), [pid]
    while todo:
        one = todo.pop()
        found.add(one)
        for task in pathlib.Path(f"/proc/{one}/task").glob("*/children"):
            try:
                todo += [int(word) for word in task.read_text().split()]
            except OSError:
                pass
    return found


def wait_for(condition, timeout: float, every: float = 0.02):
    """What `condition` gives as soon as it is true, or its last answer."""
    end = time.monotonic() + timeout
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(every)
    return answer


def rate(answer: dict, begin: float, end: float) -> float:
    """Of a tenant's answer to `load`: kernels a second between two times after its beginning."""
    each = answer["bin_ms"] / 1000
    return sum(answer["bins"][round(begin / each):round(end / each)]) / (end - begin)


def soon(ms: int = 400) -> float:
    """A Unix time in milliseconds at which several tenants can begin together."""
    return time.time() * 1000 + ms
