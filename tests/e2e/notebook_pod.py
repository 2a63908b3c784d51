# SPDX-License-Identifier: Apache-2.0
"""A pod with Debian's Jupyter on a simulated GPU node: the agent with a fake kubelet and API server, and a container of the real runc
with a network of its own, whose files are this machine's /usr and /etc."""
import atexit
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import uuid

from agent_support import Agent, Kubelet, until
from api_stand_in import NodeApi
from lane_support import Lane

NODE, POD, UID = "gpu-node", "tf-notebook", "uid-1"
ADDRESS, GATEWAY, PORT = "10.88.0.2", "10.88.0.1", 8888
TOKEN = "sesame"
# A kernel that dies stays dead, so that it can be looked at.
COMMAND = ["jupyter-notebook", "--allow-root", "--no-browser", "--ip=0.0.0.0", f"--port={PORT}", f"--NotebookApp.token={TOKEN}",
           "--notebook-dir=/notebooks", "--KernelRestarter.restart_limit=0"]


def write_notebook(path: pathlib.Path, source: str) -> None:
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    path.write_text(json.dumps({"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}))


class NotebookPod:
    def __init__(self, lane: Lane, source: str) -> None:
        self.lane = lane
        self.root = lane.machine("h200x8", "--nodes", "real")
        self.api = NodeApi(NODE)
        self.kubeconfig = self.api.kubeconfig(lane.work / "kubeconfig")
        self.kubelet = Kubelet(lane, self.root)
        self.agent = Agent(lane, self.root, f"--node-name={NODE}", f"--kubeconfig={self.kubeconfig}", "--exporter-port=0", "--gpu-metrics-port=0")
        lane.check("the node offers its GPUs", self.kubelet.ask("wait nvidia.com/gpu 8 60")["ok"], self.agent.said())
        self.count_gpus()
        given = self.kubelet.ask(f"admit default/{POD}/{UID}/{POD} nvidia.com/gpu=1")
        lane.check("the pod gets one", given["ok"], str(given))
        self.gpu = given["ids"]["nvidia.com/gpu"][0]
        self.id = uuid.uuid4().hex * 2
        self.files = lane.work / "notebooks"
        self.files.mkdir()
        write_notebook(self.files / "gpu.ipynb", source)
        self.start(given["answer"])
        self.put_pod()

    def count_gpus(self) -> None:
        """What a kubelet writes to its node."""
        node = self.api.store.get("nodes", f"/{NODE}")
        count = {"nvidia.com/gpu": str(self.kubelet.allocatable())}
        node["status"] |= {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": count}
        self.api.store.put("nodes", node)

    def put_pod(self) -> None:
        container = {"name": POD, "image": "tensorflow:latest-gpu-jupyter", "resources": {"limits": {"nvidia.com/gpu": "1"}},
                     "ports": [{"containerPort": PORT, "name": "notebook", "protocol": "TCP"}]}
        state = {"name": POD, "ready": True, "containerID": f"containerd://{self.id}", "state": {"running": {}}}
        self.api.set({"metadata": {"name": POD, "namespace": "default", "uid": UID}, "spec": {"nodeName": NODE, "containers": [container]},
                      "status": {"phase": "Running", "podIP": ADDRESS, "containerStatuses": [state],
                                 "conditions": [{"type": "PodScheduled", "status": "True"}]}})

    def bundle(self, answer: dict) -> pathlib.Path:
        path = self.lane.work / "bundle"
        layers = self.lane.work / "layers"
        for directory in (path, layers):
            directory.mkdir()
        # Not on the file system of /usr, which may be an overlay itself.
        self.lane.run("mount", "-t", "tmpfs", "-o", "size=64m", "none", layers, check=True)
        for name in ("dev", "proc", "sys", "tmp", "notebooks"):
            (path / "rootfs" / name).mkdir(parents=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            (path / "rootfs" / name).symlink_to(f"usr/{name}")
        for name in ("usr", "etc"):
            for directory in (path / "rootfs" / name, layers / name / "upper", layers / name / "work"):
                directory.mkdir(parents=True)
            options = f"lowerdir=/{name},upperdir={layers / name}/upper,workdir={layers / name}/work"
            self.lane.run("mount", "-t", "overlay", "-o", options, "none", path / "rootfs" / name, check=True)
        shutil.copy(self.lane.bin / "gantry-vector-add", path / "rootfs/usr/bin/gantry-vector-add")
        subprocess.run(["runc", "spec"], cwd=path, check=True)
        spec = json.loads((path / "config.json").read_text())
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYDEVD_DISABLE_FILE_VALIDATION": "1"} | answer["envs"]
        spec["process"].update(args=COMMAND, terminal=False, env=[f"{name}={value}" for name, value in environment.items()])
        spec["root"]["readonly"] = False
        spec["mounts"].append({"destination": "/notebooks", "type": "bind", "source": str(self.files), "options": ["rbind", "rw"]})
        self.add_gpu(spec, answer)
        (path / "config.json").write_text(json.dumps(spec))
        return path

    @staticmethod
    def add_gpu(spec: dict, answer: dict) -> None:
        """What the agent told the kubelet, as an engine without CDI does it."""
        for mount in answer["mounts"]:
            spec["mounts"].append({"destination": mount["containerPath"], "type": "bind", "source": mount["hostPath"], "options": ["rbind", "ro"]})
        spec["linux"].setdefault("devices", [])
        for node in answer["devices"]:
            info = os.stat(node["hostPath"])
            numbers = {"type": "c", "major": os.major(info.st_rdev), "minor": os.minor(info.st_rdev)}
            spec["linux"]["devices"].append({"path": node["containerPath"], "fileMode": 0o666, **numbers})
            spec["linux"]["resources"]["devices"].append({"allow": True, "access": node["permissions"], **numbers})

    def runc(self, *argv) -> list[str]:
        return ["runc", "--root", str(self.lane.work / "runc"), *(str(word) for word in argv)]

    def start(self, answer: dict) -> None:
        pid_file = self.lane.work / "pod.pid"
        self.log = self.lane.work / "jupyter.log"
        with open(self.log, "w", encoding="utf-8") as log:
            subprocess.run(self.runc("run", "--detach", "--pid-file", pid_file, "--bundle", self.bundle(answer), self.id), check=True,
                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60)
        atexit.register(self.remove)  # also when the lane fails
        self.pid = int(pid_file.read_text())
        inside = ["nsenter", "-t", self.pid, "-n", "ip"]
        for command in (["ip", "link", "add", "pod0", "type", "veth", "peer", "name", "eth0", "netns", self.pid],
                        ["ip", "addr", "add", f"{GATEWAY}/24", "dev", "pod0"], ["ip", "link", "set", "pod0", "up"],
                        [*inside, "addr", "add", f"{ADDRESS}/24", "dev", "eth0"], [*inside, "link", "set", "eth0", "up"],
                        [*inside, "link", "set", "lo", "up"]):
            self.lane.run(*command, check=True)

    def kernel_processes(self, kernel: str) -> dict[int, str]:
        """The processes of the container that have this kernel's command line, each with its state: "S", "T". A child has it, too, until
        it becomes another program."""
        listed = json.loads(self.lane.run(*self.runc("ps", "--format", "json", self.id), check=True).stdout)
        found = {}
        for pid in listed:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                process = pathlib.Path(f"/proc/{pid}")
                if f"kernel-{kernel}.json".encode() in (process / "cmdline").read_bytes():
                    found[pid] = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return found

    def signal_kernel(self, kernel: str, number: int) -> None:
        for pid in self.kernel_processes(kernel):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def inject(self, *what: str) -> None:
        self.lane.run(self.lane.bin / "gantry", "sim", "inject", "--root", self.root, *what, check=True)

    def condition(self) -> dict:
        conditions = self.api.node["status"].get("conditions", [])
        return next((one for one in conditions if one["type"] == "GPUsHealthy"), {})

    def wait_for_health(self, status: str) -> bool:
        return bool(until(lambda: self.condition().get("status") == status, 30))

    def remove(self) -> None:
        self.lane.run(*self.runc("delete", "--force", self.id))

    def end(self) -> None:
        self.remove()
        self.agent.stop()
        self.kubelet.quit()
        self.api.stop()
