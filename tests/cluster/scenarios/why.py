# SPDX-License-Identifier: Apache-2.0
"""Breaks every link between a pod and its GPU in turn. `gantry why` names the link and the remedy."""
import json
import pathlib
import time

import images
import why_images
from lane_support import Lane
from scenario import CUDA, HOLD, gpu_pod, plain_pod

DEPLOY = pathlib.Path(__file__).resolve().parents[3] / "deploy"
FRACTION = """apiVersion: v1
kind: Pod
metadata: {name: half}
spec:
  containers:
  - name: main
    image: busybox
    resources: {limits: {nvidia.com/gpu: 500m}}
"""
ENFORCE = "pod-security.kubernetes.io/enforce"
INSTALLER = """apiVersion: apps/v1
kind: DaemonSet
metadata: {name: installer, namespace: guarded}
spec:
  selector: {matchLabels: {name: installer}}
  template:
    metadata: {labels: {name: installer}}
    spec:
      hostPID: true
      containers:
      - name: nvidia-driver-installer
        image: busybox
        imagePullPolicy: Never
        command: [sleep, "1000"]
        securityContext: {privileged: true}
"""


def run(lane: Lane, cluster) -> None:
    for archive in why_images.make(cluster.place / "why-images"):
        cluster.import_image(archive)
    Why(lane, cluster).all()


