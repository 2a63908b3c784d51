# SPDX-License-Identifier: Apache-2.0
"""Two pods' shares of one GPU, enforced at once, as a cluster gives them: each sees its own memory, is refused at its limit while the other is at
its own, and has its part of the GPU's time while both are busy. A third that does not fit is told why, and what a pod had is there for the next."""
import json
import os
import pathlib
import shutil
import tempfile
import traceback

from fenced import GIB, MIB, SOURCES, TORCH, Nvml, Programs, Worker, rate, soon, wait_for
from pod_node import MEM, NODE, PodNode, until

SLACK = 2 * MIB  # the driver's granule
TORCH_STEP = 20 * MIB  # PyTorch's own segments
KERNEL_US = 300
SECONDS = 6.0
PODS = {"pod-a": (20, 30), "pod-b": (40, 70)}  # GiB, per cent of the GPU's time


class Parts:
    def __init__(self, lane, node: PodNode, nvml: Nvml, programs: Programs) -> None:
        self.lane, self.node, self.nvml, self.programs = lane, node, nvml, programs
        self.rows: list[tuple[str, str, str]] = [("", *(f"{uid}: {gib} GiB, {percent} %" for uid, (gib, percent) in PODS.items()))]
        self.words: list[str] = []
        self.failed = False

    def check(self, what: str, ok: bool, detail: object = "") -> None:
        self.failed |= not ok
        self.lane.check(f"pods: {what}", ok, str(detail)[-2000:])

    def row(self, what: str, values: dict[str, object]) -> None:
        self.rows.append((what, *(str(values[uid]) for uid in PODS)))

    def table(self) -> str:
        widths = [max(len(row[i]) for row in self.rows) for i in range(3)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in self.rows) + "\n\n" + "\n".join(self.words) + "\n"

    def placed(self) -> None:
        """One placed by the scheduler, one without a placement."""
        cards = self.node.cards()
        self.check("the agent tells of one GPU", len(cards) == 1, cards)
        tokens = cards[0]["mib"] // 1024
        ready = self.node.kubelet.ask(f"wait {MEM} {tokens} 60")
        self.check(f"the kubelet has {tokens} of {MEM}", ready["ok"], ready)
        self.check("the scheduler is ready", self.node.ready())
        for (uid, (gib, percent)), how in zip(PODS.items(), (self.node.scheduled, self.node.pod)):
            admitted = how(uid, gib, percent)
            self.check(f"{uid} ({MEM}: {gib}, {percent} %) is admitted", admitted["ok"], admitted)
            got = self.node.prestart(uid)
            self.check(f"{uid} has its share before its container starts", got["ok"], got)
            written = until(lambda: self.node.api.annotations(uid).get("gantry.dev/placement"), 20)
            self.check(f"{uid}'s placement is written into it", bool(written) and cards[0]["uuid"] in written, written)
        shares = sorted((state["share"]["memory"], state["share"].get("compute")) for state in self.node.shares().values())
        self.check("two shares are kept", shares == sorted((f"{gib}GiB", f"{percent}%") for gib, percent in PODS.values()), shares)
        asked = sum(gib for gib, _ in PODS.values())
        known = until(lambda: self.node.scheduler.used(NODE) == [asked], 20)
        self.check(f"the scheduler knows of {asked} GiB in use", bool(known), self.node.scheduler.used(NODE))

    def refused(self) -> None:
        """By the scheduler; and for a pod that bypasses it, by the kubelet for memory and before the start for the GPU's time."""
        card = self.node.cards()[0]
        for uid, gib, percent, word in (("pod-big", 90, 0, "memory"), ("pod-busy", 10, 20, "time")):
            got = self.node.scheduled(uid, gib, percent)
            self.check(f"the scheduler has no place for {uid} ({gib} GiB, {percent or 'no'} % of time), and says why",
                       not got["ok"] and word in got["error"], got)
            self.words.append(f"{uid} ({MEM}: {gib}, gantry.dev/compute {percent or 'none'}), by the scheduler: {got.get('error')}")
        big = self.node.pod("pod-big", 90, 0, card)
        self.check("pod-big, past the scheduler, is not admitted", not big["ok"], big)
        self.words.append(f"pod-big, past the scheduler, by the kubelet: {big.get('error')}")
        self.node.gone("pod-big")
        for uid, where in (("pod-busy", card), ("pod-unplaced", None)):
            admitted = self.node.pod(uid, 10, 20, where)
            waits = until(lambda: "of its time" in self.node.prestart(uid).get("error", ""), 20)  # the agent hears of pod-big's end when it does
            got = self.node.prestart(uid)
            self.check(f"{uid}, past the scheduler, waits with the reason", admitted["ok"] and bool(waits) and not got["ok"], f"{admitted} {got}")
            self.words.append(f"{uid}, past the scheduler, before its start: {got.get('error')}")
        self.node.gone("pod-busy", "pod-unplaced")
        self.check("and nothing is left of it", len(self.node.shares()) == 2, self.node.left())

    # ---- both at once: memory

    def memory(self) -> None:
        before = self.nvml.used()
        limits = {uid: gib * GIB for uid, (gib, _) in PODS.items()}
        pods = {uid: self.node.start(uid, "/usr/local/bin/limit", "alloc", "vmm") for uid in PODS}
        try:
            totals = {uid: pod.read()["device_total"] for uid, pod in pods.items()}
            self.check("cuDeviceTotalMem is the pod's own", totals == limits, totals)
            self.row("cuDeviceTotalMem, MiB", {uid: total // MIB for uid, total in totals.items()})
            held = {uid: pod.read(120) for uid, pod in pods.items()}
            self.full("cuMemAlloc", pods, held)
            grown = self.nvml.used() - before
            self.check(f"the whole card's memory grew by both limits ({grown // MIB} MiB)", abs(grown - sum(limits.values())) < GIB, grown)
            self.smi(pods)
            for uid, pod in pods.items():  # each once more, with the other at its limit all the time
                held[uid] = pod.ask("", 120)
                self.full(f"cuMemCreate of {uid}, the other full", pods, held)
        finally:
            for pod in pods.values():
                pod.end()

    def full(self, what: str, pods: dict, held: dict[str, dict]) -> None:
        unused = {}
        for uid, one in held.items():
            limit = PODS[uid][0] * GIB
            unused[uid] = limit - self.nvml.used_by(pods[uid].process.pid)
            good = one.get("error") == 2 and one["strange"] == 0 and one["total"] == limit and one["free"] < SLACK and one["again"] == one["granted"]
            self.check(f"{what}: {uid} is refused with out of memory at its limit, {unused[uid] / MIB:.1f} MiB of it unused",
                       good and 0 <= unused[uid] < SLACK, one)
        self.row(f"{what}: granted until error 2, MiB", {uid: f"{one.get('granted', 0) / MIB:.1f}" for uid, one in held.items()})
        self.row("  unused of the limit by NVML on the host, MiB", {uid: f"{left / MIB:.1f}" for uid, left in unused.items()})

    def smi(self, pods: dict) -> None:
        seen = {}
        for uid, pod in pods.items():
            ran = pod.inside("nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv,noheader,nounits")
            seen[uid] = [int(word) for word in ran.stdout.split(",")] if ran.returncode == 0 else [0, 0]
            mib = PODS[uid][0] * 1024
            self.check(f"nvidia-smi inside {uid} shows {mib} MiB, and its own as used", seen[uid][0] == mib and mib - 4 <= seen[uid][1] <= mib,
                       ran.stdout + ran.stderr)
        self.row("nvidia-smi inside: used / total, MiB", {uid: f"{used} / {total}" for uid, (total, used) in seen.items()})

    def pytorch(self) -> None:
        if not TORCH:
            self.lane.skip("pods: PyTorch", "it is not here")
            return
        pods = {uid: self.node.start(uid, shutil.which("python3"), "/usr/local/bin/torch_limit.py") for uid in PODS}
        try:
            seen = {uid: pod.read(180) for uid, pod in pods.items()}
            for uid, one in seen.items():
                limit = PODS[uid][0] * GIB
                unused = limit - self.nvml.used_by(pods[uid].process.pid)
                self.check(f"PyTorch in {uid}: mem_get_info is the pod's own", one["total"] == one["total_memory"] == limit, one)
                self.check(f"PyTorch in {uid}: OutOfMemoryError at its limit, {unused / MIB:.0f} MiB unused",
                           one["refusals"] > 0 and not one["wrong"] and 0 <= unused < TORCH_STEP, one)
            for uid, pod in pods.items():
                after = pod.ask("", 120)
                self.check(f"PyTorch in {uid} goes on after that", after.get("after") == 1024, after)
            self.row("torch.cuda.mem_get_info: total, MiB", {uid: one["total"] // MIB for uid, one in seen.items()})
            self.row("torch.empty: granted until OutOfMemoryError, MiB", {uid: one["granted"] // MIB for uid, one in seen.items()})
        finally:
            for pod in pods.values():
                pod.end()

    # ---- both at once: time

    def native(self) -> tuple[int, float]:
        """The rounds of a kernel of KERNEL_US and how many of these there are in a second, for who has the GPU alone and without a fence."""
        with Worker([self.programs["tenant"]]) as tenant:
            tenant.read()
            rounds = tenant.ask(f"calibrate {KERNEL_US}")["rounds"]
            alone = rate(tenant.ask(f"load {rounds} {soon(200)} 2"), 0.5, 2)
        self.words.append(f"native, alone: {alone:.0f} kernels of {KERNEL_US} us a second")
        return rounds, alone

    def time(self) -> None:
        rounds, alone = self.native()
        pods = {uid: self.node.start(uid, "/usr/local/bin/tenant") for uid in PODS}
        try:
            for pod in pods.values():
                pod.read()
            at = soon(1000)
            for pod in pods.values():
                pod.send(f"load {rounds} {at} {SECONDS}")
            got = {uid: rate(pod.read(), 0.5, SECONDS) / alone * 100 for uid, pod in pods.items()}
            nvml = {uid: self.nvml.busy(pod.process.pid, at + 500, at + SECONDS * 1000) for uid, pod in pods.items()}
        finally:
            for pod in pods.values():
                pod.end()
        for uid, part in got.items():
            of_both = part / max(sum(got.values()), 0.1) * 100
            self.check(f"both busy: {uid} has {part:.1f} % of the GPU's time, {of_both:.1f} % of what both have",
                       abs(part - PODS[uid][1]) <= 2 and abs(of_both - PODS[uid][1]) <= 2, got)
        self.row("GPU time while both are busy, % of native", {uid: f"{part:.1f}" for uid, part in got.items()})
        self.row("  the same by NVML's samples on the host, %", {uid: "none" if part is None else f"{part:.0f}" for uid, part in nvml.items()})

    def inspected(self) -> None:
        asked = sum(gib for gib, _ in PODS.values())
        seen = self.node.inspect("-d")
        self.words += ["", "$ gantry inspect -d", seen]
        self.check(f"gantry inspect shows both and {asked} GiB in use", all(f"{uid} " in seen for uid in PODS) and f"{asked}/" in seen, seen)

    # ---- afterwards

    def given_back(self) -> None:
        """Memory and time of one that is gone are there for others while the second still has its own; then nothing is left at all."""
        before = self.nvml.used()
        self.node.gone("pod-a")
        self.check("when a pod is gone, so is its share", bool(until(lambda: len(self.node.shares()) == 1, 60)), self.node.left())
        for uid, gib, percent in (("pod-big", 90, 0), ("pod-busy", 10, 20)):
            admitted = until(lambda: (got := self.node.scheduled(uid, gib, percent))["ok"] and got, 20) or {"ok": False}
            got = self.node.prestart(uid)
            self.check(f"{uid} ({gib} GiB, {percent or 'no'} % of time), refused before, is placed and starts", admitted["ok"] and got["ok"], f"{admitted} {got}")
        with self.node.start("pod-big", "/usr/local/bin/limit", "alloc", image="pod-a") as pod:
            pod.read()
            one = pod.read(120)
            self.check("and has all of its 90 GiB", one["total"] == 90 * GIB and one["error"] == 2 and one["free"] < SLACK, one)
            self.words.append(f"pod-a is gone: pod-big ({MEM}: 90) is granted {one['granted'] / MIB:.1f} MiB until error 2")
        self.node.gone("pod-b", "pod-big", "pod-busy")
        self.check("when all are gone, no share, grant or CDI device is left", bool(until(lambda: not self.node.left(), 60)), self.node.left())
        self.check("the GPU's memory is free again", bool(wait_for(lambda: self.nvml.used() <= before + 64 * MIB, 10)), f"{self.nvml.used()} {before}")
        seen = self.node.inspect()
        self.words += ["", "$ gantry inspect  (all pods are gone)", seen]
        self.check("gantry inspect shows nothing in use", f" 0/{self.node.cards()[0]['mib'] // 1024}" in seen, seen)


def run_all(lane, node: PodNode, nvml: Nvml, programs: Programs, keep_text) -> None:
    parts = Parts(lane, node, nvml, programs)
    try:
        for uid in PODS:
            node.image(uid, programs["limit"], programs["tenant"], SOURCES / "torch_limit.py")
        for part in (parts.placed, parts.refused, parts.memory, parts.pytorch, parts.time, parts.inspected, parts.given_back):
            try:
                part()
            except Exception:  # one part that breaks must not hide the others
                parts.check(part.__name__, False, traceback.format_exc(limit=4))
    finally:
        print(parts.table(), flush=True)
        keep_text("shared-pods.txt", parts.table())
        keep_text("shared-pods.log", node.said(200000))
        if parts.failed:
            print(node.said(3000), flush=True)
        node.end()


def shared_pods(lane, build: pathlib.Path, keep_text) -> None:
    if os.geteuid() != 0 or not (build / "rootfs.tar").exists():
        lane.skip("pods", "not root" if os.geteuid() != 0 else "no containers were carried along (make gpu-pack)")
        return
    programs = Programs("limit", "tenant")
    work = pathlib.Path(tempfile.mkdtemp(prefix="gantry-pods-"))
    work.chmod(0o755)
    try:
        if programs.failed:
            lane.check("pods: programs build", False, json.dumps(programs.failed)[-3000:])
            return
        run_all(lane, PodNode(build, work), Nvml(), programs, keep_text)
    finally:
        programs.remove()
        if not any(line.split()[4].startswith(f"{work}/") for line in open("/proc/self/mountinfo", encoding="utf-8")):
            shutil.rmtree(work, ignore_errors=True)
