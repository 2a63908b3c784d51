# SPDX-License-Identifier: Apache-2.0
"""Priorities: a pod that matters more has the least important ones removed that make room on one card, and no others. Two
replicas of the extender: one binds, and the other goes on when it is gone. Quotas of a namespace."""
import json

from lane import Lane
from part import wait_for
from sharing import extender_part, placement, share_pod, shared_gpus

CLASSES = """apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: %s}
value: %d
"""


def run(lane: Lane, cluster) -> None:
    for name, value in (("much", 1000), ("little", 10)):
        cluster.kubectl("apply", "-f", "-", stdin=CLASSES % (name, value))
    with shared_gpus(cluster):
        preempts(lane, cluster)
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
    lane.check("a pod that matters runs, and one small one made room for it", len(gone) == 1 and gone < set(small), str(gone))
    clear(cluster)


def quotas(lane: Lane, cluster) -> None:
    cluster.kubectl("create", "namespace", "team")
    cluster.kubectl("annotate", "namespace", "team", "gantry.dev/gpu-memory-quota=20Gi")
    cluster.wait_for("the namespace has its service account", lambda: cluster.api.get("/api/v1/namespaces/team/serviceaccounts/default"))
    cluster.api.create_pod(share_pod("within", 15), "team")
    cluster.wait_for("it runs", lambda: cluster.api.pod("within", "team")["status"].get("phase") == "Running", 60)
    cluster.api.create_pod(share_pod("beyond", 10), "team")

    def message() -> str:
        return next((e["message"] for e in cluster.api.events("team") if e["involvedObject"]["name"] == "beyond" and e["reason"] == "FailedScheduling"), "")
    said = cluster.wait_for("the scheduler says why beyond waits", message)
    lane.check("15 GiB of a quota of 20 are used: 10 more wait, and the reason is the quota", "quota" in said, said)
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
