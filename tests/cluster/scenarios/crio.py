# SPDX-License-Identifier: Apache-2.0
"""CRI-O in place of containerd under the real kubelet, on the machine of seed 004: its vector-add pod, a pod that waits for two GPUs where
there is one, and the agent's other answers (an annotation, the environment with hooks.d). It runs where CRI-O is installed or GANTRY_CRIO names it."""
import contextlib
import os
import pathlib
import subprocess

import config
import crio_support
import images
import world
from api import Api
from cluster import LOGS, Cluster
from lane_support import Lane
from part import Part, wait_for
from scenario import CUDA, gpu_pod, plain_pod
from scenarios.offer import MANIFESTS, SIX_LINES
from scenarios.smoke import scheduling_message
from scenarios.walkthroughs import forget_plugins, stand_in, stop_agent

MACHINE = "k2000"
SOCKET = pathlib.Path("/run/crio/crio.sock")
HOOKS = pathlib.Path("/usr/share/containers/oci/hooks.d")
LIST = ["sh", "-c", "nvidia-smi -L; true"]  # without a GPU there is no such program
CONTROLLERS = pathlib.Path("/proc/cgroups")
RUNTIME_CLASS = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: nvidia}\nhandler: nvidia\n"


def run(lane: Lane, cluster: Cluster) -> None:
    if why := crio_support.missing():
        return lane.skip("crio", why)
    with crio(lane, cluster):
        whole(lane, cluster)
        by_runtime_class(lane, cluster)
        too_many(lane, cluster)
        cluster.clean()
        other_strategies(lane, cluster)


@contextlib.contextmanager
def crio(lane: Lane, cluster: Cluster):
    """Replaces the cluster's engine and the machine that its agent sees, and puts both back. Pods do not survive that: there are none."""
    cluster.clean()
    stop_agent(cluster)
    forget_plugins(cluster)
    root = world.PLACE / MACHINE
    if not root.exists():
        stand_in(cluster.node, MACHINE, root)
    settings = root / "etc/nvidia-container-runtime"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "config.toml").write_text(f'[gantry]\nroot = "{root}"\n')
    own = world.PLACE / "crio"
    for source, target in ((settings, settings.relative_to(root)), (own / "etc", "etc/crio"), (own / "gantry", "var/lib/gantry"), (own / "hooks", HOOKS)):
        source.mkdir(parents=True, exist_ok=True)
        pathlib.Path("/", target).mkdir(parents=True, exist_ok=True)
        world.call("mount", "--bind", source, pathlib.Path("/", target))
    state = world.PLACE / "crio/state"
    networks = cluster.place / "containerd/net.d"
    pathlib.Path("/etc/crio/crio.conf").write_text(crio_support.configuration(state, SOCKET, images.PAUSE, networks))
    for archive in sorted((cluster.place / "images").glob("*.tar")):
        crio_support.load(state, archive)
    hide_controllers_without_a_mount()
    done = configure(lane, "--runtime-path", lane.bin / "nvidia-container-runtime")
    lane.check("gantry runtime configure, and crio config shows it", "Checked: crio config shows it" in done.stdout, done.stdout + done.stderr)
    replace_engine(cluster, Part("crio", ["crio"], LOGS, environment()), SOCKET, "cri-o://")
    cluster.kubectl("apply", "-f", "-", stdin=RUNTIME_CLASS)
    try:
        start_agent(lane, cluster)
        yield
    finally:
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=RUNTIME_CLASS)
        stop_agent(cluster)
        forget_plugins(cluster)
        replace_engine(cluster, Part("containerd", config.containerd(cluster.place), LOGS), pathlib.Path(config.SOCKET), "containerd://")
        cluster.start_agent()


def environment() -> dict[str, str]:
    return {"PATH": crio_support.search_path(), "GANTRY_ROOT": str(world.PLACE / MACHINE)}


def configure(lane: Lane, *flags) -> subprocess.CompletedProcess:
    return lane.run(lane.bin / "gantry", "runtime", "configure", "--root", "/", "--runtime=crio", *flags, env=dict(os.environ, **environment()))


def start_agent(lane: Lane, cluster: Cluster, *flags: str) -> None:
    cluster.parts["agent"] = Part("agent", [lane.bin / "gantry", "agent", "--root", world.PLACE / MACHINE, *flags], LOGS)
    cluster.parts["agent"].start()
    cluster.wait_for("the node shows one GPU", lambda: cluster.count() == (1, 1), 30)


