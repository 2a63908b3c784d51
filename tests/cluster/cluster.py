# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes of one node on a simulated GPU machine, in the world that world.py made."""
import json
import os
import pathlib
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import build
import certs
import config
import images
import world
from api import Api
from node import Node
from part import Part, wait_for

LOGS = build.BUILD / "logs" / os.environ.get("GANTRY_CLUSTER_NUMBER", "1")


class Cluster:
    def __init__(self, lane, programs: pathlib.Path, machine: str = "h200x8") -> None:
        self.lane, self.programs, self.place = lane, programs, world.PLACE
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
        os.environ["KUBECONFIG"] = str(self.place / "certs/admin.kubeconfig")
        os.environ["HOME"] = str(self.place / "home")
        LOGS.mkdir(parents=True, exist_ok=True)
        for old in LOGS.glob("*.log"):
            old.unlink()
        self.machine = machine
        self.parts: dict[str, Part] = {}
        for name, argv in (("etcd", config.etcd), ("kube-apiserver", config.apiserver), ("containerd", config.containerd),
                           ("kube-controller-manager", config.controller_manager), ("kube-scheduler", config.scheduler),
                           ("kube-proxy", config.proxy), ("kubelet", config.kubelet)):
            self.parts[name] = Part(name, argv(self.place), LOGS)

    # Up and down

    def start(self) -> float:
        """Starts everything and returns the seconds until the node was ready for pods."""
        start = time.monotonic()
        certs.make(self.place / "certs", config.ADDRESS, config.SERVICE_ADDRESS)
        config.write(self.place)
        self.node = Node(self.lane.bin, self.machine)
        with ThreadPoolExecutor() as pool:
            self.parts["etcd"].start()
            self.parts["kube-apiserver"].start()
            self.start_engine()
            archives = pool.submit(images.make, self.lane, self.place / "images")
            self.api = Api(config.ADDRESS, str(self.place / "certs/ca.crt"), certs.token("admin"))
            self.wait_for("kube-apiserver is ready", lambda: self.api.get("/readyz") == "ok", 60)
            self.start_parts("kube-controller-manager", "kube-scheduler")
            for archive in archives.result():
                self.import_image(archive)
            self.start_parts("kubelet", "kube-proxy")
        wait_for("the node is Ready", self.ready, 60, alive=tuple(self.parts.values()))
        self.wait_for("the default service account is there", lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default"))
        return time.monotonic() - start

    def start_engine(self) -> None:
        """Its socket exists before its CRI service answers, and a kubelet that comes in between ends."""
        engine = self.parts["containerd"]
        said = len(engine.words()) if engine.log.exists() else 0
        engine.start()
        self.wait_for("containerd is up", lambda: "containerd successfully booted" in engine.words(said), 60)

    def start_parts(self, *names: str) -> None:
        for name in names:
            self.parts[name].start()

    def schedule_by(self, configuration: pathlib.Path | None) -> None:
        """Replaces the running kube-scheduler by one with this configuration file, or by the plain one."""
        self.parts["kube-scheduler"].stop()
        argv = config.scheduler_told(self.place, configuration) if configuration else config.scheduler(self.place)
        self.parts["kube-scheduler"] = Part("kube-scheduler", argv, LOGS)
        self.parts["kube-scheduler"].start()

    def stop(self) -> None:
        """Kills the cluster's programs; the end of the world ends everything else."""
        for name in ("kubelet", "kube-proxy", "kube-scheduler", "kube-controller-manager"):
            if name in self.parts:
                self.parts[name].kill()
        for part in reversed(self.parts.values()):
            part.kill()

    # Questions

    def ready(self) -> bool:
        conditions = self.api.node()["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def wait_for(self, what: str, true, seconds: float = 30, pause: float = 0.1):
        return wait_for(what, true, seconds, pause, alive=tuple(p for p in self.parts.values() if p.name in ("etcd", "kube-apiserver", "containerd", "kubelet")))

    def kubectl(self, *argv, stdin: str | None = None, check: bool = True) -> str:
        done = subprocess.run(["kubectl", *(str(a) for a in argv)], input=stdin, capture_output=True, text=True, check=False, timeout=120)
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(str(a) for a in argv)}: {done.stderr}{done.stdout}")
        return done.stdout + ("" if check else done.stderr)

    def phase(self, pod: str) -> str:
        found = self.api.pod(pod)
        return found["status"].get("phase", "") if found else ""

    def wait_phase(self, pod: str, phase: str, seconds: float = 60) -> None:
        try:
            self.wait_for(f"pod {pod} is {phase}", lambda: self.phase(pod) == phase, seconds)
        except TimeoutError as late:
            found = self.api.pod(pod)
            words = self.kubectl("logs", pod, "--all-containers", "--tail=5", check=False)
            raise TimeoutError(f"{late}\n{story(found) if found else 'the pod does not exist'}\n{words}") from None

    def gone(self, pod: str, seconds: float = 60) -> None:
        self.wait_for(f"pod {pod} is gone", lambda: self.api.pod(pod) is None, seconds)

    def count(self, resource: str = "nvidia.com/gpu") -> tuple[int, int]:
        """Capacity and allocatable of a resource, as the API server has them."""
        status = self.api.node()["status"]
        return int(status["capacity"].get(resource, 0)), int(status["allocatable"].get(resource, 0))

    def podresources(self, question: str):
        done = subprocess.run(["podresources", question], capture_output=True, text=True, check=False, timeout=20)
        if done.returncode != 0:
            raise RuntimeError(f"podresources {question}: {done.stderr}")
        return json.loads(done.stdout)

    def allocatable(self, resource: str = "nvidia.com/gpu") -> list[str]:
        """The devices that the kubelet would hand out now. The API server shows them a moment later."""
        return self.podresources("allocatable").get(resource, [])

    def holders(self) -> list[dict]:
        return self.podresources("list")

    def watch_allocatable(self) -> "Watch":
        return Watch(self.place / "watch.jsonl")

    def describe(self) -> str:
        """What the node offers and what agent and kubelet last said about it, for a scenario that failed."""
        status = self.api.node()["status"]
        offered = {name: f"{count} of {status['capacity'].get(name)}" for name, count in status["allocatable"].items() if "/" in name}
        lines = [f"allocatable: {offered}"]
        for name, words in (("agent", ""), ("kubelet", "device plugin|Endpoint became|plugin_watcher|ListAndWatch")):
            if name in self.parts:
                said = [line for line in self.parts[name].words().splitlines() if re.search(words, line)]
                lines += [f"{name}: {line}" for line in said[-20:]]
        return "\n".join(lines)

    # Changes

    def import_image(self, archive: pathlib.Path) -> None:
        def imported() -> bool:
            done = subprocess.run(["ctr", "-a", config.SOCKET, "-n", "k8s.io", "images", "import", str(archive)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            return True
        self.wait_for(f"containerd imports {archive.name}", imported, 30)

    def clean(self) -> None:
        """Removes what a scenario left: pods, the objects that create pods, and injected faults."""
        self.node.inject("clear")
        self.kubectl("delete", "deployment,job,replicaset", "--all", "--cascade=orphan")
        for pod in self.api.pods():
            self.api.delete_pod(pod["metadata"]["name"])
        self.wait_for("no pod is left", lambda: not self.api.pods(), 40)

    def restart(self, name: str, kill: bool = False) -> None:
        part = self.parts[name]
        if kill:
            part.kill()
            part.start()
        else:
            part.restart()

    def agent_part(self, name: str, *flags: str) -> Part:
        command = os.environ.get("GANTRY_CLUSTER_PLUGIN", "").split() or [self.lane.bin / "gantry", "agent"]
        return Part(name, [*command, "--root", self.node.root, *flags], LOGS)

    def start_agent(self, *flags: str) -> None:
        if "agent" in self.parts:
            self.parts["agent"].stop()
        self.parts["agent"] = self.agent_part("agent", *flags)
        self.parts["agent"].start()

    def ensure_agent(self) -> None:
        if "agent" not in self.parts or not self.parts["agent"].running():
            self.start_agent()
        wait_for("the agent offers eight GPUs", lambda: self.count() == (8, 8), 20, alive=(self.parts["agent"],))

    def upgrade_agent(self, *flags: str) -> None:
        """Starts a new agent while the old one still runs, as in a rolling update without a gap. The old one ends by itself."""
        new = self.agent_part("agent", *flags)
        new.start()
        old, self.parts["agent"] = self.parts["agent"], new
        self.wait_for("the old agent hands over and ends", lambda: not old.running(), 10, pause=0.02)

    def reboot(self, agent_after: float = 0.0) -> None:
        """Switches the node off and on: all its processes except the control plane's end, /run is empty, the boot id is new.
        The agent starts before the kubelet, like a service of the machine, or that many seconds after it, like a pod."""
        ours = [name for name in ("kubelet", "kube-proxy", "containerd", "agent") if name in self.parts]
        for name in ours:
            self.parts[name].kill()
        kill_containers()
        world.remove_pod_groups()
        self.node.reboot()
        self.start_engine()
        if not agent_after:
            self.parts["agent"].start()
        self.start_parts("kubelet", "kube-proxy")
        if agent_after:
            time.sleep(agent_after)
            self.parts["agent"].start()


def story(pod: dict) -> str:
    """Describes a pod's status in one line."""
    status = pod["status"]
    states = [f"{s['name']}: {json.dumps(s['state'])}" for s in status.get("initContainerStatuses", []) + status.get("containerStatuses", [])]
    reasons = [c["message"] for c in status.get("conditions", []) if c["status"] != "True" and c.get("message")]
    return " | ".join([status.get("phase", ""), status.get("message", ""), *states, *reasons])


class Watch:
    """Records what the kubelet reports as allocatable. It is asked fifty times a second until end()."""

    def __init__(self, lines: pathlib.Path) -> None:
        self.lines = lines
        with lines.open("w") as out:
            self.process = subprocess.Popen(["podresources", "watch"], stdin=subprocess.DEVNULL, stdout=out)
        wait_for("the watch says its first line", self.said)

    def said(self) -> list[dict]:
        return [json.loads(line) for line in self.lines.read_text().splitlines()]

    def settles(self, count: int, resource: str = "nvidia.com/gpu", quiet: float = 1.5, seconds: float = 20) -> float:
        """Waits until the count has been right for a while, and returns the time since when."""
        def settled() -> float:
            last = self.said()[-1]
            right = last["answered"] and last["counts"].get(resource, 0) == count
            return last["time"] if right and time.time() - max(last["time"], begun) > quiet else 0.0
        begun = time.time()
        return wait_for(f"{count} {resource} allocatable", settled, seconds, pause=0.05)

    def end(self) -> list[dict]:
        self.process.terminate()
        self.process.wait()
        return self.said()


def kill_containers() -> None:
    """Kills shims and the processes below them, found by their cgroup and name."""
    for _ in range(50):
        found = [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and in_container(entry)]
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        time.sleep(0.05)


def in_container(process: pathlib.Path) -> bool:
    try:
        if "zombie" in (process / "status").read_text():
            return False
        return "/kubepods" in (process / "cgroup").read_text() or (process / "comm").read_text().startswith("containerd-shim")
    except OSError:
        return False
