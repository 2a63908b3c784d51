# SPDX-License-Identifier: Apache-2.0
"""A node that shares its GPU among pods: scheduler and agent, stand-ins for kubelet and API server, and containers of runc that are given nothing
but the CDI device of their slot. Nothing here knows whether the GPU is real."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from containers import Bundles, without_driver
from fenced import Died, Worker

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from agent_support import PLUGINS, POD_RESOURCES, Agent, Kubelet, until  # noqa: E402
from api_stand_in import NodeApi  # noqa: E402
from extender import Scheduler  # noqa: E402

MEM = "aliyun.com/gpu-mem"
NODE = "node-1"


class Container(Worker):
    """The container of a pod; its program answers lines with lines of JSON."""

    def __init__(self, node: "PodNode", uid: str, bundle: pathlib.Path) -> None:
        self.name = f"gantry-{uid}-{os.getpid()}-{node.bundles.count}"
        self.runc = [str(node.bundles.engines / "runc"), "--root", str(node.work / "state")]
        self.env = node.bundles.env
        super().__init__([str(node.bin / "nvidia-container-runtime"), *self.runc[1:], "run", "--bundle", str(bundle), self.name], self.env)

    def inside(self, *argv: str) -> subprocess.CompletedProcess:
        """As `kubectl exec` does it."""
        return subprocess.run([*self.runc, "exec", self.name, *argv], capture_output=True, text=True, errors="replace", timeout=60, env=self.env)

    def end(self) -> int:
        status = super().end()
        subprocess.run([*self.runc, "delete", "--force", self.name], capture_output=True, timeout=60, env=self.env)  # where runc itself was killed
        return status


class PodNode:
    def __init__(self, build: pathlib.Path, work: pathlib.Path, root: pathlib.Path = pathlib.Path("/")) -> None:
        self.bin, self.work, self.root = build / "bin", work, root
        self.bundles = Bundles(build, work)
        self.api = NodeApi(NODE)
        self.config = self.api.kubeconfig(work / "kubeconfig")
        self.api.store.put("namespaces", {"metadata": {"name": "default"}})
        self.images: dict[str, pathlib.Path] = {}
        sockets = work if root == pathlib.Path("/") else root  # a real kubelet's directory is not for a stand-in
        self.kubelet = Kubelet(self, sockets)
        below = "/" if sockets == root else sockets
        self.agent = Agent(self, root, "--share-gpus", f"--node-name={NODE}", f"--kubeconfig={self.config}", "--device-list-strategy=cdi-cri",
                           "--exporter-port=0", "--gpu-metrics-port=0", f"--kubelet-socket={pathlib.Path(below) / PLUGINS / 'kubelet.sock'}",
                           f"--pod-resources-socket={pathlib.Path(below) / POD_RESOURCES / 'kubelet.sock'}")
        self.scheduler = Scheduler(self, self.api, "scheduler")

    def ready(self) -> bool:
        """The scheduler knows the node's GPUs, and leads."""
        return bool(self.cards()) and bool(until(lambda: self.scheduler.ask("/readyz")[0] == 200, 30)) and self.scheduler.leads()

    def cards(self) -> list[dict]:
        """As the agent tells the scheduler of them."""
        return json.loads(until(lambda: self.api.node["metadata"]["annotations"].get("gantry.dev/shared-gpus"), 30) or '{"gpus": []}')["gpus"]

    def pod(self, uid: str, gib: int, percent: int = 0, card: dict | None = None) -> dict:
        """A pod on this node, with a placement on `card` or without one. Admitted, not started."""
        thing = self.thing(uid, gib, percent)
        thing["spec"]["nodeName"] = NODE
        if card:
            part = {"uuid": card["uuid"], "index": card["index"], "mib": gib * 1024, "cores": percent}
            thing["metadata"]["annotations"]["gantry.dev/placement"] = json.dumps({"containers": [{"name": "c", "gpus": [part]}]})
        self.api.set(thing)
        return self.admitted(uid, gib)

    def scheduled(self, uid: str, gib: int, percent: int = 0) -> dict:
        """The same by the scheduler's decision, where there is room."""
        thing = self.thing(uid, gib, percent)
        self.api.set(thing)
        why = self.scheduler.place(thing, NODE)
        return {"ok": False, "error": why} if why else self.admitted(uid, gib)

    def admitted(self, uid: str, gib: int) -> dict:
        return self.kubelet.ask(f"pod default/{uid}/{uid} c {MEM}={gib}")

    @staticmethod
    def thing(uid: str, gib: int, percent: int) -> dict:
        return {"metadata": {"name": uid, "namespace": "default", "uid": uid, "annotations": {"gantry.dev/compute": str(percent)} if percent else {}},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {MEM: str(gib)}}}]}, "status": {"phase": "Pending"}}

    def prestart(self, uid: str) -> dict:
        return self.kubelet.ask(f"start {uid} c")

    def image(self, uid: str, *files: str | pathlib.Path) -> None:
        """This machine's own root, less its driver, with these files in /usr/local/bin."""
        place = self.work / f"image-{uid}"
        place.mkdir()
        self.images[uid] = without_driver(place)
        for file in files:
            shutil.copy(file, self.images[uid] / "usr/local/bin")

    def start(self, uid: str, *argv: str, image: str = "") -> Container:
        """PreStartContainer, then the container with what the answer to Allocate names."""
        got = self.prestart(uid)
        if not got["ok"]:
            raise Died(f"pod {uid} does not start: {got['error']}")
        answer = got["answer"]
        path = self.bundles.bundle(list(argv), [f"{key}={value}" for key, value in answer["envs"].items()], root=self.images[image or uid])
        spec = json.loads((path / "config.json").read_text())
        spec["annotations"] = {f"cdi.k8s.io/slot{i}": name for i, name in enumerate(answer["cdiDevices"])}
        (path / "config.json").write_text(json.dumps(spec))
        return Container(self, uid, path)

    def gone(self, *uids: str) -> None:
        for uid in uids:
            self.kubelet.ask(f"remove {uid}")
            self.api.remove(uid)

    def call(self, *words: str) -> subprocess.CompletedProcess:
        env = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
        return subprocess.run([self.bin / "gantry", *words], capture_output=True, text=True, timeout=60, env=env)

    def shares(self) -> dict[str, dict]:
        listed = self.call("share", "ls", "--json", "--root", str(self.root))
        return {state["share"]["name"]: state for state in json.loads(listed.stdout or "[]") if state["share"]["name"].startswith("slot-")}

    def inspect(self, *words: str) -> str:
        ran = self.call("inspect", *words, f"--kubeconfig={self.config}")
        return ran.stdout + ran.stderr

    def left(self) -> list[str]:
        """What there is of pods: shares, grants, CDI devices."""
        files = [*(self.root / "var/run/cdi").glob("gantry-slot-*"), *(self.root / "run/gantry/grants").glob("*/*/grant.json")]
        return [*self.shares(), *map(str, files)]

    def said(self, most: int = 6000) -> str:
        """What helps to find a cause afterwards."""
        keeper = self.root / "run/gantry/keeper.log"
        logs = {"agent": self.agent.said(), "scheduler": self.scheduler.log.read_text(errors="replace"),
                "keeper": keeper.read_text(errors="replace") if keeper.exists() else "(no log)"}
        return "".join(f"---- {name}'s log\n{text[-most:]}\n" for name, text in logs.items()) + f"---- shares\n{json.dumps(self.shares())[-most:]}\n"

    def end(self) -> None:
        for stop in (self.scheduler.kill, self.agent.stop, self.kubelet.quit):
            try:
                stop()
            except (subprocess.TimeoutExpired, OSError) as problem:
                print(f"      {problem!r}", flush=True)
        for image in self.images:
            place = self.work / f"image-{image}/overlay"
            subprocess.run(["umount", "-l", place / "root", place], check=False, capture_output=True)
