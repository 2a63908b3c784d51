# SPDX-License-Identifier: Apache-2.0
"""A node whose GPUs are in shares: the agent with a fake kubelet and API server on a simulated machine, and containers of the real runc."""
import atexit
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess

from agent_support import Agent, Kubelet
from api_stand_in import NodeApi
from bundle import fill
from lane_support import Lane

GIB = 1024
MEM = "aliyun.com/gpu-mem"


class TestHost:
    """What all nodes of a lane share: an image with a probe. Ends the share daemons with the lane."""

    def __init__(self, lane: Lane) -> None:
        self.lane, self.image = lane, lane.work / "image"
        probe = lane.work / "share-probe"
        lane.run("cc", "-o", probe, pathlib.Path(__file__).with_name("share_probe.c"), "-ldl", check=True)
        fill(lane, self.image, ())
        shutil.copy(probe, self.image / "usr/bin/share-probe")
        lane.run("/sbin/ldconfig", "-r", self.image)
        atexit.register(self.end_share_daemons)

    def end_share_daemons(self) -> None:
        for pid in [*self.watchdogs(), *self.share_daemons()]:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)

    def watchdogs(self) -> list[int]:
        return [int(pid) for pid in self.lane.run("pgrep", "-f", f"share watch.* --root {self.lane.work}").stdout.split()]

    def share_daemons(self) -> list[int]:
        return [int(pid) for pid in self.lane.run("pgrep", "-f", f"share serve.* --root {self.lane.work}").stdout.split()]


