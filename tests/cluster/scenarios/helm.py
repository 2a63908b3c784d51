# SPDX-License-Identifier: Apache-2.0
"""The chart in the cluster: what people do with NVIDIA's, by its names, from a signed repository on loopback. The agent is a pod here, in the
image of make image."""
import json
import os
import pathlib
import subprocess

from lane_support import Lane
from package_roots import stub_deb, stub_rpm
from repository_support import URL, Keys, Page, Server
from scenario import gpu_pod

TOP = pathlib.Path(__file__).resolve().parents[3]
NAMESPACE = "nvidia-device-plugin"
NAME = "nvdp-nvidia-device-plugin"
LABEL = "gpu/nividia"  # as note 003 spells it


def run(lane: Lane, cluster) -> None:
    stop_agent(cluster)
    archive = lane.work / "gantry.tar"
    lane.run(TOP / "tools/image", lane.bin, archive, check=True)
    cluster.import_image(archive)
    server = Server(lane)
    try:
        server.serve(repository(lane))
        install(lane, cluster)
        use(lane, cluster)
        configure(lane, cluster)
    finally:
        remove(lane, cluster)
        server.end()


def repository(lane: Lane) -> pathlib.Path:
    """What `make repository` writes, and its key as helm reads it. The packages are stand-ins: helm takes the charts alone."""
    for package in (stub_deb(lane, "gantry", {"/opt/none": b""}), stub_rpm(lane, "gantry", {"/opt/none": b""})):
        package.replace(lane.work / package.name)
    keys, place = Keys(lane), lane.work / "repository"
    environment = {"PATH": "/usr/bin:/bin", "GNUPGHOME": str(keys.home), "GANTRY_SIGNING_KEY": keys.make("lane"), "GANTRY_REPOSITORY_URL": URL}
    made = lane.run(TOP / "tools/repository", "--packages", lane.work, "--output", place, env=environment)
    lane.check("make repository", made.returncode == 0, made.stdout + made.stderr)
    keys.gpg("--dearmor", "-o", str(lane.work / "gantry-keyring.gpg"), str(place / "gpgkey")).check_returncode()
    keys.end()
    return place


def own_home(lane: Lane) -> dict[str, str]:
    """Helm keeps the repositories that it knows in the home directory."""
    return dict(os.environ, HOME=str(lane.work / "helm-home"))


def helm(lane: Lane, cluster, *argv) -> subprocess.CompletedProcess:
    return lane.run("helm", *argv, "--namespace", NAMESPACE, env=own_home(lane))


def values(cluster) -> list[str]:
    return ["--set", f"hostRoot={cluster.node.root},nodeLabel={LABEL}"]


def install(lane: Lane, cluster) -> None:
    """The commands of docs/install.md, with the release's name that NVIDIA's notes have, and values for this node."""
    script = Page(lane).block("sh", "helm").strip().replace("install --wait nvidia-device-plugin", "install --wait nvdp")
    done = lane.run("bash", "-ec", f"{script} {' '.join(values(cluster))}", cwd=lane.work, env=own_home(lane))
    lane.check("helm repo add, helm install, as the page has it", done.returncode == 0 and "nvdp" in done.stdout, done.stdout + done.stderr)
    cluster.wait_for("the DaemonSet is known", lambda: status(cluster) is not None)
    lane.equal("without the label no node has a pod", status(cluster).get("desiredNumberScheduled", 0), 0)
    cluster.kubectl("label", "nodes", "gpu-node", f"{LABEL}=P630")
    cluster.wait_for("the agent's pod is ready", lambda: (status(cluster) or {}).get("numberReady") == 1, 60)
    listed = cluster.kubectl("get", "daemonsets", "-A", "-l", "app.kubernetes.io/name=nvidia-device-plugin", "-o", "name")
    lane.equal("the DaemonSet is found by NVIDIA's label", listed.split(), [f"daemonset.apps/{NAME}"])


def status(cluster) -> dict | None:
    text = cluster.kubectl("-n", NAMESPACE, "get", "daemonset", NAME, "-o", "json", check=False)
    return json.loads(text)["status"] if text.startswith("{") else None


def use(lane: Lane, cluster) -> None:
    cluster.wait_for("the node shows 8 GPUs", lambda: cluster.count() == (8, 8), 20)
    lane.check("the node shows 8 GPUs from the chart's pod", True)
    cluster.api.create_pod(gpu_pod("by-helm", 1, ["gantry-vector-add"]))
    cluster.wait_phase("by-helm", "Succeeded")
    lane.check("a pod adds its vectors", "Test PASSED" in cluster.kubectl("logs", "by-helm"))
    cluster.api.delete_pod("by-helm")
    labels = cluster.wait_for("the agent has labelled its node", lambda: gpu_labels(cluster), 20)
    lane.equal("its service account may label", labels.get("nvidia.com/gpu.count"), "8")


def gpu_labels(cluster) -> dict:
    labels = cluster.api.node()["metadata"]["labels"]
    return labels if "nvidia.com/gpu.count" in labels else {}


def configure(lane: Lane, cluster) -> None:
    shared = "version: v1\nsharing:\n  timeSlicing:\n    resources: [{name: nvidia.com/gpu, replicas: 2}]\n"
    file = lane.work / "shared.yaml"
    file.write_text(shared)
    plain = lane.work / "plain.yaml"
    plain.write_text("version: v1\n")
    done = helm(lane, cluster, "upgrade", "nvdp", "gantry/nvidia-device-plugin", *values(cluster), "--set-file", f"config.map.shared={file}",
                "--set-file", f"config.map.plain={plain}", "--set", "config.default=plain")
    lane.check("helm upgrade with two configurations", done.returncode == 0, done.stdout + done.stderr)
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", f"daemonset/{NAME}", "--timeout=60s")
    cluster.wait_for("the default is in force: 8", lambda: cluster.count() == (8, 8), 30)
    cluster.kubectl("label", "nodes", "gpu-node", "nvidia.com/device-plugin.config=shared")
    cluster.wait_for("the node's label chooses the other: 16", lambda: cluster.count()[1] == 16, 60)
    lane.check("nvidia.com/device-plugin.config chooses a node's configuration while the agent runs", True)
    cluster.kubectl("label", "nodes", "gpu-node", "nvidia.com/device-plugin.config-")
    cluster.wait_for("without it the default again: 8", lambda: cluster.count()[1] == 8, 60)


def stop_agent(cluster) -> None:
    """Only one plugin at a time: the one that the other scenarios run by hand goes."""
    if "agent" in cluster.parts:
        cluster.parts.pop("agent").stop()


def remove(lane: Lane, cluster) -> None:
    helm(lane, cluster, "uninstall", "nvdp", "--wait")
    cluster.kubectl("label", "nodes", "gpu-node", f"{LABEL}-", "nvidia.com/device-plugin.config-", check=False)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false", check=False)
