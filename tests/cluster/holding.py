# SPDX-License-Identifier: Apache-2.0
"""Pods that hold GPUs while something happens, and checks of them afterwards."""
from lane_support import Lane
from observer import Observer
from scenario import HOLD, gpu_pod

PODS = {"keeper": 3, "other": 1}


def hold(lane: Lane, cluster) -> dict[str, list[str]]:
    """Starts the pods and returns the GPUs of each."""
    for name, gpus in PODS.items():
        cluster.api.create_pod(gpu_pod(name, gpus, HOLD, restartPolicy="Always"))
    for name in PODS:
        cluster.wait_phase(name, "Running")
    held = holding(cluster)
    lane.equal("two pods hold four GPUs", {pod: len(ids) for pod, ids in held.items()}, PODS)
    return held


def release(cluster, *names: str) -> None:
    for name in names or PODS:
        cluster.api.delete_pod(name)
    for name in names or PODS:
        cluster.gone(name)


def holding(cluster) -> dict[str, list[str]]:
    """The GPUs of each pod, as the kubelet reports them."""
    return {holder["pod"]: sorted(holder["devices"]) for holder in cluster.holders()}


def processes() -> set[tuple[str, int]]:
    """Each container with a GPU and its process, found by the containers' own /dev."""
    return {(seen.container, seen.pid) for seen in Observer().live() if seen.devices}


def still_held(lane: Lane, cluster, name: str, held: dict[str, list[str]]) -> None:
    """A kubelet that has just started lists no pod until it has seen them again."""
    try:
        cluster.wait_for("the kubelet lists its pods", lambda: holding(cluster).keys() == held.keys(), 10)
    except TimeoutError:
        pass  # the comparison below reports it with more detail
    lane.equal(f"{name}: pods keep their GPUs", holding(cluster), held)


def takes_the_rest(lane: Lane, cluster, name: str, held: dict[str, list[str]]) -> None:
    """A new pod gets GPUs that no other pod has."""
    free = 8 - sum(len(ids) for ids in held.values())
    cluster.wait_for("the node shows its GPUs", lambda: cluster.count() == (8, 8), 10)
    cluster.api.create_pod(gpu_pod("rest", free, HOLD))
    cluster.wait_phase("rest", "Running", 30)
    mine = holding(cluster).get("rest", [])
    taken = {gpu for ids in held.values() for gpu in ids}
    lane.check(f"{name}: a new pod gets the other {free}", len(mine) == free and not taken & set(mine), f"{mine} {held}")
    release(cluster, "rest")
