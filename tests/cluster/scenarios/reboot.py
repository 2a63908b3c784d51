# SPDX-License-Identifier: Apache-2.0
"""The node reboots: pods run again with as many GPUs as before, and no GPU is in two containers."""
import time

from holding import PODS, hold, holding, release
from lane_support import Lane
from observer import Observer

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: service-with-gpu}
spec:
  replicas: 2
  selector: {matchLabels: {app: service-with-gpu}}
  template:
    metadata: {labels: {app: service-with-gpu}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: localhost/cuda:1
        command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]
        resources: {limits: {nvidia.com/gpu: 1}}
"""


def run(lane: Lane, cluster) -> None:
    observer = Observer()
    observer.start()
    with_the_agent_first(lane, cluster)
    with_the_agent_late(lane, cluster)
    observer.end()
    lane.equal("no GPU was in two containers at once", observer.doubles, [])


def with_the_agent_first(lane: Lane, cluster) -> None:
    hold(lane, cluster)
    boot_id = cluster.api.node()["status"]["nodeInfo"]["bootID"]
    start = time.monotonic()
    cluster.reboot()
    cluster.wait_for("after the reboot eight GPUs are allocatable", lambda: len(cluster.allocatable()) == 8, 30)
    print(f"       power off to 8 GPUs allocatable: {time.monotonic() - start:.1f} s")
    for name in PODS:
        cluster.wait_for(f"{name} runs again", lambda n=name: running_again(cluster, n), 60)
    lane.check("reboot: the node has another boot id", cluster.api.node()["status"]["nodeInfo"]["bootID"] != boot_id)
    lane.equal("reboot: the pods run again with as many GPUs", {pod: len(ids) for pod, ids in holding(cluster).items()}, PODS)
    lane.equal("reboot: their containers have them", gpus_by_container(), [1, 3])
    release(cluster)


def with_the_agent_late(lane: Lane, cluster) -> None:
    """As if the agent were a pod: the kubelet rejects its old pods because no plugin offers their devices yet (measured with
    1.36), and their controllers create new ones."""
    cluster.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    cluster.wait_for("the deployment runs", lambda: available(cluster) == 2, 60)
    cluster.reboot(agent_after=3)
    cluster.wait_for("the deployment's pods hold GPUs again", lambda: available(cluster) == 2 and gpus_by_container() == [1, 1], 60)
    lane.check("reboot with the agent late: a deployment has its GPUs again", len(holding(cluster)) == 2, str(holding(cluster)))
    cluster.kubectl("delete", "deployment", "service-with-gpu")
    for pod in cluster.api.pods():
        cluster.api.delete_pod(pod["metadata"]["name"])
    cluster.wait_for("its pods are gone", lambda: not cluster.api.pods() and not holding(cluster), 30)


def gpus_by_container() -> list[int]:
    return sorted(len(seen.devices) for seen in Observer().live() if seen.devices)


def available(cluster) -> int:
    return cluster.api.get("/apis/apps/v1/namespaces/default/deployments/service-with-gpu")["status"].get("availableReplicas", 0)


def running_again(cluster, name: str) -> bool:
    statuses = cluster.api.pod(name)["status"].get("containerStatuses", [])
    return bool(statuses) and all("running" in s["state"] and s["restartCount"] >= 1 for s in statuses)
