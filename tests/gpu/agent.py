# SPDX-License-Identifier: Apache-2.0
"""The node agent on a real GPU, with the fake kubelet: registered, vector-add through the answer alone, an hour of scrapes without growth,
metrics that agree with nvidia-smi."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
import urllib.request

from containers import Bundles

SCRAPES = 720  # an hour at one each five seconds


def resident_kb(pid: int) -> int:
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def children(pid: int) -> list[int]:
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def value(text: str, name: str) -> float:
    found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", text, re.M)
    return float(found.group(1)) if found else float("nan")


def query(field: str) -> float:
    words = subprocess.run(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True, text=True).stdout
    return float(words.split()[0])


def put_answer(path: pathlib.Path, answer: dict) -> None:
    """The answer to Allocate as an engine without CDI applies it."""
    spec = json.loads((path / "config.json").read_text())
    spec["process"]["env"] += [f"{key}={text}" for key, text in answer["envs"].items()]
    spec["mounts"] += [{"destination": m["containerPath"], "type": "bind", "source": m["hostPath"], "options": ["rbind", "ro"]} for m in answer["mounts"]]
    spec["linux"].setdefault("devices", [])
    for node in answer["devices"]:
        number = os.stat(node["hostPath"]).st_rdev
        where = {"type": "c", "major": os.major(number), "minor": os.minor(number)}
        spec["linux"]["devices"].append({"path": node["containerPath"], "fileMode": 0o666, **where})
        spec["linux"]["resources"]["devices"].append({"allow": True, "access": node["permissions"], **where})
    (path / "config.json").write_text(json.dumps(spec))


def agent(lane, build: pathlib.Path, keep_text) -> None:
    if os.geteuid() != 0:
        lane.skip("agent", "not root")
        return
    work = pathlib.Path(tempfile.mkdtemp(prefix="gantry-agent-"))
    kubelet_dir = work / "device-plugins"
    kubelet_dir.mkdir()
    log = open(work / "agent.log", "w+", encoding="utf-8")
    begin = time.monotonic()
    process = subprocess.Popen([build / "bin/gantry", "agent", f"--kubelet-socket={kubelet_dir}/kubelet.sock"], stdout=log, stderr=log)
    fake = subprocess.Popen([build / "bin/gantry-fake-kubelet", "--dir", kubelet_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(command: str) -> dict:
        fake.stdin.write(command + "\n")
        fake.stdin.flush()
        return json.loads(fake.stdout.readline())

    def said() -> str:
        log.flush()
        return (work / "agent.log").read_text()

    try:
        ready = ask("wait nvidia.com/gpu 1 60")
        started_ms = (time.monotonic() - begin) * 1000
        lane.check("agent: one GPU registered", ready["ok"], said())
        given = ask("admit default/first/uid-1/main nvidia.com/gpu=1")
        lane.check("agent: a pod gets it", given["ok"], str(given))
        bundles = Bundles(build, work)
        path = bundles.bundle(["gantry-vector-add"], [])
        put_answer(path, given["answer"])
        added = bundles.run(bundles.engines / "runc", path, f"gantry-agent-{os.getpid()}")
        lane.check("agent: vector-add through the answer alone", "Test PASSED" in added.stdout, added.stdout + added.stderr)
        for _ in range(20):
            page(9400)
        time.sleep(3)
        before = resident_kb(process.pid)
        took = []
        for _ in range(SCRAPES):
            start = time.monotonic()
            text = page(9400)
            took.append((time.monotonic() - start) * 1000)
            page(2112)
        after = resident_kb(process.pid)
        lane.check(f"agent: {SCRAPES} scrapes of both pages without growth ({before} KB to {after} KB)", after <= before + 256)
        time.sleep(12)
        page(9400)
        time.sleep(1.5)
        text = page(9400)
        pairs = {"DCGM_FI_DEV_GPU_TEMP": ("temperature.gpu", 2), "DCGM_FI_DEV_FB_USED": ("memory.used", 2), "DCGM_FI_DEV_SM_CLOCK": ("clocks.sm", 50),
                 "DCGM_FI_DEV_MEM_CLOCK": ("clocks.mem", 1), "DCGM_FI_DEV_GPU_UTIL": ("utilization.gpu", 5), "DCGM_FI_DEV_POWER_USAGE": ("power.draw", 15)}
        rows = []
        for name, (field, slack) in pairs.items():
            ours, theirs = value(text, name), query(field)
            lane.check(f"agent: {name} agrees with nvidia-smi ({ours} and {theirs})", abs(ours - theirs) <= slack)
            rows.append(f"{name:28} {ours:12} {field:18} {theirs}")
        used = sum(int(v) for v in pathlib.Path(f"/proc/{process.pid}/stat").read_text().split()[13:15])
        time.sleep(10)
        idle = sum(int(v) for v in pathlib.Path(f"/proc/{process.pid}/stat").read_text().split()[13:15]) - used
        child = children(process.pid)
        table = "\n".join([
            f"start to registered, seen by the kubelet   {started_ms:.0f} ms (NVML's own start is in it: see nvml-baseline)",
            f"resident, agent                            {after} KB",
            f"resident, child with NVML                  {sum(map(resident_kb, child))} KB",
            f"scrape of :9400, median and 99th           {statistics.median(took):.2f} ms, {sorted(took)[int(len(took) * .99)]:.2f} ms",
            f"processor time of the agent in 10 s idle   {idle * 10} ms", *rows])
        keep_text("agent.txt", table + "\n\n" + text)
        print(table)
    finally:
        fake.stdin.close()
        fake.wait(10)
        process.terminate()
        process.wait(10)
        keep_text("agent.log", said())
