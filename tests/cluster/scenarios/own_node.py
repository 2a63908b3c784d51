# SPDX-License-Identifier: Apache-2.0
"""What the API server lets the accounts of the agents do, with a token as their pods have it. That of deploy/kubernetes changes its own node, that
of deploy/gpushare the placements of the pods there too, and nothing else. RBAC alone would let them patch every node and pod of the cluster."""
import contextlib

import config
from api import Api, ApiError
from lane_support import Lane
from scenario import CUDA, HOLD, plain_pod
from sharing import RIGHTS, manifests

POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
MERGE = "application/merge-patch+json"
LABEL = {"metadata": {"labels": {"a": "b"}}}


def run(lane: Lane, cluster) -> None:
    cluster.api.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other-node"}})
    try:
        whole(lane, cluster)
        shares(lane, cluster)
    finally:
        cluster.api.call("DELETE", "/api/v1/nodes/other-node")
        cluster.clean()


def whole(lane: Lane, cluster) -> None:
    with account(cluster, "kubernetes", "nvidia-device-plugin", "nvidia-device-plugin-own-node") as agent:
        in_force(cluster, agent)
        own_node(lane, "whole GPUs", agent)
        mine = "/api/v1/namespaces/default/pods/any"
        lane.check("whole GPUs: RBAC refuses a patch of a pod", "403" in refusal(agent, mine, annotations("gantry.dev/placement")), refusal(agent, mine, LABEL))


def shares(lane: Lane, cluster) -> None:
    with account(cluster, "gpushare", "gpushare-device-plugin", "gantry-agent") as agent:
        try:
            cluster.api.create_pod(plain_pod("mine", CUDA, HOLD, nodeName="gpu-node"))
            cluster.api.create_pod(plain_pod("theirs", CUDA, HOLD, nodeName="other-node"))
            in_force(cluster, agent)
            cluster.wait_for("the policy for pods is in force", lambda: "own node" in refusal(agent, pod("theirs"), annotations("gantry.dev/placement")), 30)
            allowed(lane, agent)
            own_node(lane, "shares", agent)
            refused(lane, agent)
        finally:
            for name in ("mine", "theirs"):
                cluster.api.delete_pod(name, grace=0)


@contextlib.contextmanager
def account(cluster, folder: str, name: str, policies: str):
    """The rights and policies of this account, and the API with a token as a pod of gpu-node has it."""
    objects = "---\n".join((manifests(cluster, folder, RIGHTS, name), manifests(cluster, folder, POLICIES, policies)))
    cluster.kubectl("apply", "-f", "-", stdin=objects)
    try:
        cluster.api.create_pod(plain_pod("agent-pod", CUDA, HOLD, nodeName="gpu-node", serviceAccountName=name), "kube-system")
        yield Api(config.ADDRESS, str(cluster.place / "certs/ca.crt"), token(cluster, "agent-pod", name))
    finally:
        cluster.api.delete_pod("agent-pod", "kube-system", grace=0)
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=objects)


def in_force(cluster, agent: Api) -> None:
    """The API server learns of rights and policies a moment after they were stored."""
    cluster.wait_for("the policy for nodes is in force", lambda: "its own Node" in refusal(agent, "/api/v1/nodes/other-node", LABEL), 30)


def token(cluster, name: str, of: str) -> str:
    """A token of this account that is bound to this pod, as the kubelet mounts it."""
    bound = cluster.api.pod(name, "kube-system")["metadata"]
    answer = cluster.api.call("POST", f"/api/v1/namespaces/kube-system/serviceaccounts/{of}/token", {
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


def own_node(lane: Lane, who: str, agent: Api) -> None:
    mine, other = "/api/v1/nodes/gpu-node", "/api/v1/nodes/other-node"
    capacity = {"status": {"capacity": {"aliyun.com/gpu-count": "0"}}}
    lane.equal(f"{who}: allowed: a label of its node", refusal(agent, mine, {"metadata": {"labels": {"gpushare": "true"}}}), "")
    lane.equal(f"{who}: allowed: the capacity of its node", refusal(agent, f"{mine}/status", capacity), "")
    for what, path, patch, words in (
            ("another node", other, LABEL, "its own Node"), ("the status of another node", f"{other}/status", capacity, "its own Node"),
            ("a taint of its own node", mine, {"spec": {"unschedulable": True}}, "spec of a Node")):
        said = refusal(agent, path, patch)
        lane.check(f"{who}: refused by policy: {what}", words in said, said or "it was taken")


def refused(lane: Lane, agent: Api) -> None:
    mine, theirs = pod("mine"), pod("theirs")
    for what, path, patch, words in (
            ("a placement of another node's pod", theirs, annotations("gantry.dev/placement"), "pods of its own node"),
            ("another annotation of a pod", mine, annotations("example.com/a"), "annotations that record"),
            ("a placement that is taken away", mine, annotations("gantry.dev/placement", None), "annotations that record"),
            ("a label of a pod", mine, LABEL, "only annotations"),
            ("a finalizer of a pod", mine, {"metadata": {"finalizers": ["example.com/a"]}}, "only annotations"),
            ("the image of a pod", mine, {"spec": {"activeDeadlineSeconds": 1}}, "only annotations")):
        said = refusal(agent, path, patch)
        lane.check(f"refused by policy: {what}", words in said, said or "it was taken")
    for what, method, path, body in (
            ("delete a pod", "DELETE", mine, None), ("create a pod", "POST", "/api/v1/namespaces/default/pods", plain_pod("x", CUDA, HOLD)),
            ("read secrets", "GET", "/api/v1/namespaces/kube-system/secrets", None), ("bind a pod", "POST", f"{mine}/binding", {"target": {"name": "gpu-node"}}),
            ("a token for itself", "POST", f"/api/v1/namespaces/kube-system/serviceaccounts/gpushare-device-plugin/token", {}),
            ("change a policy", "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gantry-agent-pods", None)):
        try:
            agent.call(method, path, body)
            lane.check(f"refused by RBAC: {what}", False, "it was done")
        except ApiError as error:
            lane.equal(f"refused by RBAC: {what}", error.status, 403)
