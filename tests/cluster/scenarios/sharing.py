# SPDX-License-Identifier: Apache-2.0
"""Shares of GPUs as gpushare and HAMi request them, placed by the real kube-scheduler with our extender and limited in the container."""
import re

from lane_support import Lane
from scenarios.smoke import scheduling_message
from sharing import GIB, MEM, ask, hami_pod, placement, seen, share_pod, shared_gpus


def run(lane: Lane, cluster) -> None:
    with shared_gpus(cluster):
        offered(lane, cluster)
        two_fit_a_third_does_not(lane, cluster)
        per_gpu_not_per_node(lane, cluster)
        containers_of_one_pod(lane, cluster)
        by_hami(lane, cluster)
        bad_asks(lane, cluster)
        barred(lane, cluster)


def offered(lane: Lane, cluster) -> None:
    cluster.wait_for("all of it is there", lambda: cluster.count(MEM) == (8 * GIB, 8 * GIB), 20)
    lane.equal("the node has eight times 140 GiB to share", cluster.count(MEM), (8 * GIB, 8 * GIB))
    lane.equal("and says how many cards that is", cluster.count("aliyun.com/gpu-count")[0], 8)


def finish(cluster, *pods: str) -> None:
    for pod in pods:
        cluster.api.delete_pod(pod)
    for pod in pods:
        cluster.gone(pod)


def two_fit_a_third_does_not(lane: Lane, cluster) -> None:
    """Two pods share a GPU. Each has its own limit, and more than that is out of memory."""
    for pod in ("first", "second"):
        cluster.api.create_pod(share_pod(pod, 60, "share-probe --hold 100000 1024 65536"))
        cluster.wait_phase(pod, "Running")
    placed = {pod: placement(cluster.api.pod(pod))["main"] for pod in ("first", "second")}
    lane.equal("two pods of 60 GiB are on one GPU", len({gpus[0]["uuid"] for gpus in placed.values()}), 1)
    for pod in placed:
        said = seen(cluster, pod, until="alloc 65536")
        lane.equal(f"{pod}: one device", said.get("devices"), "1")
        lane.equal(f"{pod}: the card it sees has 60 GiB", said.get("total"), str(60 * 1024))
        lane.equal(f"{pod}: a GiB is given", said.get("alloc 1024"), "0")
        lane.equal(f"{pod}: 64 GiB more are out of memory", said.get("alloc 65536"), "2")
        smi = cluster.kubectl("exec", pod, "--", "nvidia-smi", "-L")
        lane.equal(f"{pod}: the GPU in the container is the one of its placement", re.findall(r"GPU-[0-9a-f-]{36}", smi), [placed[pod][0]["uuid"]])
    annotations = cluster.api.pod("first")["metadata"]["annotations"]
    lane.equal("gpushare's own annotations are there", annotations.get("ALIYUN_COM_GPU_MEM_POD"), "60")
    cluster.wait_for("and it is marked as assigned", lambda: cluster.api.pod("first")["metadata"]["annotations"].get("ALIYUN_COM_GPU_MEM_ASSIGNED") == "true", 10)
    node = ask("/inspect/gpu-node")["nodes"][0]
    lane.equal("inspect shows what is taken", node["usedGPU"], 120)
    finish(cluster, "first", "second")


def per_gpu_not_per_node(lane: Lane, cluster) -> None:
    """The node has enough memory, but no single card has."""
    names = [f"big-{i}" for i in range(8)]
    for name in names:
        cluster.api.create_pod(share_pod(name, 100))
    for name in names:
        cluster.wait_phase(name, "Running")
    lane.equal("eight pods of 100 GiB are on eight GPUs", len({placement(cluster.api.pod(n))["main"][0]["uuid"] for n in names}), 8)
    cluster.api.create_pod(share_pod("ninth", 50))
    message = cluster.wait_for("the scheduler says why ninth waits", lambda: scheduling_message(cluster, "ninth"))
    lane.check("320 GiB are free, 50 on no single GPU: it waits, and the reason names the amount", "50 GiB" in message, message)
    cluster.api.delete_pod(names[0])
    cluster.wait_phase("ninth", "Running", 60)
    lane.check("it runs when one has gone", True)
    finish(cluster, "ninth", *names[1:])