def hide_controllers_without_a_mount() -> None:
    """CRI-O limits what /proc/cgroups says is enabled. With cgroup v1 a controller can be enabled there (hugetlb) and mounted nowhere, and
    then runc cannot start a container."""
    mounted = {name for options in world.hierarchies().values() for name in options.split(",")}
    if mounted == {""}:
        return  # cgroup v2
    lines = CONTROLLERS.read_text().splitlines()
    shown = [line if line.startswith("#") or line.split()[0] in mounted else f"{line[:-1]}0" for line in lines]
    world.cover(CONTROLLERS, world.PLACE / "sysctl/cgroups", "\n".join(shown) + "\n")


def replace_engine(cluster: Cluster, engine: Part, socket: pathlib.Path, name: str) -> None:
    cluster.parts["kubelet"].stop()
    cluster.parts["containerd"].stop()
    cluster.parts["containerd"] = engine
    socket.unlink(missing_ok=True)
    engine.start()
    cluster.wait_for(f"{engine.name} listens", socket.exists, 60)
    (cluster.place / "kubelet.yaml").write_text(config.KUBELET.replace(config.SOCKET, str(socket)))
    cluster.parts["kubelet"].start()
    cluster.wait_for(f"the node is Ready on {engine.name}", lambda: cluster.ready() and node_engine(cluster.api).startswith(name), 60)


def node_engine(api: Api) -> str:
    return api.node()["status"]["nodeInfo"]["containerRuntimeVersion"]


def whole(lane: Lane, cluster: Cluster) -> None:
    engine = node_engine(cluster.api)
    print(f"       {engine}", flush=True)
    said = 'answers name them engine="cri-o'
    wait_for("the agent says what its answers contain", lambda: "answers " in cluster.parts["agent"].words(), 30)
    lane.check("the agent answers CRI-O with CDI names", said in cluster.parts["agent"].words(), cluster.parts["agent"].words()[-2000:])
    cluster.kubectl("create", "-f", MANIFESTS / "cuda-vector-add.yaml")
    cluster.wait_phase("cuda-vector-add", "Succeeded")
    said = cluster.kubectl("logs", "cuda-vector-add")
    lane.equal("vector-add of the notes runs on CRI-O", said, SIX_LINES)
    print("".join(f"       {line}\n" for line in said.splitlines()), end="", flush=True)
    cluster.api.create_pod(plain_pod("none", CUDA, ["sh", "-c", "ls /dev | grep -c nvidia; true"]))
    cluster.wait_phase("none", "Succeeded")
    lane.equal("a pod without a limit has none", cluster.api.log("none").strip(), "0")


def by_runtime_class(lane: Lane, cluster: Cluster) -> None:
    cluster.api.create_pod(gpu_pod("classy", 1, ["nvidia-smi", "-L"], runtimeClassName="nvidia"))
    cluster.wait_phase("classy", "Succeeded")
    lane.equal("a pod of the runtime class sees its GPU", cluster.api.log("classy").count("GPU 0: Quadro K2000"), 1)


def too_many(lane: Lane, cluster: Cluster) -> None:
    cluster.api.create_pod(gpu_pod("two", 2, ["nvidia-smi", "-L"]))
    message = cluster.wait_for("the scheduler says why `two` waits", lambda: scheduling_message(cluster, "two"))
    lane.check("2 of 1 GPUs: Pending", cluster.phase("two") == "Pending" and "Insufficient nvidia.com/gpu" in message, message)
    print(f"       {message}", flush=True)


def other_strategies(lane: Lane, cluster: Cluster) -> None:
    """The agent's other answers: names in an annotation, which CRI-O reads itself; the environment, which the hook of hooks.d reads."""
    with_strategy(lane, cluster, "cdi-annotations")
    added = configure(lane, "--config-mode=oci-hook", "--nvidia-runtime-hook-path", lane.bin / "nvidia-container-runtime-hook")
    lane.check("the hook is added", added.returncode == 0, added.stdout + added.stderr)
    with_strategy(lane, cluster, "envvar")
    undone = configure(lane, "--undo")
    lane.check("--undo, and no hook is left", undone.returncode == 0 and not list(HOOKS.iterdir()), undone.stdout + undone.stderr)


def with_strategy(lane: Lane, cluster: Cluster, strategy: str) -> None:
    stop_agent(cluster)
    forget_plugins(cluster)
    start_agent(lane, cluster, f"--device-list-strategy={strategy}")
    cluster.api.create_pod(gpu_pod("asks", 1, LIST))
    cluster.api.create_pod(plain_pod("asks-nothing", CUDA, LIST))  # its image's environment says NVIDIA_VISIBLE_DEVICES=all
    for name, seen in (("asks", 1), ("asks-nothing", 0)):
        cluster.wait_phase(name, "Succeeded")
        lane.equal(f"{strategy}: the pod `{name}` sees {seen} GPUs", cluster.api.log(name).count("GPU 0: Quadro K2000"), seen)
    cluster.clean()
