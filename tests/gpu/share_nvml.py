#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run inside a share: what NVML and nvidia-smi show there.

    gantry share run --memory 10GiB -- python3 tests/gpu/share_nvml.py --limit-mib 10240

One line of JSON for each check: name, ok, what was seen. Exit status 1 when one failed. `--smi PATH` takes another
nvidia-smi than the one in PATH."""
import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import time

MIB = 1 << 20
HELD_MIB = 1024


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class ProcessInfo(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


class Checks:
    def __init__(self) -> None:
        self.failed = 0

    def check(self, name: str, ok: bool, seen: object) -> None:
        self.failed += not ok
        print(json.dumps({"check": name, "ok": bool(ok), "seen": seen}), flush=True)

    def note(self, name: str, seen: object) -> None:
        print(json.dumps({"note": name, "seen": seen}), flush=True)


def hold(mib: int) -> None:
    """A process of the share with a context and that much memory, until its input ends."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    steps = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
             cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(mib * MIB))]
    print(json.dumps(steps), flush=True)
    sys.stdin.read()


class Nvml:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.library.nvmlInit_v2()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def memory(self) -> tuple[int, dict]:
        out = Memory()
        result = self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(out))
        return result, {name: getattr(out, name) for name, _ in out._fields_}

    def memory_v2(self) -> tuple[int, dict]:
        out = MemoryV2()
        out.version = ctypes.sizeof(out) | 2 << 24
        result = self.library.nvmlDeviceGetMemoryInfo_v2(self.device, ctypes.byref(out))
        return result, {name: getattr(out, name) for name, _ in out._fields_ if name != "version"}

    def processes(self, kind: str) -> tuple[int, list]:
        count, rows = ctypes.c_uint(64), (ProcessInfo * 64)()
        call = getattr(self.library, f"nvmlDeviceGet{kind}RunningProcesses_v3")
        result = call(self.device, ctypes.byref(count), rows)
        return result, [[row.pid, row.used] for row in rows[:count.value]]


def settle(nvml: Nvml) -> None:
    """The host looks at a new context a moment after it was made."""
    end = time.monotonic() + 3
    while time.monotonic() < end:
        listed, now = nvml.processes("Compute")[1], nvml.memory_v2()[1]
        if listed and abs(sum(used for _, used in listed) - now["used"]) <= 2 * MIB:
            return
        time.sleep(0.05)


def numbers(checks: Checks, nvml: Nvml, limit: int, child: int) -> int:
    settle(nvml)
    result, old = nvml.memory()
    checks.check("memory, first form: total is the limit", result == 0 and old["total"] == limit, old)
    result, now = nvml.memory_v2()
    checks.check("memory, second form: total is the limit", result == 0 and now["total"] == limit, now)
    checks.check("memory adds up", now["used"] + now["free"] + now["reserved"] == now["total"], now)
    checks.check("what the share's process holds is used", now["used"] >= HELD_MIB * MIB, now["used"] / MIB)
    result, listed = nvml.processes("Compute")
    checks.check("compute processes: the share's own", result == 0 and [pid for pid, _ in listed] == [child], listed)
    total = sum(used for _, used in listed)
    checks.check("processes add up to the share's use, within a granule", abs(total - now["used"]) <= 2 * MIB, [total, now["used"]])
    for kind in ("Graphics", "MPSCompute"):
        result, other = nvml.processes(kind)
        checks.check(f"{kind}: nobody else's", result == 0 and all(pid == child for pid, _ in other), other)
    return now["used"]


def run(smi: str, *arguments: str, env: dict | None = None) -> str:
    done = subprocess.run([smi, *arguments], capture_output=True, text=True, env={**os.environ, **(env or {})})
    return done.stdout + done.stderr


def nvidia_smi(checks: Checks, smi: str, limit: int, used: int, child: int) -> None:
    mib, used_mib = limit // MIB, used / MIB
    text = run(smi, "-i", "0", "--query-gpu=memory.total,memory.reserved,memory.used,memory.free", "--format=csv,noheader,nounits")
    words = [int(word) for word in re.findall(r"\d+", text)]
    checks.check("nvidia-smi --query-gpu: the share's memory", len(words) == 4 and words[0] == mib and abs(words[2] - used_mib) <= 4, text.strip())
    table = run(smi, "-i", "0")
    found = re.search(r"(\d+)MiB\s*/\s*(\d+)MiB", table)
    checks.check("nvidia-smi: the share's memory in its table", bool(found) and int(found[2]) == mib and abs(int(found[1]) - used_mib) <= 4,
                 found[0] if found else table)
    rows = [int(pid) for pid in re.findall(r"^\|\s+\d+\s+\S+\s+\S+\s+(\d+)\s+[CGM+]+\s", table, re.M)]
    checks.check("nvidia-smi: the share's own processes in its table", rows == [child], rows)
    report = run(smi, "-q", "-d", "MEMORY", "-i", "0")
    checks.check("nvidia-smi -q -d MEMORY", re.search(rf"FB Memory Usage\s+Total\s+: {mib} MiB", report) is not None, report[-700:])
    apps = run(smi, "-i", "0", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    checks.check("nvidia-smi --query-compute-apps", [int(line.split(",")[0]) for line in apps.splitlines() if line[:1].isdigit()] == [child], apps)
    pids = re.findall(r"^\s+\d+\s+(\d+)\s+[CGM+]", run(smi, "pmon", "-c", "1", "-i", "0"), re.M)
    checks.note("nvidia-smi pmon lists", pids)
    report = run(smi, "-q", "-d", "PIDS", "-i", "0")
    checks.note("nvidia-smi -q -d PIDS lists", re.findall(r"Process ID\s+: (\d+)", report))


def lookups(checks: Checks, smi: str) -> None:
    """Which functions nvidia-smi looks up by name, and whether it takes a table of private ones."""
    text = run(smi, "-i", "0", env={"LD_DEBUG": "symbols"})
    names = sorted(set(re.findall(r"symbol=(nvml\w+);", text)))
    checks.note("nvidia-smi looks up", {"names": len(names), "memory": [name for name in names if "MemoryInfo" in name],
                                        "processes": [name for name in names if "RunningProcess" in name],
                                        "private table": "nvmlInternalGetExportTable" in names})
    maps = [line.split()[-1] for line in open("/proc/self/maps", encoding="utf-8") if "nvidia-ml" in line or "/run/gantry/fence" in line]
    checks.note("NVML in this process", sorted(set(maps)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit-mib", type=int)
    parser.add_argument("--smi", default="nvidia-smi")
    parser.add_argument("--hold-mib", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hold_mib:
        hold(options.hold_mib)
        return 0
    checks = Checks()
    holder = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--hold-mib", str(HELD_MIB)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        steps = json.loads(holder.stdout.readline())
        checks.check("a process of the share takes memory", steps == [0] * 5, steps)
        nvml = Nvml()
        used = numbers(checks, nvml, options.limit_mib * MIB, holder.pid)
        nvidia_smi(checks, options.smi, options.limit_mib * MIB, used, holder.pid)
        lookups(checks, options.smi)
    finally:
        holder.stdin.close()
        holder.wait()
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
