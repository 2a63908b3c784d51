# SPDX-License-Identifier: Apache-2.0
"""Debian 12's containerd 1.6, which has no CDI, under the real kubelet: whole GPUs and shares reach pods, and the default runtime stays runc."""
import contextlib
import pathlib
import subprocess

import config
from cluster import LOGS
from lane_support import Lane
from part import Part, wait_for
from scenario import gpu_pod, plain_pod
from scenarios.offer import MANIFESTS, SIX_LINES
from scenarios.webhook import CONFIGURATIONS, SERVICE, bundle
from sharing import CUDA, manifests, placement, seen, share_pod, shared_gpus

ENGINE = pathlib.Path("/usr/bin/containerd")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
CONTAINERD = """version = 2
root = "%(state)s/root-1.6"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "%(state)s/opt-1.6"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "%(state)s/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""
RUNTIME_CLASS = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: nvidia}\nhandler: nvidia\n"


def run(lane: Lane, cluster) -> None:
    version = lane.run(ENGINE, "--version").stdout.split()[2] if ENGINE.exists() else "not installed"
    if not version.startswith(("1.6.", "1.7.")):
        return lane.skip("old_engine", f"containerd 1.6 or 1.7 is needed in /usr/bin; there: {version}")
    with old_engine(lane, cluster):
        whole(lane, cluster)
        shares(lane, cluster)


@contextlib.contextmanager
def old_engine(lane: Lane, cluster):
    """Replaces the cluster's engine, and puts it back. Pods do not survive that: there are none."""
    cluster.clean()
    file = cluster.place / "containerd/config-1.6.toml"
    file.write_text(CONTAINERD % {"state": cluster.place / "containerd"})
    # The form of the configuration follows the version of the containerd in the PATH.
    lane.run("env", f"PATH={SYSTEM_PATH}", lane.bin / "gantry", "runtime", "configure", "--runtime=containerd", "--config", file, "--runtime-path",
             lane.bin / "nvidia-container-runtime", check=True)
    lane.check("our runtime is not the default one", 'default_runtime_name = "nvidia"' not in file.read_text(), file.read_text())
    # The node's own programs in place of the cluster's: its shim and its runc belong to this version.
    environment = {"PATH": SYSTEM_PATH, "GANTRY_ROOT": str(cluster.node.root)}
    replace_engine(cluster, Part("containerd-1.6", [ENGINE, "-c", file, "-l", "info"], LOGS, environment))
    for archive in sorted((cluster.place / "images").glob("*.tar")):
        lane.run("/usr/bin/ctr", "-a", config.SOCKET, "-n", "k8s.io", "images", "import", archive, check=True)  # ctr 2 does not speak to it
    cluster.kubectl("apply", "-f", "-", stdin=RUNTIME_CLASS)
    try:
        cluster.start_agent()
        yield
        cluster.clean()
    finally:
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=RUNTIME_CLASS)
        replace_engine(cluster, Part("containerd", config.containerd(cluster.place), LOGS))
        cluster.start_agent()


def replace_engine(cluster, engine: Part) -> None:
    cluster.parts["kubelet"].stop()
    cluster.parts["containerd"].stop()
    cluster.parts["containerd"] = engine
    cluster.start_engine()
    cluster.parts["kubelet"].start()
    cluster.wait_for("the node is Ready on this engine", lambda: cluster.ready() and node_engine(cluster) == engine_version(engine), 60)


def node_engine(cluster) -> str:
    return cluster.api.node()["status"]["nodeInfo"]["containerRuntimeVersion"].removeprefix("containerd://").lstrip("v")


def engine_version(engine: Part) -> str:
    return subprocess.run([engine.argv[0], "--version"], capture_output=True, text=True, check=True).stdout.split()[2].lstrip("v").split("~")[0]


def whole(lane: Lane, cluster) -> None:
    cluster.wait_for("the node shows 8 GPUs", lambda: cluster.count() == (8, 8), 30)
    said = 'answers contain device nodes and mounts engine="containerd 1.'
    cluster.wait_for("the agent says what its answers contain", lambda: said in cluster.parts["agent"].words(), 30)
    lane.check("the agent answers with nodes and mounts", True)
    cluster.kubectl("create", "-f", MANIFESTS / "cuda-vector-add.yaml")
    cluster.wait_phase("cuda-vector-add", "Succeeded")
    lane.equal("vector-add of the notes runs, with runc and without CDI", cluster.kubectl("logs", "cuda-vector-add"), SIX_LINES)
    cluster.api.create_pod(gpu_pod("two", 2, ["nvidia-smi", "-L"]))
    cluster.wait_phase("two", "Succeeded")
    lane.equal("a pod of two GPUs sees two", cluster.api.log("two").count("GPU "), 2)
    cluster.api.create_pod(plain_pod("none", CUDA, ["sh", "-c", "ls /dev | grep -c nvidia; true"]))
    cluster.wait_phase("none", "Succeeded")
    lane.equal("a pod without a limit has none", cluster.api.log("none").strip(), "0")
    cluster.clean()


def shares(lane: Lane, cluster) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=SERVICE)
    configurations = manifests(cluster, "gpushare", CONFIGURATIONS, "gantry-scheduler")
    cluster.kubectl("apply", "-f", "-", stdin=configurations)
    try:
        with shared_gpus(cluster, scheduler_flags=("--runtime-class=nvidia",)) as extender:
            wait_for("the webhook's authority is known", lambda: bundle(cluster), 20, alive=(extender,))
            for name in ("a", "b"):
                cluster.api.create_pod(share_pod(name, 60))
            for name in ("a", "b"):
                cluster.wait_phase(name, "Running")
            pods = {name: cluster.api.pod(name) for name in ("a", "b")}
            lane.equal("the webhook named the class", {pod["spec"].get("runtimeClassName") for pod in pods.values()}, {"nvidia"})
            for name, pod in pods.items():
                lane.equal(f"share {name}: the container has its 60 GiB", seen(cluster, name).get("total"), str(60 * 1024))
                lane.check(f"share {name}: where the scheduler placed it", bool(placement(pod)), str(pod["metadata"].get("annotations")))
    finally:
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=configurations)
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=SERVICE)
