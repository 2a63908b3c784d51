# SPDX-License-Identifier: Apache-2.0
"""MIG layouts that change at run time: instances appear as resources and go again, pods on other GPUs do not notice."""
import time

from holding import holding, processes, release
from lane_support import Lane
from scenario import HOLD, gpu_pod

BIG, SMALL = "nvidia.com/mig-3g.71gb", "nvidia.com/mig-1g.18gb"


def offered(cluster) -> dict[str, int]:
    return {name: len(ids) for name, ids in cluster.podresources("allocatable").items() if name.startswith("nvidia.com/") and ids}


def reshaped(lane: Lane, cluster, what: str, wanted: dict[str, int], *layout: str) -> None:
    start = time.monotonic()
    cluster.node.inject(*layout)
    cluster.wait_for(f"{what}: {wanted}", lambda: offered(cluster) == wanted or None, 10, pause=0.05)
    took = time.monotonic() - start
    lane.check(f"{what}: GetAllocatableResources is right within 2 s ({took:.2f})", took <= 2, f"{took:.2f} s")


def run(lane: Lane, cluster) -> None:
    cluster.start_agent("--mig-strategy", "mixed")
    cluster.wait_for("eight whole GPUs", lambda: offered(cluster) == {"nvidia.com/gpu": 8}, 10)
    cluster.api.create_pod(gpu_pod("keeper", 2, HOLD))
    cluster.wait_phase("keeper", "Running")
    held, before = holding(cluster), processes()
    free, other = [gpu["index"] for gpu in cluster.node.inventory()["gpus"] if gpu["uuid"] not in held["keeper"]][:2]
    reshaped(lane, cluster, "two instances", {"nvidia.com/gpu": 7, BIG: 2}, "mig", "--gpu", free, "3g.71gb", "3g.71gb")
    cluster.wait_for("the node shows them", lambda: cluster.count(BIG) == (2, 2), 5)
    on_an_instance(lane, cluster, BIG)
    another_is_reshaped(lane, cluster, other)
    reshaped(lane, cluster, "seven instances", {"nvidia.com/gpu": 7, SMALL: 7}, "mig", "--gpu", free, *["1g.18gb"] * 7)
    on_an_instance(lane, cluster, SMALL)
    reshaped(lane, cluster, "whole again", {"nvidia.com/gpu": 8}, "mig", "--gpu", free, "--off")
    lane.equal("a pod on other GPUs keeps them", (holding(cluster), processes()), (held, before))
    release(cluster, "keeper")
    cluster.start_agent()
    cluster.wait_for("eight whole GPUs", lambda: len(cluster.allocatable()) == 8, 10)


def another_is_reshaped(lane: Lane, cluster, other: int) -> None:
    """A pod that has an instance of one GPU, while another GPU gets a layout and loses it."""
    cluster.api.create_pod(gpu_pod("on-instance", 1, HOLD, resource=BIG))
    cluster.wait_phase("on-instance", "Running")
    held, before = holding(cluster), processes()
    reshaped(lane, cluster, "another GPU in seven", {"nvidia.com/gpu": 6, BIG: 2, SMALL: 7}, "mig", "--gpu", other, *["1g.18gb"] * 7)
    reshaped(lane, cluster, "another GPU whole again", {"nvidia.com/gpu": 7, BIG: 2}, "mig", "--gpu", other, "--off")
    lane.equal("pods keep their GPUs and instances", (holding(cluster), processes()), (held, before))
    release(cluster, "on-instance")


def on_an_instance(lane: Lane, cluster, resource: str) -> None:
    cluster.wait_for("the node shows instances", lambda: cluster.count(resource)[1] > 0, 5)
    cluster.api.create_pod(gpu_pod("small", 1, ["sh", "-c", "nvidia-smi -L && gantry-vector-add"], resource=resource))
    cluster.wait_phase("small", "Succeeded")
    log = cluster.api.log("small")
    lane.check(f"{resource}: a pod computes on one instance", log.count("MIG-") == 1 and "Test PASSED" in log, log)
    release(cluster, "small")