class Node:
    """A machine with its kubelet, API server and agent."""
    count = 0

    def __init__(self, host: "TestHost", machine: str, *flags: str, program: tuple[str, ...] = ("gantry", "agent")) -> None:
        Node.count += 1
        self.host, self.lane = host, host.lane
        self.root = self.lane.work / f"n{Node.count}"
        self.lane.run(self.lane.bin / "gantry", "sim", "create", machine, "--root", self.root, "--nodes", "real", check=True)
        self.gpus = [gpu["uuid"] for gpu in json.loads(self.lane.run(self.lane.bin / "gantry", "info", "--json", "--root", self.root).stdout)["gpus"]]
        self.api = NodeApi("node-1")
        self.config = self.api.kubeconfig(self.root / "kubeconfig")
        self.kubelet = Kubelet(self.lane, self.root)
        by_cdi = () if any("list-strategy" in flag for flag in flags) else ("--device-list-strategy=cdi-cri",)
        self.flags = (*flags, *by_cdi, "--node-name=node-1", f"--kubeconfig={self.config}", "--exporter-port=0")
        self.program = program
        self.agents = 0
        self.agent = self.new_agent()

    def new_agent(self) -> Agent:
        self.agents += 1
        name = f"{self.root.name}-{self.agents}"
        if self.program == ("gantry", "agent"):
            return Agent(self.lane, self.root, *self.flags, "--gpu-metrics-port=0", name=name)
        return Agent(self.lane, self.root, *self.flags, name=name, program=self.program)

    def said(self) -> str:
        return self.agent.said()[-6000:]

    def pod(self, uid: str, containers: dict[str, dict], placement: dict[str, list] | None = None, annotations: dict | None = None) -> None:
        """`containers`: name or name:init or name:sidecar to limits. `placement`: name to (GPU's number, MiB, cores)."""
        spec = {"nodeName": "node-1", "initContainers": [], "containers": []}
        for name, limits in containers.items():
            bare, _, kind = name.partition(":")
            made = {"name": bare, "resources": {"limits": {key: str(value) for key, value in limits.items()}}}
            if kind == "sidecar":
                made["restartPolicy"] = "Always"
            spec["initContainers" if kind else "containers"].append(made)
        notes = dict(annotations or {})
        if placement is not None:
            notes["gantry.dev/placement"] = json.dumps({"containers": [
                {"name": name, "gpus": [{"uuid": self.gpus[index], "index": index, "mib": mib, "cores": cores} for index, mib, cores in parts]}
                for name, parts in placement.items()]})
        self.api.set({"metadata": {"name": f"pod-{uid}", "namespace": "default", "uid": uid, "annotations": notes}, "spec": spec,
                      "status": {"phase": "Pending"}})
        words = " / ".join(f"{name} " + " ".join(f"{key}={value}" for key, value in limits.items()) for name, limits in containers.items())
        self.admitted = self.kubelet.ask(f"pod default/pod-{uid}/{uid} {words}")
        self.lane.check(f"pod {uid} is admitted", self.admitted["ok"], f"{self.admitted}\n{self.said()}")

    def start(self, uid: str, container: str = "c") -> dict:
        return self.kubelet.ask(f"start {uid} {container}")

    def started(self, uid: str, container: str = "c") -> dict:
        got = self.start(uid, container)
        self.lane.check(f"pod {uid} container {container} starts", got["ok"], f"{got}\n{self.said()}")
        return got

    def run(self, answer: dict, *argv: str, pod: tuple[str, str] | None = None, name: str = "bundle") -> subprocess.CompletedProcess:
        """A container of runc with what the answer names, put in by our runtime as an engine with CDI would. `pod`: as containerd marks it."""
        path = self.lane.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        shutil.copytree(self.host.image, path / "rootfs", symlinks=True)
        subprocess.run(["runc", "spec"], cwd=path, check=True)
        config = json.loads((path / "config.json").read_text())
        config["process"].update(args=list(argv), terminal=False, env=["PATH=/usr/bin:/bin"] + [f"{k}={v}" for k, v in answer["envs"].items()])
        config["annotations"] = {f"cdi.k8s.io/test{i}": name for i, name in enumerate(answer["cdiDevices"])}
        if pod is not None:
            config["annotations"] |= {"io.kubernetes.cri.sandbox-uid": pod[0], "io.kubernetes.cri.container-name": pod[1]}
        (path / "config.json").write_text(json.dumps(config))
        settings = self.lane.work / "runc.toml"
        settings.write_text('[nvidia-container-runtime]\nruntimes = ["runc"]\n')
        return self.lane.run(self.lane.bin / "nvidia-container-runtime", "--root", self.lane.work / "runc", "run", "--bundle", path, f"g-{random.getrandbits(40):x}",
                        env={**os.environ, "GANTRY_ROOT": str(self.root), "NVIDIA_CTK_CONFIG_FILE_PATH": str(settings)})

    def has(self, what: str, got: dict, index: int | list[int], mib: int) -> None:
        """From inside: the GPUs of these numbers, with so much memory, and not more."""
        indices = index if isinstance(index, list) else [index]
        smi = self.run(got["answer"], "nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader")
        lines = smi.stdout.strip().splitlines()
        self.lane.check(f"{what}: its GPU is the one that it was placed on, with its memory",
                   sorted(lines) == sorted(f"{self.gpus[i]}, {mib} MiB" for i in indices), f"{lines}\n{smi.stderr}\n{self.said()}")
        ran = self.run(got["answer"], "share-probe", str(mib // 2), str(mib))
        self.lane.check(f"{what}: more than its limit is CUDA_ERROR_OUT_OF_MEMORY",
                   f"total {mib}" in ran.stdout and f"alloc {mib // 2} 0" in ran.stdout and f"alloc {mib} 2" in ran.stdout, ran.stdout + ran.stderr)

    def shares(self) -> dict[str, dict]:
        listed = self.lane.run(self.lane.bin / "gantry", "share", "ls", "--json", "--root", self.root).stdout
        return {row["share"]["name"]: row for row in json.loads(listed or "[]")}

    def grant(self, uid: str, container: str = "c") -> dict:
        return json.loads((self.root / f"run/gantry/grants/{uid}/{container}/grant.json").read_text())

    def gone(self, *uids: str) -> None:
        for uid in uids:
            self.kubelet.ask(f"remove {uid}")
            self.api.remove(uid)

    def end(self) -> None:
        self.agent.stop()
        self.kubelet.quit()
