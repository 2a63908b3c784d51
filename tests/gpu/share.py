# SPDX-License-Identifier: Apache-2.0
"""The fence on a real GPU: memory limits exact in every family, no way past by accident, several processes, PyTorch with its three allocators,
graphs under a gate, and a hostile program that the auditor sees."""
import json
import os
import pathlib
import subprocess
import sys
import time

from fenced import GIB, MIB, SOURCES, TORCH, Died, Gantry, Nvml, Programs, Worker, driver_library, wait_for

LIMIT = 4 * GIB
SLACK = 2 * MIB  # the driver's granule
POOL_STEP = 32 * MIB  # what the driver grows a pool by


def limits(memory: int = LIMIT, *more: str) -> tuple[str, ...]:
    return ("--memory", f"{memory}", *more)


class Parts:
    def __init__(self, lane, build: pathlib.Path, keep_text) -> None:
        self.lane, self.keep = lane, keep_text
        self.gantry, self.nvml, self.programs = Gantry(build), Nvml(), Programs()

    def has(self, *names: str) -> bool:
        wrong = {name: self.programs.failed[name] for name in names if name in self.programs.failed}
        for name, said in wrong.items():
            self.lane.check(f"share: {name} builds", False, said[-3000:])
        return not wrong

    # ---- memory

    def families(self) -> None:
        """Exact: what the share's processes have by NVML's account is the limit, to one granule. NVML shows managed memory in no process, so
        there what was granted is added."""
        lines = []
        with Worker([*self.gantry.run(*limits()), self.programs["limit"]]) as worker:
            total = worker.read()["device_total"]
            self.lane.check("share: cuDeviceTotalMem is the limit", total == LIMIT, str(total))
            while True:
                try:
                    one = worker.read()
                except Died as end:
                    self.lane.check("share: every family was tried", worker.process.wait(timeout=20) == 0, str(end))
                    break
                self.one_family(one, worker.process.pid, lines)
                worker.send()
        self.lane.check("share: ten families", len(lines) == 10, "\n".join(lines))
        self.keep("share-memory.txt", "family, granted MiB, unused MiB of the limit, error\n" + "".join(lines))

    def one_family(self, one: dict, pid: int, lines: list[str]) -> None:
        family = one["family"]
        if "failed" in one:
            self.lane.check(f"share: {family}", False, str(one))
            return
        used = self.nvml.used_by(pid) + (one["granted"] if family == "managed" else 0)
        unused = LIMIT - used
        step = POOL_STEP if family in ("async", "pool", "graph") else SLACK
        lines.append(f"{family}, {one['granted'] / MIB:.2f}, {unused / MIB:.2f}, {one['error']}\n")
        good = 0 <= unused < step and one["error"] == 2 and one["strange"] == 0
        self.lane.check(f"share: {family}: refused with 2 at the limit, {unused / MIB:.1f} MiB unused", good, str(one))
        shown = one["total"] == LIMIT and one["free"] < step and abs(one["free_before"] - one["granted"]) < 2 * step
        self.lane.check(f"share: {family}: free and total show the share", shown, str(one))
        self.lane.check(f"share: {family}: what was given back is there again", one["again"] == one["granted"], str(one))

    def several(self) -> None:
        with Worker([*self.gantry.run(*limits(6 * GIB)), self.programs["several"], "6"]) as worker:
            one = worker.read()
            if "failed" in one:
                self.lane.check("share: six processes together", False, str(one))
                return
            unused = 6 * GIB - self.nvml.used_by(worker.process.pid)
            self.lane.check(f"share: six processes take memory together, {unused / MIB:.1f} MiB unused", 0 <= unused < SLACK and one["strange"] == 0,
                            f"{one} {unused}")
            back = worker.ask("")["given_back_ms"]
            self.lane.check(f"share: what a killed process had is there for another ({back:.0f} ms later)", back < 200, str(back))

    def runtimes(self) -> None:
        for kind in ("static", "shared", "stream-per-thread"):
            ran = subprocess.run([*self.gantry.run(*limits(), "--compute", "50%"), self.programs[f"runtime-{kind}"]], capture_output=True, text=True, timeout=120)
            one = json.loads(ran.stdout) if ran.stdout.startswith("{") else {}
            good = bool(one.get("right")) and one["error"] == one["async_error"] == 2 and one["total"] == one["property_total"] == LIMIT and one["free"] < SLACK
            self.lane.check(f"share: runtime, {kind}: right results in threads and graphs, error 2, total is the limit", good,
                            f"status {ran.returncode} {ran.stdout} {ran.stderr}")

    def other_runtimes(self) -> None:
        """Runtimes of other CUDA versions, if they are in build/cudart (we may not distribute them)."""
        libraries = sorted((SOURCES.parent.parent.parent / "build/cudart").glob("*/libcudart.so.*"))
        if not libraries:
            self.lane.skip("share: other runtimes", "none in build/cudart")
        for library in libraries:
            ran = subprocess.run([*self.gantry.run(*limits()), self.programs["any_runtime"], str(library)], capture_output=True, text=True, timeout=120)
            one = json.loads(ran.stdout) if ran.stdout.startswith("{") else {}
            good = one.get("error") == one.get("async_error") == 2 and one["total"] == LIMIT and one["free"] < SLACK
            self.lane.check(f"share: runtime {one.get('version')}: error 2 at the limit, total is the limit", good, ran.stdout + ran.stderr)

    # ---- what the fence relies on

    def driver_facts(self) -> None:
        ran = subprocess.run([self.programs["facts"]], capture_output=True, text=True, timeout=60)
        self.keep("share-driver.txt", ran.stdout + ran.stderr)
        self.lane.check("share: what the driver charges and its calls cost, told", ran.returncode == 0, ran.stdout + ran.stderr)
        names = subprocess.run(["nm", "-D", "--defined-only", driver_library()], capture_output=True, text=True).stdout
        names = "\n".join(line.split()[2] for line in names.splitlines() if " T cu" in line)
        ran = subprocess.run([self.programs["exported"]], input=names, capture_output=True, text=True, timeout=60)
        one = json.loads(ran.stdout) if ran.stdout.startswith("{") else {}
        self.lane.check(f"share: all {one.get('answers')} answers of cuGetProcAddress are exported functions, each with an address of its own",
                        one.get("other") == [] and one["shared"] == one["differ"] == 0 and one["exported"] > 600, ran.stdout + ran.stderr)

    # ---- no way past it by accident

    def ways(self) -> None:
        driver = os.path.realpath("/usr/local/nvidia/lib64/libcuda.so.1")
        names = ["libcuda.so.1", "libcuda.so", "noload:libcuda.so.1", driver, "/usr/local/cuda/compat/libcuda.so.1", "/usr/lib/libcuda.so.1",
                 "/usr/lib/x86_64-linux-gnu/libcuda.so.1"]
        cases = {"as it is": ([], {}),
                 "after ldconfig": (["sh", "-c", 'ldconfig; exec "$@"', "sh"], {}),
                 "compat in LD_LIBRARY_PATH": ([], {"LD_LIBRARY_PATH": "/usr/local/cuda/compat"}),
                 "no LD_LIBRARY_PATH": (["env", "-u", "LD_LIBRARY_PATH"], {}),
                 "first by its path": ([], {})}
        for case, (before, env) in cases.items():
            order = list(reversed(names)) if case == "first by its path" else names
            ran = subprocess.run([*self.gantry.run(*limits()), *before, self.programs["ways"], *order], capture_output=True, text=True, timeout=60, env=dict(os.environ, **env))
            said = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
            asked = [one for one in said if "total" in one]
            past = [one for one in asked if one["total"] != LIMIT] + [one for one in said if "failed" in one]
            self.lane.check(f"share: {len(asked)} ways to the driver, {case}: none is past the fence", len(asked) > 100 and not past, f"{past[:5]} {ran.stderr}")

    def smi(self) -> None:
        """What share_nvml.py, inside, has to say."""
        ran = subprocess.run([*self.gantry.run(*limits()), sys.executable, str(pathlib.Path(__file__).parent / "share_nvml.py"), "--limit-mib", str(LIMIT // MIB)],
                             capture_output=True, text=True, timeout=120)
        self.keep("share-nvml.txt", ran.stdout + ran.stderr)
        said = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        for one in said:
            if "check" in one:
                self.lane.check(f"share: {one['check']}", one["ok"], str(one["seen"])[-1500:])
        self.lane.check("share: NVML and nvidia-smi inside were asked", bool(said), ran.stdout + ran.stderr)

    # ---- PyTorch

    def torch_allocators(self) -> None:
        texts = []
        for name, conf in (("native", ""), ("expandable_segments", "expandable_segments:True"), ("cudaMallocAsync", "backend:cudaMallocAsync")):
            try:
                with Worker([*self.gantry.run(*limits()), TORCH, str(SOURCES / "torch_limit.py")], {"PYTORCH_CUDA_ALLOC_CONF": conf}) as worker:
                    one = worker.read(120)
                    unused = LIMIT - self.nvml.used_by(worker.process.pid)
                    after = worker.ask("")
            except (Died, ValueError) as problem:
                self.lane.check(f"share: PyTorch, {name}", False, str(problem))
                continue
            texts.append(f"{name}: {json.dumps(one)}\n")
            step = POOL_STEP if name == "cudaMallocAsync" else SLACK * 10  # PyTorch's own segments are 20 MiB
            self.lane.check(f"share: PyTorch, {name}: OutOfMemoryError at the limit ({unused / MIB:.0f} MiB unused)",
                            one["refusals"] > 0 and not one["wrong"] and 0 <= unused < step, str(one))
            self.lane.check(f"share: PyTorch, {name}: mem_get_info and total_memory are the share's", one["total"] == one["total_memory"] == LIMIT, str(one))
            self.lane.check(f"share: PyTorch, {name}: it goes on after a refusal", after.get("after") == 1024, str(after))
        self.keep("share-pytorch.txt", "".join(texts))

    def torch_graphs(self) -> None:
        for words, before in (("natively", []), ("under a gate", self.gantry.run(*limits(8 * GIB, "--compute", "20%")))):
            with Worker([*before, TORCH, str(SOURCES / "torch_graph.py")]) as worker:
                try:
                    one = worker.read(60)
                except Died as problem:
                    one = {"failed": str(problem)}
            self.lane.check(f"share: CUDA graphs captured and replayed {words}: {one.get('captures')} captures in {one.get('seconds', 0):.1f} s",
                            one.get("wrong") == 0 and one["captures"] >= 5, str(one))

    # ---- who goes past it on purpose

    def hostile(self, what: str, amount: int, bound_ms: int, *more: str) -> None:
        name = f"hostile-{what}"
        with Worker([*self.gantry.run("--name", name, *limits(2 * GIB, *more)), self.programs["hostile"], what, str(amount)]) as worker:
            one = worker.read()

            def found():
                state = self.gantry.shares().get(name, {})
                return next((f for f in state.get("findings", []) if f["pid"] == one.get("pid")), None)

            seen = wait_for(found, bound_ms / 1000 + 3, 0.05)
            after = seen["atUnixMs"] - one["at_unix_ms"] if seen else None
            words = f"{after:.0f} ms after it began" if seen else "never"
            self.lane.check(f"share: a program past the fence ({what}) is seen by the auditor, {words}", bool(seen) and after <= bound_ms, f"{seen} {one}")
            self.keep(f"share-{name}.txt", f"{seen}\n")
            worker.process.stdin.close()
            worker.process.wait(timeout=30)

    def hostile_memory(self) -> None:
        self.hostile("memory", 4096, 1000)

    def hostile_time(self) -> None:
        self.hostile("time", 5, 3000, "--compute", "20%")

    def hostile_stopped(self) -> None:
        worker = Worker([*self.gantry.run(*limits(2 * GIB, "--policy", "stop")), self.programs["hostile"], "memory", "4096"])
        worker.read()
        start = time.monotonic()
        ended = wait_for(lambda: worker.process.poll() is not None, 5)
        took = (time.monotonic() - start) * 1000
        self.lane.check(f"share: by policy it is stopped ({took:.0f} ms)", ended and worker.process.returncode != 0 and took < 2000, str(worker.process.returncode))
        worker.end()


def share(lane, build: pathlib.Path, keep_text) -> None:
    if os.geteuid() != 0:
        lane.skip("share", "not root")
        return
    parts = Parts(lane, build, keep_text)
    try:
        todo = [(parts.driver_facts, ("facts", "exported")), (parts.families, ("limit",)), (parts.several, ("several",)), (parts.runtimes, ("runtime-static", "runtime-shared", "runtime-stream-per-thread")),
                (parts.other_runtimes, ("any_runtime",)), (parts.ways, ("ways",)), (parts.smi, ())]
        if TORCH:
            todo += [(parts.torch_allocators, ()), (parts.torch_graphs, ())]
        else:
            lane.skip("share: PyTorch", "it is not here")
        todo += [(parts.hostile_memory, ("hostile",)), (parts.hostile_stopped, ("hostile",)), (parts.hostile_time, ("hostile",))]
        for part, programs in todo:
            start = time.monotonic()
            try:
                if parts.has(*programs):
                    part()
            except Exception as problem:  # one part that breaks must not hide the others
                lane.check(f"share: {part.__name__}", False, repr(problem))
            print(f"      {part.__name__}: {time.monotonic() - start:.1f} s", flush=True)
        left = wait_for(lambda: not parts.gantry.shares(), 5)
        lane.check("share: no share is left", bool(left), str(list(parts.gantry.shares())))
    finally:
        parts.programs.remove()
