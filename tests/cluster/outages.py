# SPDX-License-Identifier: Apache-2.0
"""When nobody offered GPUs because we had killed who does it, and which refusals of the kubelet that explains. A refusal in
other words, or at another time, is explained by nothing."""
import re
import time

EIGHT = 8
# What kubelet 1.36 says, whole: pkg/kubelet/cm/devicemanager, between a plugin's end and its next list ...
ALLOCATE = r"Pod was rejected: Allocate failed due to (?:%s), which is unexpected"
RPC = r"rpc error: code = Unavailable desc = .*"
NOBODY = re.compile(ALLOCATE % "|".join((
    "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu", "cannot allocate unregistered device nvidia.com/gpu",
    "endpoint .* has been stopped", f"device plugin GetPreferredAllocation rpc failed with err: {RPC}", RPC)), re.DOTALL)
# ... by the node's last status, which it renews every second ...
OUT_OF = re.compile(r"Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: \d+, used: \d+, capacity: \d+")
# ... and when it has just started, and takes pods that ended while it was away for holders still.
STALE = re.compile(ALLOCATE % r"requested number of devices unavailable for nvidia.com/gpu. Requested: \d+, Available: \d+")
LOGGED = 0.5  # a refusal is logged a little later than it is decided
STATUS = 2.5  # a node's status: the second until it is written, and its way through the API server
DENIED = re.compile(r'^I(\d{4} [\d:]{8})(\.\d+) .*"Pod admission denied" .*? pod="default/([^"]+)"', re.MULTILINE)


class Outage:
    def __init__(self, what: str, start: float) -> None:
        self.what, self.start, self.end = what, start, float("inf")

    def covers(self, moment: float, after: float) -> bool:
        return self.start <= moment <= self.end + after


def ends(outages: list[Outage], said: list[dict]) -> None:
    """Each ends with the first time after its kill at which the kubelet had all GPUs to give again."""
    good = [line["time"] for line in said if line["answered"] and line["counts"].get("nvidia.com/gpu") == EIGHT]
    for outage in outages:
        outage.end = next((moment for moment in good if moment >= outage.start), float("inf"))


def denials(log: str) -> dict[str, float]:
    """When the kubelet refused each pod, by its own log, which unlike the API's times has microseconds."""
    year = time.localtime().tm_year
    return {pod: time.mktime(time.strptime(f"{year}{day}", "%Y%m%d %X")) + float(part) for day, part, pod in DENIED.findall(log)}


def explained(reason: str, message: str, moment: float | None, outages: list[Outage]) -> bool:
    if moment is None:
        return False
    if reason == "UnexpectedAdmissionError" and NOBODY.fullmatch(message):
        return any(outage.covers(moment, LOGGED) for outage in outages)
    if reason == "UnexpectedAdmissionError" and STALE.fullmatch(message):
        return any(outage.covers(moment, STATUS) for outage in outages if outage.what == "kubelet")
    return reason == "OutOfnvidia.com/gpu" and OUT_OF.fullmatch(message) is not None and any(outage.covers(moment, STATUS) for outage in outages)
