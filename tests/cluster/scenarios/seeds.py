# SPDX-License-Identifier: Apache-2.0
"""What notes 000 and 001 run on Kubernetes, by their own manifests: a notebook with its Service, a Job that learns digits, and
Jobs that mount the driver by hand. Only images are ours (manifests/); what they print must come from a GPU in the pod."""
import json
import pathlib
import re
import urllib.request

from holding import holding
from lane_support import Lane
from scenarios.offer import SIX_LINES
from scenarios.smoke import fetch, scheduling_message

MANIFESTS = pathlib.Path(__file__).resolve().parent.parent / "manifests"
NOTEBOOK = "http://10.99.0.1:30001"  # the node's address and the port that the Service names
LEGACY = "alpha.kubernetes.io/nvidia-gpu"  # until Kubernetes 1.8


def run(lane: Lane, cluster) -> None:
    notebook(lane, cluster)
    learns(lane, cluster, "gpu-accelerated.yaml", "samples-tf-mnist-demo")
    legacy_name_waits(lane, cluster)
    smi(lane, cluster)
    learns(lane, cluster, "module4-ex2.yaml", "module4-ex2")


def create(cluster, manifest: str) -> None:
    """Creates it unchanged except for the old resource name, which no plugin offers: legacy_name_waits shows that."""
    cluster.kubectl("create", "-f", "-", stdin=(MANIFESTS / manifest).read_text().replace(LEGACY, "nvidia.com/gpu"))


def notebook(lane: Lane, cluster) -> None:
    create(cluster, "tf-notebook.yaml")
    cluster.wait_phase("tf-notebook", "Running")
    page = cluster.wait_for("the notebook's page comes through NodePort 30001", lambda: fetch(f"{NOTEBOOK}/"), 30)
    lane.check("tf-notebook.yaml: the page on NodePort 30001 shows the pod's one H200", "GPU 0: NVIDIA H200" in page and "GPU 1:" not in page, page)
    with urllib.request.urlopen(f"{NOTEBOOK}/run", timeout=30) as answer:
        lane.equal("asked, the page adds vectors", answer.read().decode(), SIX_LINES)
    status = cluster.wait_for("the run's end is known", lambda: after_a_run(), 10)
    lane.equal("and says that GPU and connection work", status["verdict"], "Run 1 passed and was answered: GPU and connection work.")
    seen = re.findall(r"GPU-[0-9a-f-]{36}", cluster.kubectl("exec", "tf-notebook", "--", "nvidia-smi", "-L"))
    lane.equal("the GPU in the pod is the one that the kubelet gave", seen, holding(cluster).get("tf-notebook"))
    listed = cluster.kubectl("get", "service", "tf-notebook")
    lane.check("kubectl get service shows 80:30001", "80:30001/TCP" in listed, listed)
    said = cluster.kubectl("logs", "tf-notebook")
    lane.check("kubectl logs says where the page is", "8888" in said, said)
    cluster.kubectl("delete", "service,pod", "tf-notebook", "--grace-period=1")
    cluster.gone("tf-notebook")


def after_a_run() -> dict | None:
    status = json.loads(fetch(f"{NOTEBOOK}/status"))
    return status if status["last"] else None


def completed(cluster, job: str) -> str:
    """Waits for the Job's end and returns its pod's log."""
    try:
        cluster.wait_for(f"job {job} is complete", lambda: status_of(cluster, job).get("succeeded") == 1, 90)
    except TimeoutError as late:
        raise TimeoutError(f"{late}\n{cluster.kubectl('describe', 'pods', '-l', f'job-name={job}', check=False)}"
                           f"{cluster.kubectl('logs', f'job/{job}', check=False)}") from None
    return cluster.kubectl("logs", f"job/{job}")


def status_of(cluster, job: str) -> dict:
    return cluster.api.get(f"/apis/batch/v1/namespaces/default/jobs/{job}")["status"]


def remove(cluster, job: str) -> None:
    cluster.kubectl("delete", "job", job)
    cluster.wait_for(f"the pods of {job} are gone", lambda: not cluster.api.pods(), 40)


def learns(lane: Lane, cluster, manifest: str, job: str) -> None:
    create(cluster, manifest)
    log = completed(cluster, job)
    lane.check(f"{manifest}: kubectl logs shows the device it found", re.search(r"Found device 0 with properties:\s+name: NVIDIA H200", log) is not None, log)
    steps = [(int(step), float(share)) for step, share in re.findall(r"^Accuracy at step (\d+): ([0-9.]+)$", log, re.MULTILINE)]
    lane.check(f"{manifest}: and how well it reads digits, every ten steps of 500", [step for step, _ in steps] == list(range(0, 501, 10)), log)
    lane.check(f"{manifest}: it learnt", bool(steps) and steps[0][1] < 0.5 and steps[-1][1] > 0.85, log)
    remove(cluster, job)


def smi(lane: Lane, cluster) -> None:
    create(cluster, "4-nvidia-smi.yaml")
    log = completed(cluster, "4-nvidia-smi")
    lane.check("4-nvidia-smi.yaml: nvidia-smi shows one H200 and its driver", "Driver Version: 580.159.04" in log and log.count("NVIDIA H200") == 1, log)
    listed = cluster.kubectl("get", "pods")
    lane.check("kubectl get pods shows it Completed", re.search(r"^4-nvidia-smi-\w+ +0/1 +Completed +0 ", listed, re.MULTILINE) is not None, listed)
    remove(cluster, "4-nvidia-smi")


def legacy_name_waits(lane: Lane, cluster) -> None:
    """Unchanged, including the old resource name."""
    cluster.kubectl("create", "-f", MANIFESTS / "4-nvidia-smi.yaml")
    pod = cluster.wait_for("the Job has its pod", lambda: cluster.api.pods())[0]["metadata"]["name"]
    message = cluster.wait_for("the scheduler says why it waits", lambda: scheduling_message(cluster, pod))
    lane.check(f"{LEGACY}: no plugin offers it, and the scheduler says so", f"Insufficient {LEGACY}" in message, message)
    remove(cluster, "4-nvidia-smi")
