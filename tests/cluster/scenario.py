# SPDX-License-Identifier: Apache-2.0
"""Pods for the scenarios."""
CUDA = "localhost/cuda:1"
HOLD = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]


def plain_pod(name: str, image: str, command: list[str], **spec) -> dict:
    """A pod with one second of grace. With none, its name would be free before its processes have ended."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
                     "containers": [{"name": "main", "image": image, "command": command}], **spec}}


def gpu_pod(name: str, gpus: int, command: list[str], resource: str = "nvidia.com/gpu", **spec) -> dict:
    pod = plain_pod(name, CUDA, command, **spec)
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: str(gpus)}}
    return pod
