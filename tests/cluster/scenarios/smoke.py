# SPDX-License-Identifier: Apache-2.0
"""The cluster itself, before any GPU plugin: pods run, write logs and can be reached, and the node has no GPUs."""
import time
import urllib.request

import images
from lane_support import Lane
from scenario import gpu_pod, plain_pod

SERVICE = """apiVersion: v1
kind: Service
metadata: {name: page}
spec:
  type: NodePort
  selector: {app: page}
  ports: [{port: 80, targetPort: 8888, nodePort: 30001}]
"""


def run(lane: Lane, cluster) -> None:
    start = time.monotonic()
    cluster.api.create_pod(plain_pod("hello", images.BUSYBOX, ["sh", "-c", "echo hello from $(cat /etc/hostname)"]))
    cluster.wait_phase("hello", "Succeeded")
    lane.equal("a busybox pod runs and logs", cluster.kubectl("logs", "hello"), "hello from hello\n")
    print(f"       first pod in {time.monotonic() - start:.1f} s")
    page = plain_pod("page", images.BUSYBOX, ["sh", "-c", "mkdir /www; echo page of a pod >/www/index.html; exec httpd -f -p 8888 -h /www"])
    page["metadata"]["labels"] = {"app": "page"}
    cluster.api.create_pod(page)
    cluster.kubectl("apply", "-f", "-", stdin=SERVICE)
    text = cluster.wait_for("NodePort 30001 answers", lambda: fetch("http://10.99.0.1:30001/"), 30)
    lane.equal("NodePort 30001 answers through kube-proxy", text, "page of a pod\n")
    cluster.api.create_pod(gpu_pod("wants-gpu", 1, ["true"]))
    message = cluster.wait_for("the scheduler says why wants-gpu waits", lambda: scheduling_message(cluster, "wants-gpu"))
    lane.check("a pod that requests a GPU stays Pending without a plugin", cluster.phase("wants-gpu") == "Pending", cluster.phase("wants-gpu"))
    lane.check("the scheduler says Insufficient nvidia.com/gpu", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu" in message, message)
    described = cluster.kubectl("describe", "node", "gpu-node")
    lane.check("kubectl describe node works and shows no GPU", "Capacity:" in described and "nvidia.com/gpu" not in described.split("Non-terminated")[0], described)
    for pod in ("hello", "page", "wants-gpu"):
        cluster.api.delete_pod(pod)
    cluster.kubectl("delete", "service", "page")


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=2) as answer:
        return answer.read().decode()


def scheduling_message(cluster, pod: str) -> str:
    return next((e["message"] for e in cluster.api.events() if e["involvedObject"]["name"] == pod and e["reason"] == "FailedScheduling"), "")