def containers_of_one_pod(lane: Lane, cluster) -> None:
    pod = share_pod("pair", 10)
    main = pod["spec"]["containers"][0]
    pod["spec"]["containers"].append(dict(main, name="other", resources={"limits": {MEM: "20"}}))
    pod["spec"]["containers"].append(dict(main, name="none", resources={}, command=["sh", "-c", "ls /dev; sleep 100000"]))
    pod["spec"]["initContainers"] = [dict(main, name="before", command=["share-probe", "1024", "20480"], resources={"limits": {MEM: "15"}})]
    cluster.api.create_pod(pod)
    cluster.wait_phase("pair", "Running")
    lane.equal("an init container has its own limit", seen(cluster, "pair", "before").get("total"), str(15 * 1024))
    lane.equal("a container has its own", seen(cluster, "pair", "main").get("total"), str(10 * 1024))
    lane.equal("and so has the other", seen(cluster, "pair", "other").get("total"), str(20 * 1024))
    lane.check("the one that asked for nothing has no GPU", "nvidia" not in cluster.api.log("pair", container="none"), "")
    finish(cluster, "pair")


def by_hami(lane: Lane, cluster) -> None:
    cluster.api.create_pod(hami_pod("hami", 2, 3000, 30))
    cluster.wait_phase("hami", "Running")
    parts = placement(cluster.api.pod("hami"))["main"]
    lane.equal("nvidia.com/gpu: 2 with gpumem: two different cards", len({part["uuid"] for part in parts}), 2)
    said = seen(cluster, "hami")
    lane.equal("two devices in the container", said.get("devices"), "2")
    lane.equal("of 3000 MiB", said.get("total"), "3000")
    lane.check("HAMi's annotation is there", "3000,30:" in cluster.api.pod("hami")["metadata"]["annotations"].get("hami.io/vgpu-devices-allocated", ""), "")
    finish(cluster, "hami")


def bad_asks(lane: Lane, cluster) -> None:
    """A request for more than any card has is never placed, and the event says so."""
    cluster.api.create_pod(share_pod("huge", GIB + 60))
    message = cluster.wait_for("the scheduler says why huge waits", lambda: scheduling_message(cluster, "huge"))
    lane.check("200 GiB of one GPU: the reason says that no GPU is that large", "200 GiB" in message, message)
    finish(cluster, "huge")


def barred(lane: Lane, cluster) -> None:
    """gpushare's way to mark cards unhealthy: a ConfigMap that names them. The extender reads it with the rights of deploy/gpushare."""
    name = "unhealthy-gpu-gpu-node"
    cluster.kubectl("create", "configmap", "-n", "kube-system", name, "--from-literal=gpus=0,1,2,3,4,5,6,7")
    cluster.wait_for("the extender has read it", lambda: not any(card["healthy"] for card in ask("/inspect/gpu-node")["nodes"][0]["devs"]), 20)
    cluster.api.create_pod(share_pod("barred", GIB))
    message = cluster.wait_for("the scheduler says why barred waits", lambda: scheduling_message(cluster, "barred"))
    lane.check("no pod is placed on GPUs that a ConfigMap marks unhealthy, and the reason names the ConfigMap", "ConfigMap kube-system/unhealthy-gpu-NODE" in message, message)
    cluster.kubectl("delete", "configmap", "-n", "kube-system", name)
    cluster.wait_for("the extender has seen its end", lambda: all(card["healthy"] for card in ask("/inspect/gpu-node")["nodes"][0]["devs"]), 20)
    cluster.kubectl("label", "node", "gpu-node", "looked=again")  # an event: kube-scheduler looks again, else after five minutes at the latest
    cluster.wait_phase("barred", "Running", 60)
    lane.check("it runs when the ConfigMap is gone", True)
    finish(cluster, "barred")
    cluster.kubectl("label", "node", "gpu-node", "looked-")
