# SPDX-License-Identifier: Apache-2.0
"""What notes 003 and 004 do: the node shows its GPUs, the vector-add pod prints its six lines, too many GPUs wait."""
import pathlib
import re
import time

from lane_support import Lane
from scenario import CUDA, gpu_pod, plain_pod
from scenarios.smoke import scheduling_message

MANIFESTS = pathlib.Path(__file__).resolve().parent.parent / "manifests"  # as the notes have them, word for word
SIX_LINES = """[Vector addition of 50000 elements]
Copy input data from the host memory to the CUDA device
CUDA kernel launch with 196 blocks of 256 threads
Copy output data from the CUDA device to the host memory
Test PASSED
Done
"""


def run(lane: Lane, cluster) -> None:
    start = time.monotonic()
    cluster.start_agent()
    ids = cluster.wait_for("the kubelet knows 8 GPUs", lambda: len(cluster.allocatable()) == 8 and cluster.allocatable(), 10)
    print(f"       agent started to 8 GPUs allocatable: {time.monotonic() - start:.2f} s")
    lane.equal("the devices are the GPUs' own names", ids, sorted(gpu["uuid"] for gpu in cluster.node.inventory()["gpus"]))
    cluster.wait_for("the node shows 8 GPUs", lambda: cluster.count() == (8, 8), 10)
    described = cluster.kubectl("describe", "nodes")
    lane.check("kubectl describe nodes: Capacity and Allocatable show nvidia.com/gpu: 8",
               len(re.findall(r"^  nvidia.com/gpu: +8$", described, re.MULTILINE)) == 2, described)
    vector_add(lane, cluster, "cuda-vector-add.yaml", "cuda-vector-add")
    vector_add(lane, cluster, "cuda-vector-test.yaml", "cuda-verctor-add")
    device_query(lane, cluster)
    too_many(lane, cluster)
    nothing_without_a_limit(lane, cluster)
    several(lane, cluster)


def vector_add(lane: Lane, cluster, manifest: str, pod: str) -> None:
    cluster.kubectl("create", "-f", MANIFESTS / manifest)
    cluster.wait_phase(pod, "Succeeded")
    lane.equal(f"{manifest}: kubectl logs {pod} has the six lines", cluster.kubectl("logs", pod), SIX_LINES)
    cluster.kubectl("delete", "pod", pod)


def device_query(lane: Lane, cluster) -> None:
    cluster.kubectl("create", "-f", MANIFESTS / "gpu-test.yaml")
    log = cluster.wait_for("the deployment's pod has answered", lambda: answered(cluster), 30)
    lane.check("gpu-test.yaml: deviceQuery of a deployment finds one H200", "Detected 1 CUDA Capable device(s)" in log and "H200" in log, log)
    # Its shell does not hear TERM: the pod goes by our grace of a second, not by its own of thirty.
    cluster.kubectl("delete", "deployment,replicaset", "-l", "run=gpu-test", "--cascade=orphan")
    for pod in cluster.api.pods():
        cluster.api.delete_pod(pod["metadata"]["name"])
    cluster.wait_for("its pod is gone", lambda: not cluster.api.pods(), 40)


def answered(cluster) -> str:
    log = cluster.kubectl("logs", "deployment/gpu-test", check=False)
    return log if "Result = PASS" in log else ""


def too_many(lane: Lane, cluster) -> None:
    cluster.api.create_pod(gpu_pod("nine", 9, ["true"]))
    message = cluster.wait_for("the scheduler says why", lambda: scheduling_message(cluster, "nine"))
    lane.check("nine GPUs of eight: Pending", cluster.phase("nine") == "Pending", cluster.phase("nine"))
    lane.check("and the reason is Insufficient nvidia.com/gpu", "1 Insufficient nvidia.com/gpu" in message, message)
    cluster.api.delete_pod("nine")


def nothing_without_a_limit(lane: Lane, cluster) -> None:
    cluster.api.create_pod(plain_pod("no-limit", CUDA, ["sh", "-c", 'echo "$NVIDIA_VISIBLE_DEVICES:"; ls -R /dev']))
    cluster.wait_phase("no-limit", "Succeeded")
    log = cluster.api.log("no-limit")
    lane.check("no limit, NVIDIA_VISIBLE_DEVICES=all: no /dev/nvidia*", log.startswith("all:\n") and "nvidia" not in log, log)
    cluster.api.delete_pod("no-limit")


def several(lane: Lane, cluster) -> None:
    """Two containers of one pod have a GPU each, a third has none."""
    pod = gpu_pod("several", 1, ["sh", "-c", "nvidia-smi -L"])
    first = pod["spec"]["containers"][0]
    pod["spec"]["containers"] += [dict(first, name="second"), dict(first, name="none", resources={}, command=["sh", "-c", "ls /dev"])]
    cluster.api.create_pod(pod)
    cluster.wait_phase("several", "Succeeded")
    seen = [re.findall(r"GPU-[0-9a-f-]{36}", cluster.api.log("several", container=name)) for name in ("main", "second")]
    lane.check("two containers of a pod: one GPU each, not the same", [len(s) for s in seen] == [1, 1] and seen[0] != seen[1], str(seen))
    lane.check("its container without a limit has none", "nvidia" not in cluster.api.log("several", container="none"), "")
    cluster.api.delete_pod("several")
    cluster.gone("several")
