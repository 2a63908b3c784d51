# SPDX-License-Identifier: Apache-2.0
"""The cluster with shared GPUs: the agent in share mode, `gantry scheduler` as an extender of the real kube-scheduler, and pods that
request shares."""
import contextlib
import json
import pathlib
import urllib.request

import config
import yaml
from cluster import LOGS
from part import Part, wait_for
from scenario import CUDA, plain_pod

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
EXTENDER = f"http://{config.ADDRESS}:32766/gpushare-scheduler"  # the NodePort of deploy/gpushare
GIB = 140  # whole ones of an H200
MEM = "aliyun.com/gpu-mem"
PROBE = "share-probe --hold 100000 "


def manifests(cluster, folder: str, kinds: tuple[str, ...], name: str) -> str:
    """Objects that `kubectl apply -k deploy/FOLDER` would apply: those of these kinds whose name begins with `name`."""
    objects = yaml.safe_load_all(cluster.kubectl("kustomize", DEPLOY / folder))
    chosen = [o for o in objects if o["kind"] in kinds and o["metadata"]["name"].startswith(name)]
    if not chosen:
        raise RuntimeError(f"deploy/{folder} has no {name} of the kinds {kinds}")
    return yaml.safe_dump_all(chosen)


def extender_part(cluster, name: str = "extender", port: int = 32766, *flags: str) -> Part:
    return Part(name, [cluster.lane.bin / "gantry", "scheduler", "--kubeconfig", cluster.place / "certs/extender.kubeconfig", "--port", str(port),
                       "--identity", name, *flags], LOGS)


@contextlib.contextmanager
def shared_gpus(cluster, *flags: str, scheduler_flags: tuple[str, ...] = ()):
    """Shares all eight GPUs and configures kube-scheduler to ask our extender. Restores everything afterwards."""
    cluster.kubectl("apply", "-f", "-", stdin=manifests(cluster, "gpushare", RIGHTS, "gpushare-schd-extender"))
    before = len(cluster.parts["agent"].words()) if "agent" in cluster.parts else 0
    cluster.start_agent("--share-gpus", *flags)
    extender = cluster.parts["extender"] = extender_part(cluster, "extender", 32766, *scheduler_flags)
    extender.start()
    wait_for("the extender is ready", lambda: ask("/readyz", root=True) == "ok", 30, alive=(extender,))
    cluster.schedule_by(DEPLOY / "gpushare/scheduler-policy-config.yaml")
    try:
        # The node's status may still show what an earlier agent offered: the kubelet refuses pods until this one is registered.
        agent = cluster.parts["agent"]
        wait_for("the agent is registered", lambda: f'registered with the kubelet resource="{MEM}"' in agent.words(before), 30, alive=(agent,))
        wait_for("the node shows its shared memory", lambda: cluster.count(MEM)[0] > 0, 30, alive=(agent,))
        yield extender
        cluster.clean()
    finally:
        cluster.schedule_by(None)
        cluster.parts.pop("extender").stop()
        cluster.start_agent()


def ask(path: str, root: bool = False):
    with urllib.request.urlopen((EXTENDER.rsplit("/", 1)[0] if root else EXTENDER) + path, timeout=5) as answer:
        text = answer.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text.strip()


def share_pod(name: str, amount: int, command: str = PROBE, **spec) -> dict:
    """A pod that requests this many GiB of one GPU. By default it keeps running and prints what it sees."""
    pod = plain_pod(name, CUDA, ["sh", "-c", f"trap 'exit 0' TERM; {command} & wait"], **spec)
    pod["spec"]["containers"][0]["resources"] = {"limits": {MEM: str(amount)}}
    return pod


def hami_pod(name: str, gpus: int, mib: int = 0, cores: int = 0, command: str = PROBE, **spec) -> dict:
    pod = share_pod(name, 1, command, **spec)
    limits = {"nvidia.com/gpu": gpus, "nvidia.com/gpumem": mib, "nvidia.com/gpucores": cores}
    pod["spec"]["containers"][0]["resources"] = {"limits": {key: str(value) for key, value in limits.items() if value}}
    return pod


def placement(pod: dict) -> dict[str, list[dict]]:
    """The placement that the scheduler wrote, by container."""
    text = pod["metadata"].get("annotations", {}).get("gantry.dev/placement")
    return {entry["name"]: entry["gpus"] for entry in json.loads(text)["containers"]} if text else {}


def seen(cluster, pod: str, container: str = "", until: str = "total") -> dict[str, str]:
    """What the probe in the container has printed. Waits until it has finished."""
    def lines() -> dict[str, str]:
        said = dict(line.rsplit(" ", 1) for line in cluster.api.log(pod, container=container).splitlines() if " " in line)
        return said if any(key.startswith(until) for key in said) else {}
    return cluster.wait_for(f"the probe in {pod} has printed its findings", lines, 60)
