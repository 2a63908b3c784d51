# SPDX-License-Identifier: Apache-2.0
"""Times at which no plugin offered GPUs because we had killed it or the kubelet, and the rejections by the kubelet that this explains.
A rejection with another message, or at another time, is not explained."""
import re
import time
from typing import NamedTuple

EIGHT = 8
# The complete messages of kubelet 1.36 (pkg/kubelet/cm/devicemanager): between a plugin's end and its next list of devices ...
ALLOCATE = r"Pod was rejected: Allocate failed due to (?:%s), which is unexpected"
RPC = r"rpc error: code = Unavailable desc = .*"
NOBODY = re.compile(ALLOCATE % "|".join((
    "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu", "cannot allocate unregistered device nvidia.com/gpu",
    "endpoint .* has been stopped", f"device plugin GetPreferredAllocation rpc failed with err: {RPC}", RPC)), re.DOTALL)
# ... because of the node's last status, which it renews every second ...
OUT_OF = re.compile(r"Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: \d+, used: \d+, capacity: \d+")
# ... and just after its start: until it has gone through its first list of pods, it counts pods as holders that ended while it was away.
STALE = re.compile(ALLOCATE % r"requested number of devices unavailable for nvidia.com/gpu. Requested: \d+, Available: \d+")
SHOWN = 2.0  # a kill that the watch sees is in its lines by then
LOGGED = 0.5  # a rejection is logged a little later than it is decided
STATUS = 2.5  # a node's status: the second until it is written, and its way through the API server
FIRST_LIST = 2.0  # for going through it
LINE = r"^I(\d{4} [\d:]{8})(\.\d+) +(\d+) .*?"
DENIED = re.compile(LINE + r'"Pod admission denied" .*? pod="default/([^"]+)"', re.MULTILINE)
LISTED = re.compile(LINE + r'"SyncLoop ADD" source="api"', re.MULTILINE)


class Outage:
    def __init__(self, what: str, start: float) -> None:
        self.what, self.start, self.end = what, start, float("inf")

    def covers(self, moment: float, after: float) -> bool:
        return self.start <= moment <= self.end + after


def ends(outages: list[Outage], said: list[dict]) -> None:
    """An outage ends when the kubelet has all GPUs to give for the first time after the kill. The watch has a line for each change, and
    asks fifty times a second: if all GPUs were there at the kill and no line follows it, the next plugin was there before the next question."""
    for outage in outages:
        before = [line for line in said if line["time"] < outage.start]
        after = [line for line in said if line["time"] >= outage.start]
        if before and offers_all(before[-1]) and not any(line["time"] <= outage.start + SHOWN for line in after):
            outage.end = outage.start
        else:
            outage.end = next((line["time"] for line in after if offers_all(line)), float("inf"))


def offers_all(line: dict) -> bool:
    return line["answered"] and line["counts"].get("nvidia.com/gpu") == EIGHT


class Denial(NamedTuple):
    moment: float
    in_first_list: bool  # of a kubelet that has just started


def moment_of(day: str, part: str) -> float:
    return time.mktime(time.strptime(f"{time.localtime().tm_year}{day}", "%Y%m%d %X")) + float(part)


def denials(log: str) -> dict[str, Denial]:
    """When the kubelet rejected each pod. Its log has microseconds; the API's times do not."""
    listed: dict[str, float] = {}
    for day, part, pid in LISTED.findall(log):
        listed.setdefault(pid, moment_of(day, part))
    found = {}
    for day, part, pid, pod in DENIED.findall(log):
        moment = moment_of(day, part)
        found[pod] = Denial(moment, 0 <= moment - listed.get(pid, moment + 1) <= FIRST_LIST)
    return found


def explained(reason: str, message: str, denial: Denial | None, outages: list[Outage]) -> bool:
    if denial is None:
        return False
    if reason == "UnexpectedAdmissionError" and NOBODY.fullmatch(message):
        return any(outage.covers(denial.moment, LOGGED) for outage in outages)
    began = denial.in_first_list and any(outage.what == "kubelet" and outage.start < denial.moment for outage in outages)
    if reason == "UnexpectedAdmissionError" and STALE.fullmatch(message):
        return began
    return reason == "OutOfnvidia.com/gpu" and OUT_OF.fullmatch(message) is not None and (
        began or any(outage.covers(denial.moment, STATUS) for outage in outages))