class Why:
    def __init__(self, lane: Lane, cluster) -> None:
        self.lane, self.cluster = lane, cluster

    def all(self) -> None:
        self.everything_right()
        self.spec()
        self.pod_security()
        self.scheduling()
        self.sick()
        self.inside()
        self.started_by_hand()
        self.engine()
        self.agent_gone()

    # Asking

    def ask(self, *words: str) -> tuple[dict, str, int]:
        """The answer as JSON and as text, and the exit status, which is the same for both."""
        argv = [str(self.lane.bin / "gantry"), "why", *words, "--root", str(self.cluster.node.root)]
        if words[0] == "pod":
            argv += ["--node-name", "gpu-node"]
        for _ in range(20):
            data, text = (self.lane.run(*argv, *more) for more in (["--json"], []))
            if not data.stdout.startswith("{"):
                raise RuntimeError(f"{argv}: {data.stdout}{data.stderr}")
            if data.returncode == text.returncode:  # else the pod's state changed between the two
                return json.loads(data.stdout), text.stdout, data.returncode
        raise RuntimeError(f"two statuses: {data} {text}")

    def broken(self, what: str, link: str, cause: str, remedy: str, *words: str) -> None:
        """Waits until the answer settles: the API server shows a change a moment after we made it."""
        answer, text, status = self.settled(lambda said: said["broken"] == link and cause in json.dumps(said), *words)
        found = next((entry for entry in answer["links"] if entry["id"] == answer["broken"]), {})
        self.lane.equal(f"{what}: the broken link is {link}", answer["broken"], link)
        self.lane.check(f"{what}: its cause is told", cause in found.get("cause", "") and "Why: " in text, json.dumps(answer, indent=1))
        self.lane.check(f"{what}: and what mends it", remedy in found.get("remedy", "") and "\nDo:  " in text, json.dumps(found))
        self.lane.equal(f"{what}: exit status", status, 1)

    def settled(self, right, *words: str) -> tuple[dict, str, int]:
        deadline = time.monotonic() + 20
        while True:
            said = self.ask(*words)
            if right(said[0]) or time.monotonic() > deadline:
                return said
            time.sleep(0.2)

    def pod_broken(self, what: str, pod: dict, link: str, cause: str, remedy: str, phase: str = "") -> None:
        name = pod["metadata"]["name"]
        self.cluster.api.create_pod(pod)
        if phase:
            self.cluster.wait_phase(name, phase)
        self.broken(what, link, cause, remedy, "pod", f"default/{name}")
        self.remove(name)

    def remove(self, *names: str) -> None:
        for name in names:
            self.cluster.api.delete_pod(name)
        for name in names:
            self.cluster.gone(name)

    # The links

    def everything_right(self) -> None:
        self.cluster.api.create_pod(with_image(gpu_pod("right", 2, HOLD), why_images.CUDA))
        self.cluster.wait_phase("right", "Running")
        answer, text, status = self.settled(lambda said: said["broken"] is None, "pod", "default/right")
        self.lane.equal("everything right: nothing is broken", (answer["broken"], status), (None, 0))
        self.lane.equal("everything right: nothing is doubtful", answer["look"], None)
        self.lane.equal("everything right: every link was looked at", [entry["id"] for entry in answer["links"]],
                        ["spec.limits", "scheduling", "node.capacity", "node.health", "kubelet.admission", "engine",
                         "kubelet.allocation", "device.health", "container.nodes", "container.libcuda", "container.cuda"])
        self.lane.check("everything right: and that is said", "Gantry found nothing that keeps GPUs from it." in text, text)
        container = self.cluster.api.pod("right")["status"]["containerStatuses"][0]["containerID"].split("://")[1]
        answer, _, status = self.ask("container", container[:13])
        self.lane.equal("why container: the same by its id", (answer["broken"], status), (None, 0))
        self.remove("right")
        self.doctor("ready", "ok")
        self.doctor("capacity", "ok")
        self.doctor("allocatable", "ok")
        self.doctor("taints", "ok")
        self.doctor("labels", "ok")

    def spec(self) -> None:
        self.pod_broken("no limit", plain_pod("no-limit", CUDA, HOLD), "spec.limits", "no container of the pod has", "nvidia.com/gpu: 1")
        legacy = gpu_pod("legacy", 1, HOLD, resource="alpha.kubernetes.io/nvidia-gpu")
        self.pod_broken("the name of 2017", legacy, "spec.limits", "2017", "write nvidia.com/gpu: 1")
        misspelt = gpu_pod("misspelt", 1, HOLD, resource="nvidia.com/gpus")
        self.pod_broken("a misspelt name", misspelt, "spec.resource-name", "did you mean nvidia.com/gpu?", "write nvidia.com/gpu: 1")
        self.infrastructure()
        manifest = self.cluster.place / "half.yaml"
        manifest.write_text(FRACTION)
        refused = self.cluster.kubectl("create", "-f", manifest, check=False)
        self.lane.check("half a GPU: the API server refuses it", "must be an integer" in refused, refused)
        self.broken("half a GPU", "spec.fraction", "whole numbers", "nvidia.com/gpu.shared", "manifest", str(manifest))

    def infrastructure(self) -> None:
        """Our own manifests, as kubectl renders them: agents and schedulers need no GPU."""
        for folder in ("kubernetes", "gpushare", "hami"):
            stream = self.cluster.place / f"{folder}.yaml"
            stream.write_text(self.cluster.kubectl("kustomize", DEPLOY / folder))
            said = self.lane.run(self.lane.bin / "gantry", "why", "manifest", stream, "--json")
            pods = [json.loads(line) for line in said.stdout.splitlines()]
            found = {(pod["broken"], pod["links"][0]["id"]) for pod in pods}
            self.lane.equal(f"deploy/{folder} is infrastructure", (said.returncode, found), (0, {(None, "spec.infrastructure")}))

    def pod_security(self) -> None:
        """A namespace refuses an installer's pods: before it is applied, afterwards, and no more once the label has helped."""
        self.cluster.kubectl("create", "namespace", "guarded")
        self.cluster.kubectl("label", "namespace", "guarded", f"{ENFORCE}=baseline")
        manifest = self.cluster.place / "installer.yaml"
        manifest.write_text(INSTALLER)
        said, _, status = self.ask("manifest", str(manifest))
        self.lane.equal("an installer's manifest: its namespace is to be looked at", (said["look"], status), ("admission.pod-security", 0))
        self.cluster.kubectl("apply", "-f", manifest)
        self.lane.check("a DaemonSet's pods are refused", self.until_said("violates PodSecurity", "-n", "guarded", "get", "events"), "no such event")
        helps = f"kubectl label namespace guarded {ENFORCE}=privileged --overwrite"
        self.broken("a DaemonSet whose pods are refused", "admission.pod-security", "privileged (container", helps, "pod", "guarded/installer")
        self.cluster.kubectl(*helps.split()[1:])
        self.cluster.kubectl("-n", "guarded", "rollout", "restart", "daemonset/installer")
        self.lane.check("the label helps", self.until_said("pod/installer-", "-n", "guarded", "get", "pods", "-o", "name"), "no pod of the installer")
        self.cluster.kubectl("delete", "namespace", "guarded", "--wait=false")

    def until_said(self, text: str, *words: str) -> bool:
        """Whether kubectl says it soon: controllers work a moment after we ask."""
        deadline = time.monotonic() + 20
        while not (found := text in self.cluster.kubectl(*words)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def scheduling(self) -> None:
        self.pod_broken("nine of eight", gpu_pod("nine", 9, HOLD), "scheduling", "no node has that many", "ask for fewer")
        self.pod_broken("no node fits", gpu_pod("picky", 1, HOLD, nodeSelector={"gpu": "a100"}), "scheduling", "no label gpu=a100",
                        "kubectl label node gpu-node gpu=a100")
        self.cluster.kubectl("taint", "node", "gpu-node", "team=other:NoSchedule")
        self.doctor("taints", "info")
        self.pod_broken("a taint", gpu_pod("tainted", 1, HOLD), "scheduling", "taint team=other:NoSchedule", "tolerations: [{key: team")
        self.cluster.kubectl("taint", "node", "gpu-node", "team-")
        self.cluster.api.create_pod(gpu_pod("greedy", 7, HOLD))
        self.cluster.wait_phase("greedy", "Running")
        self.pod_broken("all in use", gpu_pod("late", 2, HOLD), "scheduling", "default/greedy has 7", "wait for one of these pods")
        self.remove("greedy")

    def sick(self) -> None:
        self.cluster.api.create_pod(with_image(gpu_pod("victim", 8, HOLD), why_images.CUDA))
        self.cluster.wait_phase("victim", "Running")
        for index in range(8):
            self.cluster.node.inject("xid", "79", "--gpu", index)
        self.cluster.wait_for("no GPU is usable", lambda: self.cluster.count() == (8, 0), 20)
        self.doctor("allocatable", "warn")
        self.pod_broken("every GPU is sick", gpu_pod("unlucky", 1, HOLD), "scheduling", "8 of 8 on gpu-node are not usable", "gantry doctor")
        self.broken("its GPU fell ill", "device.health", "a GPU that container main holds is not usable", "on gpu-node: ", "pod", "default/victim")
        self.remove("victim")
        self.cluster.node.inject("clear")
        self.cluster.wait_for("the GPUs are well again", lambda: self.cluster.count() == (8, 8), 60)

    def inside(self) -> None:
        def gpu(name: str, image: str, **spec) -> dict:
            return with_image(gpu_pod(name, 1, HOLD, **spec), image)
        self.pod_broken("an image of static programs", gpu("static", images.BUSYBOX), "container.loader", "static programs only", "nvidia/cuda", "Running")
        self.pod_broken("musl", gpu("alpine", why_images.MUSL), "container.musl", "musl (Alpine)", "use an image with glibc", "Running")
        self.pod_broken("a framework for processors", gpu("torch", why_images.PROCESSOR), "container.framework", "PyTorch was built without CUDA",
                        "download.pytorch.org", "Running")
        self.pod_broken("a libcuda before ours", gpu("shadow", why_images.SHADOW), "container.libcuda", "is of driver 384.98", "LD_LIBRARY_PATH", "Running")
        self.without_cuda(gpu("plain", why_images.GLIBC))
        self.volume_over_ours(gpu("covered", why_images.CUDA))
        hidden = gpu("hidden", why_images.CUDA)
        hidden["spec"]["containers"][0]["env"] = [{"name": "CUDA_VISIBLE_DEVICES", "value": "-1"}]
        self.pod_broken("CUDA told to use none", hidden, "container.cuda-visible", "hides every GPU", "CUDA_VISIBLE_DEVICES", "Running")
        self.not_asked()
        self.hostile(gpu("hostile", why_images.HOSTILE))

    def hostile(self, pod: dict) -> None:
        """A FIFO in place of a file, links that lead out, and a name that would clear the screen: there is an answer, and soon."""
        self.cluster.api.create_pod(pod)
        self.cluster.wait_phase("hostile", "Running")
        start = time.monotonic()
        answer, text, status = self.ask("pod", "default/hostile")
        took = time.monotonic() - start
        self.lane.equal("a hostile image: its nodes are looked at, and its variable is named", (answer["broken"], status), ("container.cuda-visible", 1))
        self.lane.check(f"a hostile image does not delay the answer ({took:.1f} s)", took < 10, f"{took:.1f} s")
        self.lane.check("a hostile image steers no terminal", "\x1b" not in text and "\\x1b[2J" in text, repr(text))

        self.remove("hostile")

    def without_cuda(self, pod: dict) -> None:
        self.cluster.api.create_pod(pod)
        self.cluster.wait_phase("plain", "Running")
        answer, text, status = self.ask("pod", "default/plain")
        self.lane.equal("an image without CUDA is worth a look", (answer["broken"], answer["look"], status), (None, "container.cuda", 0))
        self.lane.check("an image without CUDA: what to do", "Perhaps: build the image from nvidia/cuda" in text, text)
        self.lane.check("an image without CUDA: it is not called in order", "found nothing" not in text, text)
        self.remove("plain")

    def volume_over_ours(self, pod: dict) -> None:
        """A volume covers libcuda at every place of the driver, deeper than our directories, with a file that is not a library."""
        places = ("/usr/local/nvidia/lib64", *(f"{base}/{below}" for base in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64") for below in ("glibc-hwcaps/x86-64-v2", "tls")))
        pod["spec"]["volumes"] = [{"name": "nvidia", "emptyDir": {}}]
        mounts = [{"name": "nvidia", "mountPath": f"{place}/libcuda.so.1", "subPath": "libcuda.so.1"} for place in places]
        pod["spec"]["containers"][0]["volumeMounts"] = mounts
        pod["spec"]["initContainers"] = [{"name": "fill", "image": images.BUSYBOX, "command": ["sh", "-c", "echo none >/v/libcuda.so.1"],
                                          "volumeMounts": [{"name": "nvidia", "mountPath": "/v"}]}]
        self.pod_broken("a volume over the driver", pod, "container.mounts", "a volume of the pod is mounted at", "mount that volume elsewhere", "Running")

    def not_asked(self) -> None:
        """Containers without a GPU, asked about by their ids."""
        for name, image, cause in (("unset", why_images.CUDA, "NVIDIA_VISIBLE_DEVICES, which NVIDIA's runtime reads"), ("all", CUDA, "NVIDIA_VISIBLE_DEVICES=all asks for GPUs")):
            self.cluster.api.create_pod(plain_pod(name, image, HOLD))
            self.cluster.wait_phase(name, "Running")
            container = self.cluster.api.pod(name)["status"]["containerStatuses"][0]["containerID"].split("://")[1]
            self.broken(f"NVIDIA_VISIBLE_DEVICES {name}, no limit", "container.nodes", cause, "nvidia.com/gpu: 1", "container", container)
        self.remove("unset", "all")

    def doctor(self, check: str, verdict: str) -> None:
        """Waits until `gantry doctor` has this verdict; the API server must have the node's status first."""
        argv = [self.lane.bin / "gantry", "doctor", "--only", f"cluster.{check}", "--json", "--root", self.cluster.node.root, "--node-name", "gpu-node",
                "--kubeconfig", self.cluster.place / "certs/admin.kubeconfig"]
        def said() -> str:
            return json.loads(self.lane.run(*argv).stdout)["checks"][0]["verdict"]
        try:
            self.cluster.wait_for(f"doctor: cluster.{check} is {verdict}", lambda: said() == verdict, 15)
        except TimeoutError:
            pass
        self.lane.equal(f"doctor: cluster.{check}", said(), verdict)

    def started_by_hand(self) -> None:
        """A pod that names its node bypasses the scheduler, and the kubelet rejects it. And a pod whose program ends."""
        self.pod_broken("more than the kubelet has", gpu_pod("pushy", 9, HOLD, nodeName="gpu-node"), "kubelet.admission", "could not give it the devices",
                        "delete the pod", "Failed")
        self.pod_broken("a program that ends", gpu_pod("brief", 1, ["false"], restartPolicy="Always"), "container.exit", "exited with status 1", "kubectl logs --previous")

    def engine(self) -> None:
        """Two specifications with the same devices cancel each other."""
        double = self.cluster.node.root / "run/cdi/copy.yaml"
        double.write_text((self.cluster.node.root / "run/cdi/nvidia.yaml").read_text())
        self.pod_broken("two CDI specifications", gpu_pod("twice", 1, HOLD), "engine", "two files have the same device", "gantry cdi refresh")
        double.unlink()
        self.cluster.kubectl("create", "-f", "-", stdin='{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"nvidia"},"handler":"nvidia"}')
        self.pod_broken("a runtime that the engine does not know", gpu_pod("classy", 1, HOLD, runtimeClassName="nvidia"), "engine",
                        "no runtime with the name", "gantry runtime configure")
        self.cluster.kubectl("delete", "runtimeclass", "nvidia")

    def agent_gone(self) -> None:
        self.cluster.api.create_pod(with_image(gpu_pod("keeps", 1, HOLD), why_images.CUDA))
        self.cluster.wait_phase("keeps", "Running")
        self.cluster.parts["agent"].kill()
        self.cluster.wait_for("the kubelet has no GPU any more", lambda: self.cluster.count()[1] == 0, 20)
        self.doctor("allocatable", "warn")
        self.cluster.api.create_pod(gpu_pod("orphan", 1, HOLD))
        self.broken("the agent was killed", "scheduling", "the device plugin that offered them is gone", "gantry-agent", "pod", "default/orphan")
        verdicts = {entry["id"]: entry["verdict"] for entry in self.ask("pod", "default/orphan")[0]["links"]}
        self.lane.equal("the agent was killed: no answer on its socket", verdicts.get("plugin.registration"), "BROKEN")
        self.remove("orphan")
        answer, _, status = self.ask("pod", "default/keeps")
        self.lane.equal("the agent was killed: a pod that runs keeps its GPU", (answer["broken"], answer["look"], status), (None, "node.capacity", 0))
        self.remove("keeps")
        self.cluster.ensure_agent()


def with_image(pod: dict, image: str) -> dict:
    pod["spec"]["containers"][0]["image"] = image
    return pod
