# SPDX-License-Identifier: Apache-2.0
"""Kubelet, agent and engine die and come back while pods run: pods keep their GPUs, no GPU is handed out twice, and the kubelet's
answers are right within two seconds."""
import json
import pathlib
import time

from holding import hold, processes, release, still_held, takes_the_rest
from lane_support import Lane
from observer import Observer

KUBELET = pathlib.Path("/var/lib/kubelet/device-plugins/kubelet.sock")


def run(lane: Lane, cluster) -> None:
    observer = Observer()
    observer.start()
    held = hold(lane, cluster)
    for what, kill in (("agent", True), ("kubelet", True), ("kubelet", False), ("containerd", True), ("agent", False)):
        survives(lane, cluster, what, kill, held)
    release(cluster)
    observer.end()
    lane.equal("no GPU was in two containers at once", observer.doubles, [])


def survives(lane: Lane, cluster, what: str, kill: bool, held: dict[str, list[str]]) -> None:
    before = processes()
    name = f"{what} {'killed' if kill else 'ended'} and started"
    watch = cluster.watch_allocatable()
    start = time.time()
    cluster.restart(what, kill)
    right = watch.settles(8)
    took = right - max(start, listens_since() if what == "kubelet" else 0)
    lane.check(f"{name}: GetAllocatableResources is right within 2 s ({max(took, 0):.2f})", took <= 2, json.dumps(watch.end()))
    cluster.wait_for("the node is Ready again", cluster.ready, 30)
    still_held(lane, cluster, name, held)
    lane.equal(f"{name}: their containers go on", processes(), before)
    takes_the_rest(lane, cluster, name, held)


def listens_since() -> float:
    """When the kubelet began to accept registrations; its answers cannot be right before. It first looks at every container, which takes
    seconds if there are many."""
    return KUBELET.stat().st_mtime
