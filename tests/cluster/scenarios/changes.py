# SPDX-License-Identifier: Apache-2.0
"""GPUs and drivers disappear and come back while pods run: the kubelet offers the right GPUs within two seconds, and pods keep theirs."""
import json
import time

from holding import holding, processes, release, still_held
from lane_support import Lane
from observer import Observer
from scenario import HOLD, gpu_pod
from scenarios.smoke import scheduling_message

PODS = {"keeper": 2}


def run(lane: Lane, cluster) -> None:
    observer = Observer()
    observer.start()
    cluster.api.create_pod(gpu_pod("keeper", PODS["keeper"], HOLD))
    cluster.wait_phase("keeper", "Running")
    held, before = holding(cluster), processes()
    cards = {gpu["uuid"]: gpu["index"] for gpu in cluster.node.inventory()["gpus"]}
    free = next(uuid for uuid in cards if uuid not in held["keeper"])
    a_gpu_goes_and_comes(lane, cluster, "a free GPU", free, cards)
    a_gpu_goes_and_comes(lane, cluster, "a GPU that a pod has", held["keeper"][0], cards)
    still_held(lane, cluster, "GPUs went and came", held)
    the_driver_goes_and_comes(lane, cluster)
    still_held(lane, cluster, "the driver went and came", held)
    lane.equal("its containers never noticed", processes(), before)
    release(cluster, "keeper")
    observer.end()
    lane.equal("no GPU was in two containers at once", observer.doubles, [])


def right_soon(lane: Lane, cluster, what: str, count: int, *change) -> None:
    watch = cluster.watch_allocatable()
    start = time.time()
    cluster.node.inject(*change)
    took = watch.settles(count) - start
    lane.check(f"{what}: GetAllocatableResources is right within 2 s ({took:.2f})", took <= 2, json.dumps(watch.end()))


def a_gpu_goes_and_comes(lane: Lane, cluster, what: str, uuid: str, cards: dict[str, int]) -> None:
    right_soon(lane, cluster, f"{what} goes", 7, "remove", "--gpu", cards[uuid])
    lane.check(f"{what} goes: it is the one that is missing", uuid not in cluster.allocatable(), str(cluster.allocatable()))
    # Kubernetes only counts: the pod has two of the seven, whichever they are.
    others = takes_all(cluster, 7 - PODS["keeper"])
    lane.check(f"{what} goes: a new pod gets the others", uuid not in others and set(others) <= set(cards), str(others))
    right_soon(lane, cluster, f"{what} comes", 8, "clear", "removed")
    lane.equal(f"{what} comes: the same eight", cluster.allocatable(), sorted(cards))
    others = takes_all(cluster, 8 - PODS["keeper"])
    lane.equal(f"{what} comes: a new pod gets all that are free", len(others), 8 - PODS["keeper"])


def takes_all(cluster, free: int) -> list[str]:
    """The GPUs that a pod with this request sees."""
    cluster.wait_for("the node shows what the kubelet has", lambda: cluster.count()[1] == len(cluster.allocatable()), 10)
    time.sleep(0.3)  # the kubelet's own copy of the node, by which it admits pods, follows the API server's
    cluster.api.create_pod(gpu_pod("others", free, ["sh", "-c", "nvidia-smi -L && gantry-vector-add"]))
    cluster.wait_phase("others", "Succeeded", 30)
    seen = [line.split("UUID: ")[1].rstrip(")") for line in cluster.api.log("others").splitlines() if "UUID: " in line]
    release(cluster, "others")
    return seen


def the_driver_goes_and_comes(lane: Lane, cluster) -> None:
    right_soon(lane, cluster, "the driver is unloaded", 0, "unload")
    cluster.wait_for("the node shows it", lambda: cluster.count()[1] == 0, 10)
    said = cluster.wait_for("the node's condition says it", lambda: unhealthy(cluster), 15)
    lane.check("the driver is unloaded: the node says so, and what helps", said.startswith("all 8 GPUs: the nvidia kernel module is not loaded") and "remedy: " in said, said)
    cluster.api.create_pod(gpu_pod("waits", 1, ["gantry-vector-add"]))
    message = cluster.wait_for("the scheduler says why it waits", lambda: scheduling_message(cluster, "waits"))
    lane.check("the driver is unloaded: pods wait", "Insufficient nvidia.com/gpu" in message, message)
    right_soon(lane, cluster, "the driver is loaded again", 8, "load")
    cluster.wait_phase("waits", "Succeeded", 60)
    lane.check("the driver is loaded again: the pod that waited computes", "Test PASSED" in cluster.api.log("waits"), cluster.api.log("waits"))
    release(cluster, "waits")
    cluster.wait_for("every GPU is healthy, by the node's condition", lambda: not unhealthy(cluster), 15)


def unhealthy(cluster) -> str:
    """The message of the node's condition while not every GPU can be used."""
    found = [c for c in cluster.api.node()["status"]["conditions"] if c["type"] == "GPUsHealthy"]
    return found[0]["message"] if found and found[0]["status"] == "False" else ""
