# SPDX-License-Identifier: Apache-2.0
"""What the API server lets the account of the agent of deploy/gpushare do, with a token as its pod has it: its own node and the placements of the
pods there, and nothing else. RBAC alone would let it patch every pod of the cluster."""
import config
from api import Api, ApiError
from lane_support import Lane
from scenario import CUDA, HOLD, plain_pod
from sharing import RIGHTS, manifests

ACCOUNT = "gpushare-device-plugin"
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
MERGE = "application/merge-patch+json"


def run(lane: Lane, cluster) -> None:
    objects = "---\n".join((manifests(cluster, "gpushare", RIGHTS, ACCOUNT), manifests(cluster, "gpushare", POLICIES, "gantry-agent")))
    cluster.kubectl("apply", "-f", "-", stdin=objects)
    cluster.api.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other-node"}})
    try:
        cluster.api.create_pod(plain_pod("agent-pod", CUDA, HOLD, nodeName="gpu-node", serviceAccountName=ACCOUNT), "kube-system")
        cluster.api.create_pod(plain_pod("mine", CUDA, HOLD, nodeName="gpu-node"))
        cluster.api.create_pod(plain_pod("theirs", CUDA, HOLD, nodeName="other-node"))
        agent = Api(config.ADDRESS, str(cluster.place / "certs/ca.crt"), token(cluster, "agent-pod"))
        # The API server learns of a policy a moment after it was stored.
        cluster.wait_for("the policies are in force", lambda: refusal(agent, pod("theirs"), annotations("gantry.dev/placement")), 30)
        allowed(lane, agent)
        refused(lane, agent)
    finally:
        for name, namespace in (("agent-pod", "kube-system"), ("mine", "default"), ("theirs", "default")):
            cluster.api.delete_pod(name, namespace, grace=0)
        cluster.api.call("DELETE", "/api/v1/nodes/other-node")
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=objects)
        cluster.clean()


def token(cluster, name: str) -> str:
    """A token that is bound to this pod, as the kubelet mounts it."""
    bound = cluster.api.pod(name, "kube-system")["metadata"]
    answer = cluster.api.call("POST", f"/api/v1/namespaces/kube-system/serviceaccounts/{ACCOUNT}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": bound["uid"]}}})
    return answer["status"]["token"]


def pod(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"


def annotations(key: str, value: str | None = "x") -> dict:
    return {"metadata": {"annotations": {key: value}}}


def refusal(agent: Api, path: str, patch: dict) -> str:
    """Why the API server does not take this patch; "" if it does."""
    try:
        agent.call("PATCH", path, patch, MERGE)
    except ApiError as error:
        return str(error)
    return ""


def allowed(lane: Lane, agent: Api) -> None:
    for key in ("gantry.dev/placement", "ALIYUN_COM_GPU_MEM_ASSIGNED", "scheduler.framework.gpushare.allocation", "hami.io/vgpu-node"):
        lane.equal(f"allowed: {key} of a pod here", refusal(agent, pod("mine"), annotations(key)), "")
    lane.equal("allowed: a label of its node", refusal(agent, "/api/v1/nodes/gpu-node", {"metadata": {"labels": {"gpushare": "true"}}}), "")
    lane.equal("allowed: the capacity of its node", refusal(agent, "/api/v1/nodes/gpu-node/status", {"status": {"capacity": {"aliyun.com/gpu-count": "0"}}}), "")


def refused(lane: Lane, agent: Api) -> None:
    mine, theirs, label = pod("mine"), pod("theirs"), {"metadata": {"labels": {"a": "b"}}}
    for what, path, patch, words in (
            ("a placement of another node's pod", theirs, annotations("gantry.dev/placement"), "pods of its own node"),
            ("another annotation of a pod", mine, annotations("example.com/a"), "annotations that record"),
            ("a placement that is taken away", mine, annotations("gantry.dev/placement", None), "annotations that record"),
            ("a label of a pod", mine, label, "only annotations"),
            ("a finalizer of a pod", mine, {"metadata": {"finalizers": ["example.com/a"]}}, "only annotations"),
            ("the image of a pod", mine, {"spec": {"activeDeadlineSeconds": 1}}, "only annotations"),
            ("another node", "/api/v1/nodes/other-node", label, "its own Node"),
            ("the status of another node", "/api/v1/nodes/other-node/status", {"status": {"capacity": {"a.b/c": "1"}}}, "its own Node"),
            ("a taint of its own node", "/api/v1/nodes/gpu-node", {"spec": {"unschedulable": True}}, "spec of a Node")):
        said = refusal(agent, path, patch)
        lane.check(f"refused by policy: {what}", words in said, said or "it was taken")
    for what, method, path, body in (
            ("delete a pod", "DELETE", mine, None), ("create a pod", "POST", "/api/v1/namespaces/default/pods", plain_pod("x", CUDA, HOLD)),
            ("read secrets", "GET", "/api/v1/namespaces/kube-system/secrets", None), ("bind a pod", "POST", f"{mine}/binding", {"target": {"name": "gpu-node"}}),
            ("a token for itself", "POST", f"/api/v1/namespaces/kube-system/serviceaccounts/{ACCOUNT}/token", {}),
            ("change a policy", "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gantry-agent-pods", None)):
        try:
            agent.call(method, path, body)
            lane.check(f"refused by RBAC: {what}", False, "it was done")
        except ApiError as error:
            lane.equal(f"refused by RBAC: {what}", error.status, 403)
