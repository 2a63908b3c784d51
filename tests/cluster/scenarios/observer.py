# SPDX-License-Identifier: Apache-2.0
"""The observer itself: it sees a GPU in a container, and two containers with one GPU, however they came by it."""
import time

from lane_support import Lane
from observer import Observer
from scenario import CUDA, HOLD, plain_pod


def with_node(cluster, name: str, index: int) -> None:
    """A pod that has a GPU's node by itself, past every plugin."""
    pod = plain_pod(name, CUDA, HOLD, volumes=[{"name": "node", "hostPath": {"path": f"{cluster.node.root}/dev/nvidia{index}"}}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "node", "mountPath": "/dev/nvidia0"}]
    cluster.api.create_pod(pod)
    cluster.wait_phase(name, "Running")


def look_at(observer: Observer, containers: int) -> None:
    """Looks until that many containers were seen: the kubelet says Running while the last one is still a child of the runtime."""
    end = time.monotonic() + 20
    while True:
        observer.look()
        if len(observer.containers) >= containers or time.monotonic() > end:
            return
        time.sleep(0.1)


def run(lane: Lane, cluster) -> None:
    observer = Observer()
    with_node(cluster, "taker-0", 0)
    with_node(cluster, "taker-1", 1)
    look_at(observer, 2)
    lane.equal("two containers with a GPU each are seen", (len(observer.containers), observer.busiest), (2, 2))
    lane.equal("and they are no double allocation", observer.doubles, [])
    with_node(cluster, "taker-2", 1)
    look_at(observer, 3)
    lane.equal("one GPU in two containers is one, whatever its node is called", len(observer.doubles), 1)
    for name in ("taker-0", "taker-1", "taker-2"):
        cluster.api.delete_pod(name)
        cluster.gone(name)
