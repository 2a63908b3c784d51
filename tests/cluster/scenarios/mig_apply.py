# SPDX-License-Identifier: Apache-2.0
"""`gantry mig` with a real kubelet: a pod keeps its instance while the others of its GPU change, is named when its own would go, and
--drain waits for it."""
import json
import subprocess
import time

from holding import holding, processes, release
from lane_support import Lane
from observer import Observer
from scenario import HOLD, gpu_pod

BIG, MIDDLE, SMALL = "nvidia.com/mig-3g.71gb", "nvidia.com/mig-2g.35gb", "nvidia.com/mig-1g.18gb"


def argv(cluster, *words: str) -> list[str]:
    return [str(cluster.lane.bin / "gantry"), "mig", *words, "--root", str(cluster.node.root)]


def mig(cluster, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(argv(cluster, *words), capture_output=True, text=True, check=False, timeout=120)


def offered(cluster) -> dict[str, int]:
    return {name: len(ids) for name, ids in cluster.podresources("allocatable").items() if name.startswith("nvidia.com/") and ids}


def instances(cluster, index: int) -> dict[str, str]:
    """By profile and place: the UUID."""
    gpu = json.loads(mig(cluster, "list", "--gpu", str(index), "--json").stdout)["gpus"][0]
    return {f"{one['profile']}@{one['place']['start']}": one["compute"][0]["uuid"] for one in gpu["instances"]}


def run(lane: Lane, cluster) -> None:
    cluster.start_agent("--mig-strategy", "mixed")
    cluster.wait_for("eight whole GPUs", lambda: offered(cluster) == {"nvidia.com/gpu": 8}, 20)
    observer = Observer()
    observer.start()
    try:
        made = mig(cluster, "apply", "--gpu", "0", "3g.71gb@0,2g.35gb@4")
        lane.check("a free GPU is divided", made.returncode == 0, made.stdout + made.stderr)
        cluster.wait_for("its instances are offered", lambda: offered(cluster) == {"nvidia.com/gpu": 7, BIG: 1, MIDDLE: 1}, 20)
        a_pod_keeps_its_instance(lane, cluster)
        its_own_instance_waits_for_it(lane, cluster)
    finally:
        release(cluster, "on-instance")
        mig(cluster, "apply", "--gpu", "0", "off", "--drain", "60")  # the next scenario wants eight GPUs
    cluster.start_agent()
    cluster.wait_for("eight whole GPUs", lambda: len(cluster.allocatable()) == 8, 20)
    observer.end()
    lane.equal("no GPU was in two containers at once", observer.doubles, [])


def a_pod_keeps_its_instance(lane: Lane, cluster) -> None:
    cluster.api.create_pod(gpu_pod("on-instance", 1, HOLD, resource=BIG))
    cluster.wait_phase("on-instance", "Running")
    held, before = holding(cluster), processes()
    kept = instances(cluster, 0)["3g.71gb@0"]
    changed = mig(cluster, "apply", "--gpu", "0", "3g.71gb@0,1g.18gb@4,1g.18gb@5")
    lane.check("the others change", changed.returncode == 0, changed.stdout + changed.stderr)
    cluster.wait_for("they are offered", lambda: offered(cluster) == {"nvidia.com/gpu": 7, BIG: 1, SMALL: 2}, 20)
    lane.equal("the pod has the same instance", (holding(cluster), processes(), instances(cluster, 0)["3g.71gb@0"]), (held, before, kept))
    cluster.api.create_pod(gpu_pod("small", 1, ["sh", "-c", "nvidia-smi -L && gantry-vector-add"], resource=SMALL))
    cluster.wait_phase("small", "Succeeded")
    log = cluster.api.log("small")
    lane.check("a pod computes on a new one", log.count("MIG-") == 1 and "Test PASSED" in log, log)
    release(cluster, "small")


def its_own_instance_waits_for_it(lane: Lane, cluster) -> None:
    refused = mig(cluster, "apply", "--gpu", "0", "7x1g.18gb")
    lane.check("the pod is named when its instance would go", refused.returncode == 1 and "default/on-instance" in refused.stderr, refused.stderr)
    cluster.wait_for("all is offered again", lambda: offered(cluster) == {"nvidia.com/gpu": 7, BIG: 1, SMALL: 2}, 20)
    waiting = subprocess.Popen(argv(cluster, "apply", "--gpu", "0", "7x1g.18gb", "--drain", "100"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    try:
        cluster.wait_for("they are withdrawn", lambda: offered(cluster) == {"nvidia.com/gpu": 7}, 20)
        time.sleep(1)
        lane.check("--drain waits", waiting.poll() is None and cluster.phase("on-instance") == "Running")
        release(cluster, "on-instance")
        said, _ = waiting.communicate(timeout=100)
    finally:
        waiting.kill()
    lane.check("when the pod has gone they change", waiting.returncode == 0, said)
    cluster.wait_for("seven are offered", lambda: offered(cluster) == {"nvidia.com/gpu": 7, SMALL: 7}, 20)
