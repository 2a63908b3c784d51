# SPDX-License-Identifier: Apache-2.0
"""The real API server asks the webhook of deploy/gpushare: old manifests run unchanged, bad requests are rejected with what to write
instead, and while the webhook does not answer, no pod that requests GPUs is created."""
import pathlib

from api import ApiError
from lane_support import Lane
from part import wait_for
from scenario import gpu_pod, plain_pod
from scenarios.seeds import completed, remove
from sharing import CUDA, MEM, ask, manifests, share_pod, shared_gpus

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
MANIFESTS = pathlib.Path(__file__).resolve().parent.parent / "manifests"
# The Service as in deploy/, with our program of the host behind it in place of pods.
SERVICE = """apiVersion: v1
kind: Service
metadata: {name: gantry-scheduler, namespace: kube-system}
spec:
  ports: [{name: https, port: 443, targetPort: 8443}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: gantry-scheduler-1, namespace: kube-system, labels: {kubernetes.io/service-name: gantry-scheduler}}
addressType: IPv4
ports: [{name: https, port: 8443}]
endpoints: [{addresses: [10.99.0.1]}]
"""


def run(lane: Lane, cluster) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=SERVICE)
    configurations = manifests(cluster, "gpushare", CONFIGURATIONS, "gantry-scheduler")
    cluster.kubectl("apply", "-f", "-", stdin=configurations)
    try:
        with shared_gpus(cluster) as extender:
            wait_for("the webhook's authority is known", lambda: bundle(cluster), 20, alive=(extender,))
            long_ago(lane, cluster)
            refused(lane, cluster)
            down(lane, cluster, extender)
    finally:
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=configurations)
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=SERVICE)


def bundle(cluster) -> str:
    return cluster.kubectl("get", "mutatingwebhookconfiguration", "gantry-scheduler", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")


def long_ago(lane: Lane, cluster) -> None:
    """The manifests of notes 001, unchanged: the resource of Kubernetes 1.8 and the driver mounted by hand."""
    for manifest, job, words in (("4-nvidia-smi.yaml", "4-nvidia-smi", "NVIDIA H200"), ("module4-ex2.yaml", "module4-ex2", "Accuracy at step 500")):
        cluster.kubectl("create", "-f", MANIFESTS / manifest)
        log = completed(cluster, job)
        lane.check(f"{manifest} runs unchanged", words in log, log)
        pod = cluster.api.pods()[0]["spec"]
        lane.check(f"{manifest}: nothing of the driver is mounted from the node by hand", not [v for v in pod.get("volumes", []) if "hostPath" in v], str(pod.get("volumes")))
        remove(cluster, job)


def refusal(cluster, pod: dict) -> str:
    try:
        cluster.api.create_pod(pod)
    except ApiError as error:
        return str(error)
    cluster.api.delete_pod(pod["metadata"]["name"])
    return ""


def refused(lane: Lane, cluster) -> None:
    both = share_pod("both", 10)
    both["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "1000"
    forged = share_pod("forged", 10)
    forged["metadata"]["annotations"] = {"gantry.dev/placement": "[]"}
    privileged = share_pod("privileged", 10)
    privileged["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    past = share_pod("past", 10, nodeName="gpu-node")
    for what, pod, words in (("two contracts in one pod", both, MEM), ("a forged placement", forged, "gantry.dev/placement"),
                             ("a privileged container that asks for a share", privileged, "privileged"),
                             ("a pod that goes past the scheduler", past, "nodeName")):
        said = refusal(cluster, pod)
        lane.check(f"refused: {what}", words in said, said or "it was taken")
    lane.equal("a pod without GPUs is not asked about", refusal(cluster, plain_pod("plain", CUDA, ["true"])), "")


def down(lane: Lane, cluster, extender) -> None:
    extender.stop()
    for what, pod in (("a share", share_pod("share", 10)), ("a GPU", gpu_pod("gpu", 1, ["true"]))):
        said = refusal(cluster, pod)
        lane.check(f"the webhook is down: a pod that requests {what} is not created", "asks.gantry.dev" in said, said or "it was taken")
    lane.equal("the webhook is down: other pods are created", refusal(cluster, plain_pod("others", CUDA, ["true"])), "")
    extender.start()
    wait_for("the extender is back", lambda: ask("/readyz", root=True) == "ok", 30, alive=(extender,))
    # The webhook listens when it has read its certificate, which may be after the extender is ready.
    wait_for("the webhook is back", lambda: not refusal(cluster, share_pod("probe", 10)), 30, alive=(extender,))
    cluster.api.create_pod(share_pod("again", 10))
    cluster.wait_phase("again", "Running")
    lane.check("the webhook is back: the pod is created and runs", True)
