# SPDX-License-Identifier: Apache-2.0
"""Priorities: for a pod of higher priority, only the least important pods are removed that make room on one card, also if the node has room
and only its cards have not. Two replicas of the extender: one binds, and the other takes over when it is killed. Quotas of a namespace."""
import json

from lane_support import Lane
from part import wait_for
from sharing import PROBE, ask, extender_part, placement, share_pod, shared_gpus

CLASSES = """apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: %s}
value: %d
"""
BUDGET = """apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guarded}
spec: {minAvailable: 7, selector: {matchLabels: {guarded: "yes"}}}
"""
STUBBORN = "trap '' TERM; " + PROBE


def run(lane: Lane, cluster) -> None:
    for name, value in (("much", 1000), ("little", 10)):
        cluster.kubectl("apply", "-f", "-", stdin=CLASSES % (name, value))
    with shared_gpus(cluster):
        preempts(lane, cluster)
        makes_room(lane, cluster)
        quotas(lane, cluster)
        second_replica(lane, cluster)
    cluster.kubectl("delete", "priorityclass", "much", "little")


def preempts(lane: Lane, cluster) -> None:
    """Every card is full: a large pod and a small one on each, all of little importance."""
    small, large = ([f"{size}-{i}" for i in range(8)] for size in ("small", "large"))
    for names, amount in ((large, 100), (small, 40)):
        for name in names:
            cluster.api.create_pod(share_pod(name, amount, priorityClassName="little"))
        for name in names:
            cluster.wait_phase(name, "Running", 90)
    cluster.api.create_pod(share_pod("matters", 35, priorityClassName="much"))
    cluster.wait_phase("matters", "Running", 90)
    left = {pod["metadata"]["name"] for pod in cluster.api.pods() if not pod["metadata"].get("deletionTimestamp")}
    gone = set(small + large) - left
    lane.check("a pod of higher priority runs, and one small pod made room for it", len(gone) == 1 and gone < set(small), str(gone))
    clear(cluster)


def makes_room(lane: Lane, cluster) -> None:
    """The node has 280 GiB left and no card more than 35: kube-scheduler's own preemption finds nothing to do. A budget protects all
    candidates but one, that one ends slowly, and meanwhile the extender is killed."""
    guarded = [f"guarded-{i}" for i in range(7)]
    cluster.kubectl("apply", "-f", "-", stdin=BUDGET)
    for name in guarded:
        pod = share_pod(name, 105, priorityClassName="little")
        pod["metadata"]["labels"] = {"guarded": "yes"}
        cluster.api.create_pod(pod)
    cluster.api.create_pod(share_pod("free", 105, STUBBORN, priorityClassName="little", terminationGracePeriodSeconds=20))
    for name in [*guarded, "free"]:
        cluster.wait_phase(name, "Running", 90)
    cluster.wait_for("the budget counts its pods", lambda: budget(cluster).get("currentHealthy") == 7)
    cluster.api.create_pod(share_pod("eager", 105, priorityClassName="little"))
    cluster.wait_for("eager finds no card", lambda: scheduling_said(cluster, "eager"))
    cluster.api.create_pod(share_pod("half", 70, priorityClassName="much"))
    cluster.wait_for("free is asked to go", lambda: cluster.api.pod("free")["metadata"].get("deletionTimestamp"), 60)
    told = cluster.wait_for("half is told", lambda: said(cluster, "half", "MakingRoom"))
    lane.check("the node has room for a pod, but no card has: one pod is evicted for it, and it is told which", "default/free of lower priority" in told, told)
    lane.check("the evicted pod is told for which pod", "default/half" in cluster.wait_for("free is told", lambda: said(cluster, "free", "Preempted")))
    cluster.wait_for("why tells it", lambda: "default/free" in ask("/why/default/half")["room"])
    cluster.parts["extender"].kill()
    cluster.parts["extender"].start()
    cluster.wait_phase("half", "Running", 120)
    left = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in cluster.api.pods() if not pod["metadata"].get("deletionTimestamp")}
    lane.equal("no other pod was evicted although the extender was killed in between, and the room was kept",
               left, dict.fromkeys([*guarded, "half"], "Running") | {"eager": "Pending"})
    cluster.kubectl("delete", "pdb", "guarded")
    clear(cluster)


def budget(cluster) -> dict:
    return json.loads(cluster.kubectl("get", "pdb", "guarded", "-o", "json")).get("status", {})


def said(cluster, pod: str, reason: str, space: str = "default") -> str:
    return next((e["message"] for e in cluster.api.events(space) if e["involvedObject"]["name"] == pod and e["reason"] == reason), "")


def scheduling_said(cluster, pod: str, space: str = "default") -> str:
    return said(cluster, pod, "FailedScheduling", space)


def quotas(lane: Lane, cluster) -> None:
    cluster.kubectl("create", "namespace", "team")
    cluster.kubectl("annotate", "namespace", "team", "gantry.dev/gpu-memory-quota=20Gi")
    cluster.wait_for("the namespace has its service account", lambda: cluster.api.get("/api/v1/namespaces/team/serviceaccounts/default"))
    cluster.api.create_pod(share_pod("within", 15), "team")
    cluster.wait_for("it runs", lambda: cluster.api.pod("within", "team")["status"].get("phase") == "Running", 60)
    cluster.api.create_pod(share_pod("beyond", 10), "team")
    why = cluster.wait_for("the scheduler says why beyond waits", lambda: scheduling_said(cluster, "beyond", "team"))
    lane.check("15 GiB of a quota of 20 are used: 10 more wait, and the reason is the quota", "quota" in why, why)
    cluster.kubectl("delete", "namespace", "team", "--wait=false")
    cluster.wait_for("the namespace's pods are gone", lambda: not cluster.api.pods("team"), 60)


def second_replica(lane: Lane, cluster) -> None:
    """The leader is killed; the other one, asked at the same address, has the lease and binds."""
    second = extender_part(cluster, "second", 32767, "--tls-port=8444")
    second.start()
    try:
        cluster.api.create_pod(share_pod("before", 10))
        cluster.wait_phase("before", "Running")
        cluster.parts["extender"].kill()
        second.stop()
        second.argv = extender_part(cluster, "second", 32766, "--tls-port=8444").argv
        second.start()
        cluster.api.create_pod(share_pod("after", 10))
        cluster.wait_phase("after", "Running", 90)
        lease = json.loads(cluster.kubectl("get", "lease", "-n", "kube-system", "-o", "json"))["items"]
        holders = [item["spec"].get("holderIdentity", "") for item in lease if "gantry" in item["metadata"]["name"] or "gpushare" in item["metadata"]["name"]]
        lane.check("the leader is killed: the other replica takes the lease and binds", any("second" in holder for holder in holders), str(holders))
        both = [placement(cluster.api.pod(name))["main"][0]["uuid"] for name in ("before", "after")]
        lane.equal("and it knows what the first one decided: both are packed on one GPU", len(set(both)), 1)
    finally:
        second.stop()
        cluster.parts["extender"].start()
        wait_for("the extender is back", cluster.parts["extender"].running, 10)
    clear(cluster)


def clear(cluster) -> None:
    for pod in cluster.api.pods():
        cluster.api.delete_pod(pod["metadata"]["name"])
    cluster.wait_for("all pods are gone", lambda: not cluster.api.pods(), 60)
