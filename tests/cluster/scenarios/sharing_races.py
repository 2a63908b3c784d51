# SPDX-License-Identifier: Apache-2.0
"""200 equal pods at once on eight shared GPUs: each container has the GPU and the amount that its own placement says, whoever
came first; and the same while the extender, the scheduler, the agent and the API server are killed in the middle."""
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from lane_support import Lane
from sharing import GIB, placement, seen, share_pod, shared_gpus

AMOUNT = 5  # 28 of these fill a card: 200 leave 24 places free
LOOK = "nvidia-smi -L; share-probe --hold 100000 1024 5120"


def run(lane: Lane, cluster) -> None:
    with shared_gpus(cluster):
        race(lane, cluster)
        killed_in_the_middle(lane, cluster)


def create(cluster, names: list[str], amount: int = AMOUNT) -> None:
    for name in names:
        cluster.api.create_pod(share_pod(name, amount, LOOK))


def running(cluster) -> dict[str, dict]:
    return {pod["metadata"]["name"]: pod for pod in cluster.api.pods() if pod["status"].get("phase") == "Running"}


def await_running(cluster, names: list[str], seconds: float) -> dict[str, dict]:
    cluster.wait_for(f"{len(names)} pods run", lambda: set(names) <= running(cluster).keys(), seconds, pause=0.5)
    return running(cluster)


def promised(pods: dict[str, dict]) -> dict[str, int]:
    """MiB of each GPU, by what the placements say."""
    sums: dict[str, int] = {}
    for pod in pods.values():
        for part in placement(pod)["main"]:
            sums[part["uuid"]] = sums.get(part["uuid"], 0) + part["mib"]
    return sums


def what_they_see(cluster, names: list[str]) -> dict[str, tuple]:
    """From inside: the card's total, what an allocation over the limit gets, and which GPU it is."""
    def look(name: str) -> tuple:
        said = seen(cluster, name, until="alloc 5120")
        gpu = re.findall(r"GPU-[0-9a-f-]{36}", cluster.api.log(name))
        return said.get("total"), said.get("alloc 1024"), said.get("alloc 5120"), tuple(gpu)
    return {name: look(name) for name in names}


def check_all(lane: Lane, cluster, what: str, names: list[str], pods: dict[str, dict]) -> None:
    over = {gpu: mib for gpu, mib in promised(pods).items() if mib > GIB * 1024}
    lane.equal(f"{what}: no GPU is promised twice", over, {})
    found = what_they_see(cluster, names)
    wanted = {name: (str(AMOUNT * 1024), "0", "2", (placement(pods[name])["main"][0]["uuid"],)) for name in names}
    wrong = {name: (found[name], wanted[name]) for name in names if found[name] != wanted[name]}
    lane.check(f"{what}: each of {len(names)} sees its own GPU with its own limit, and gets no more", not wrong, str(dict(list(wrong.items())[:5])))


def empty(lane: Lane, cluster, what: str) -> None:
    for pod in cluster.api.pods():
        cluster.api.delete_pod(pod["metadata"]["name"])
    cluster.wait_for("all pods are gone", lambda: not cluster.api.pods(), 120)
    listed = ("share", "ls", "--json", "--root", cluster.node.root)
    cluster.wait_for("their shares are gone", lambda: "slot-" not in cluster.node.call(*listed), 30)
    lane.check(f"{what}: nothing is left on the node", True)


def race(lane: Lane, cluster) -> None:
    names = [f"equal-{i:03}" for i in range(200)]
    start = time.monotonic()
    create(cluster, names)
    pods = await_running(cluster, names, 600)
    print(f"       200 pods created to running: {time.monotonic() - start:.1f} s")
    check_all(lane, cluster, "200 equal pods", names, pods)
    lane.equal("all of them count", sum(promised(pods).values()), 200 * AMOUNT * 1024)
    empty(lane, cluster, "200 equal pods")


def killed_in_the_middle(lane: Lane, cluster) -> None:
    """Each part is killed a few times while 60 pods come; afterwards all run, and nothing is promised twice."""
    names = [f"storm-{i:02}" for i in range(60)]
    ended = threading.Event()
    kills: list[str] = []

    def storm() -> None:
        for name in ("extender", "agent", "kube-scheduler", "extender", "kube-apiserver", "extender", "agent"):
            if ended.wait(1.0):
                return
            cluster.restart(name, kill=True)
            kills.append(name)

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(storm)
        for name in names:
            cluster.wait_for(f"{name} is taken", lambda name=name: create_once(cluster, name), 60)
        cluster.wait_for("all of them run", lambda: all_run(cluster, names, supervised=going.done()), 400, pause=0.5)
        pods = running(cluster)
        ended.set()
        going.result()
    print(f"       killed: {' '.join(kills)}")
    check_all(lane, cluster, "killed in the middle", names, pods)
    empty(lane, cluster, "killed in the middle")


def all_run(cluster, names: list[str], supervised: bool) -> bool:
    """A kubelet that finds no plugin refuses a pod for good, and a controller makes another one: here we are the controller. kube-scheduler ends itself
    when it has missed between two watches that a pod was deleted and made anew ("Scheduler cache is corrupted"), and is started again by its
    supervisor: here we are that, too."""
    scheduler = cluster.parts["kube-scheduler"]
    if supervised and not scheduler.running():
        print("       kube-scheduler has ended itself, and is started again")
        scheduler.start()
    for pod in cluster.api.pods():
        if pod["status"].get("phase") == "Failed" and pod["status"].get("reason") == "UnexpectedAdmissionError":
            cluster.api.delete_pod(pod["metadata"]["name"], grace=0)
    for name in names:
        create_once(cluster, name)
    return set(names) <= running(cluster).keys()


def create_once(cluster, name: str) -> bool:
    """The API server may have gone after it took the pod."""
    if cluster.api.pod(name) is None:
        cluster.api.create_pod(share_pod(name, AMOUNT, LOOK))
    return True
