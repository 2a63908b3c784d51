# SPDX-License-Identifier: Apache-2.0
"""A job of a chief and three workers, one GPU each, where three GPUs are free. `gantry why` names the pod that waits, what it holds up and who has
the fourth GPU. When that GPU is free, the job ends: its pods meet, and each has seen its own GPU."""
import json
import re

from lane_support import Lane
from scenario import CUDA, HOLD, gpu_pod

JOB = "train"
PODS = 4
# Every pod says which GPU it has. The chief, index 0, waits for all; the workers wait for the chief. The shell does it all: the image has few programs.
MEET = """set -e
nvidia-smi -L > /meet/$JOB_COMPLETION_INDEX
: > /meet/$JOB_COMPLETION_INDEX.here
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then
  for index in 0 1 2 3; do until [ -f /meet/$index.here ]; do sleep 0.1; done; done
  cat /meet/0 /meet/1 /meet/2 /meet/3
  : > /meet/done
fi
until [ -f /meet/done ]; do sleep 0.1; done
"""


def run(lane: Lane, cluster) -> None:
    meeting = cluster.place / "meet"
    meeting.mkdir()
    manifest = cluster.place / "train.json"
    manifest.write_text(json.dumps(job(str(meeting))))
    checked = lane.run(lane.bin / "gantry", "why", "manifest", manifest)
    lane.check("the job's manifest is in order", checked.returncode == 0 and f"Job {JOB} of" in checked.stdout, checked.stdout + checked.stderr)
    cluster.api.create_pod(gpu_pod("notebook", 5, HOLD))
    cluster.wait_phase("notebook", "Running")
    cluster.kubectl("create", "-f", manifest)
    cluster.wait_for("three pods of the job run and one waits", lambda: sorted(states(cluster).values()) == ["Running"] * 3 + ["waits"], 30)
    names = {state: name for name, state in states(cluster).items()}
    pod_that_waits(lane, cluster, names["waits"])
    pod_that_runs(lane, cluster, names["Running"], names["waits"])
    cluster.api.delete_pod("notebook")
    ends(lane, cluster)
    cluster.kubectl("delete", "job", JOB)
    cluster.wait_for("no pod is left", lambda: not cluster.api.pods(), 30)


def job(meeting: str) -> dict:
    pod = gpu_pod("", 1, ["sh", "-c", MEET], volumes=[{"name": "meet", "hostPath": {"path": meeting}}])["spec"]
    pod["containers"][0] |= {"image": CUDA, "volumeMounts": [{"name": "meet", "mountPath": "/meet"}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": JOB},
            "spec": {"completionMode": "Indexed", "completions": PODS, "parallelism": PODS, "template": {"spec": pod}}}


def states(cluster) -> dict[str, str]:
    """Each pod of the job: its phase, or "waits" once the scheduler found no node for it."""
    found = {}
    for pod in cluster.api.pods():
        if pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") != JOB:
            continue
        refused = any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod["status"].get("conditions", []))
        found[pod["metadata"]["name"]] = "waits" if refused else pod["status"].get("phase", "")
    return found


def why(lane: Lane, cluster, pod: str) -> tuple[dict, str]:
    argv = [lane.bin / "gantry", "why", "pod", f"default/{pod}", "--root", cluster.node.root, "--node-name", "gpu-node"]
    return json.loads(lane.run(*argv, "--json").stdout), lane.run(*argv).stdout


def pod_that_waits(lane: Lane, cluster, name: str) -> None:
    answer, text = why(lane, cluster, name)
    steps = {step["id"]: step for step in answer["links"]}
    lane.equal("the pod that waits: it has no node", (answer["subject"], answer["broken"]), (f"pod default/{name}", "scheduling"))
    lane.check("who has the fourth GPU, and that the job's own pods have three", "default/notebook has 5, other pods of its own group have 3" in text, text)
    lane.check("what it holds up", f"this pod holds up Job default/{JOB}" in text, text)
    lane.check("how far the job is", "3 of 4 pods run, 1 waits" in steps.get("group", {}).get("read", ""), json.dumps(answer, indent=1))


def pod_that_runs(lane: Lane, cluster, name: str, waiting: str) -> None:
    answer, text = why(lane, cluster, name)
    lane.equal("a pod of the job that runs: nothing of its own is broken", (answer["broken"], answer["look"]), (None, "group"))
    lane.check("it names the pod that waits, and the command that says why", f"Perhaps: gantry why pod --root {cluster.node.root} default/{waiting}" in text, text)


def ends(lane: Lane, cluster) -> None:
    path = f"/apis/batch/v1/namespaces/default/jobs/{JOB}"
    cluster.wait_for("the job is complete", lambda: cluster.api.get(path)["status"].get("succeeded") == PODS, 60)
    chief = next(pod["metadata"]["name"] for pod in cluster.api.pods() if pod["metadata"]["name"].startswith(f"{JOB}-0-"))
    seen = re.findall(r"GPU-[0-9a-f-]{36}", cluster.api.log(chief))
    lane.equal("with a fourth GPU the job ran: four pods, four GPUs", (len(seen), len(set(seen))), (PODS, PODS))
