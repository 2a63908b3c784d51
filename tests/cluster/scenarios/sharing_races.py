# SPDX-License-Identifier: Apache-2.0
"""Many equal pods at once on eight shared GPUs: each container has the GPU and the amount that its own placement says, whichever
came first; and the same while the extender, the scheduler, the agent and the API server are killed in the middle.
The short form has fewer and larger pods, so that they still fill several cards."""
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from lane_support import Lane
from sharing import GIB, placement, seen, share_pod, shared_gpus


class Size(NamedTuple):
    amount: int  # GiB for each pod
    equal: int   # pods that are created at once
    storm: int   # pods that are created while parts are killed
    kills: tuple[str, ...]

    def pod(self, name: str) -> dict:
        """Says which GPU it has, then takes 1 GiB, which it must get, and as much as its share, which is then too much."""
        return share_pod(name, self.amount, f"nvidia-smi -L; share-probe --hold 100000 1024 {self.amount * 1024}")


# 5 GiB: 28 fill a card, so that 200 leave 24 places free. 30 GiB: 4 fill a card, so that 28 leave 4 places free.
LONG = Size(5, 200, 60, ("extender", "agent", "kube-scheduler", "extender", "kube-apiserver", "extender", "agent"))
SHORT = Size(30, 28, 20, ("extender", "agent", "kube-scheduler", "kube-apiserver", "extender"))


def run(lane: Lane, cluster) -> None:
    size = LONG if lane.options.long else SHORT
    with shared_gpus(cluster):
        race(lane, cluster, size)
        killed_in_the_middle(lane, cluster, size)


def running(cluster) -> dict[str, dict]:
    return {pod["metadata"]["name"]: pod for pod in cluster.api.pods() if pod["status"].get("phase") == "Running"}


def await_running(cluster, names: list[str], seconds: float) -> dict[str, dict]:
    cluster.wait_for(f"{len(names)} pods run", lambda: set(names) <= running(cluster).keys(), seconds, pause=0.5)
    return running(cluster)


def promised(pods: dict[str, dict]) -> dict[str, int]:
    """MiB that the placements promise of each GPU."""
    sums: dict[str, int] = {}
    for pod in pods.values():
        for part in placement(pod)["main"]:
            sums[part["uuid"]] = sums.get(part["uuid"], 0) + part["mib"]
    return sums


def what_they_see(cluster, names: list[str], size: Size) -> dict[str, tuple]:
    """What each container sees: the card's total, the results of two allocations, and the GPU."""
    def look(name: str) -> tuple:
        over = f"alloc {size.amount * 1024}"
        said = seen(cluster, name, until=over)
        gpu = re.findall(r"GPU-[0-9a-f-]{36}", cluster.api.log(name))
        return said.get("total"), said.get("alloc 1024"), said.get(over), tuple(gpu)
    return {name: look(name) for name in names}


def check_all(lane: Lane, cluster, what: str, names: list[str], pods: dict[str, dict], size: Size) -> None:
    over = {gpu: mib for gpu, mib in promised(pods).items() if mib > GIB * 1024}
    lane.equal(f"{what}: no GPU is promised twice", over, {})
    found = what_they_see(cluster, names, size)
    wanted = {name: (str(size.amount * 1024), "0", "2", (placement(pods[name])["main"][0]["uuid"],)) for name in names}
    wrong = {name: (found[name], wanted[name]) for name in names if found[name] != wanted[name]}
    lane.check(f"{what}: each of {len(names)} sees its own GPU with its own limit, and gets no more", not wrong, str(dict(list(wrong.items())[:5])))


def empty(lane: Lane, cluster, what: str) -> None:
    for pod in cluster.api.pods():
        cluster.api.delete_pod(pod["metadata"]["name"])
    cluster.wait_for("all pods are gone", lambda: not cluster.api.pods(), 120)
    listed = ("share", "ls", "--json", "--root", cluster.node.root)
    cluster.wait_for("their shares are gone", lambda: "slot-" not in cluster.node.call(*listed), 30)
    lane.check(f"{what}: nothing is left on the node", True)


def race(lane: Lane, cluster, size: Size) -> None:
    what = f"{size.equal} equal pods"
    names = [f"equal-{i:03}" for i in range(size.equal)]
    start = time.monotonic()
    for name in names:
        cluster.api.create_pod(size.pod(name))
    pods = await_running(cluster, names, 600)
    print(f"       {what} created to running: {time.monotonic() - start:.1f} s")
    check_all(lane, cluster, what, names, pods, size)
    lane.equal("all of them count", sum(promised(pods).values()), size.equal * size.amount * 1024)
    empty(lane, cluster, what)


def killed_in_the_middle(lane: Lane, cluster, size: Size) -> None:
    """Each part is killed while pods come; afterwards all run, and nothing is promised twice."""
    names = [f"storm-{i:02}" for i in range(size.storm)]
    kills: list[str] = []

    def storm() -> None:
        for name in size.kills:
            time.sleep(1.0)
            cluster.restart(name, kill=True)
            kills.append(name)

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(storm)
        for name in names:
            cluster.wait_for(f"{name} is taken", lambda name=name: create_once(cluster, name, size), 60)
        cluster.wait_for("all of them run", lambda: going.done() and all_run(cluster, names, size), 400, pause=0.5)
        pods = running(cluster)
        going.result()
    print(f"       killed: {' '.join(kills)}")
    check_all(lane, cluster, "killed in the middle", names, pods, size)
    empty(lane, cluster, "killed in the middle")


def all_run(cluster, names: list[str], size: Size) -> bool:
    """Plays the controller and the supervisor. A kubelet that finds no plugin rejects a pod for good, and a controller would create another.
    kube-scheduler exits if it missed between two watches that a pod was deleted and created again ("Scheduler cache is corrupted"), and a
    supervisor would start it again."""
    scheduler = cluster.parts["kube-scheduler"]
    if not scheduler.running():
        print("       kube-scheduler has exited and is started again")
        scheduler.start()
    for pod in cluster.api.pods():
        if pod["status"].get("phase") == "Failed" and pod["status"].get("reason") == "UnexpectedAdmissionError":
            cluster.api.delete_pod(pod["metadata"]["name"], grace=0)
    for name in names:
        create_once(cluster, name, size)
    return set(names) <= running(cluster).keys()


def create_once(cluster, name: str, size: Size) -> bool:
    """The API server may have been killed after it took the pod."""
    if cluster.api.pod(name) is None:
        cluster.api.create_pod(size.pod(name))
    return True
