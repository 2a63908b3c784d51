# SPDX-License-Identifier: Apache-2.0
"""Many pods through eight GPUs while things are killed at random: nothing is handed out twice, nothing is lost."""
import os
import random
import time

from lane_support import Lane
from observer import Observer
from outages import Outage, denials, ends, explained
from scenario import gpu_pod

WINDOW = 16  # pods at a time, more than fit
SEED = 20


class Churn:
    def __init__(self, cluster, pods: int) -> None:
        self.cluster, self.pods = cluster, pods
        self.random = random.Random(SEED)
        self.made = self.finished = self.deleted = 0
        self.failed: dict[str, tuple[str, str]] = {}  # with reason and message
        self.outages: list[Outage] = []
        self.kills: dict[str, int] = {}
        self.open: set[str] = set()

    def pod(self) -> dict:
        """One to four GPUs in one or two containers, sometimes with an init container, for at most four seconds."""
        name = f"churn-{self.made}"
        seconds = self.random.choice(("0.1", "0.5", "1", "2", "4"))
        command = ["sh", "-c", f"ls /dev | grep -c 'nvidia[0-9]'; trap 'exit 0' TERM; sleep {seconds} & wait"]
        pod = gpu_pod(name, self.random.choice((1, 1, 1, 1, 2, 3)), command, restartPolicy="OnFailure")
        first = pod["spec"]["containers"][0]
        if self.random.random() < 0.3:
            pod["spec"]["containers"].append(dict(first, name="second", resources={"limits": {"nvidia.com/gpu": "1"}}))
        if self.random.random() < 0.2:
            pod["spec"]["initContainers"] = [dict(first, name="first", command=["true"])]
        return pod

    def step(self) -> None:
        for pod in self.cluster.api.pods():
            name, phase = pod["metadata"]["name"], pod["status"].get("phase")
            if name not in self.open or "deletionTimestamp" in pod["metadata"]:
                continue
            if phase in ("Succeeded", "Failed"):
                if phase == "Failed":
                    self.failed[name] = pod["status"].get("reason", ""), pod["status"].get("message", "")
                self.finished += 1
                self.forget(name)
            elif phase == "Running" and self.random.random() < 0.02:
                self.deleted += 1
                self.forget(name)
        while len(self.open) < WINDOW and self.made < self.pods:
            pod = self.pod()
            self.made += 1
            self.open.add(pod["metadata"]["name"])
            self.cluster.api.create_pod(pod)

    def forget(self, name: str) -> None:
        self.cluster.api.delete_pod(name)
        self.open.discard(name)

    def kill_something(self) -> None:
        what = self.random.choice(("agent", "agent", "kubelet", "containerd", "container", "container"))
        self.kills[what] = self.kills.get(what, 0) + 1
        if what == "container":
            seen = [s for s in Observer().live() if s.devices]
            if seen:
                try:
                    os.kill(self.random.choice(seen).pid, 9)
                except ProcessLookupError:
                    pass
            return
        if what != "containerd":
            self.outages.append(Outage(what, time.time()))
        self.cluster.restart(what, kill=True)


def run(lane: Lane, cluster) -> None:
    churn = Churn(cluster, lane.options.pods or (300 if lane.options.long else 60))
    observer = Observer()
    observer.start()
    watch = cluster.watch_allocatable()
    start = time.monotonic()
    next_kill, next_word = start + 4, start + 15
    deadline = start + 60 + 6 * churn.pods
    while (churn.made < churn.pods or churn.open) and time.monotonic() < deadline:
        churn.step()
        if time.monotonic() > next_kill:
            churn.kill_something()
            next_kill = time.monotonic() + churn.random.uniform(2, 6)
        if time.monotonic() > next_word:
            print(f"       {churn.finished + churn.deleted} of {churn.pods} pods done, {len(observer.containers)} containers seen", flush=True)
            next_word = time.monotonic() + 15
        time.sleep(0.2)
    took = time.monotonic() - start
    cluster.wait_for("the last pods are gone", lambda: not cluster.api.pods(), 60)
    observer.end()
    print(f"       {churn.finished} finished, {churn.deleted} deleted, {took:.0f} s, killed {churn.kills}, {observer.looks} looks, "
          f"{len(observer.containers)} containers with a GPU, at most {observer.busiest} GPUs at once")
    lane.equal(f"all of {churn.pods} pods were done with", (churn.finished + churn.deleted, sorted(churn.open)), (churn.pods, []))
    lane.equal("no GPU was in two containers at once", observer.doubles, [])
    lane.check("the observer saw containers with GPUs", len(observer.containers) >= churn.pods / 2, str(len(observer.containers)))
    watch.settles(8, seconds=30)  # the last kill may have been a moment ago
    no_leaks(lane, cluster)
    refusals(lane, cluster, churn, watch.end())


def refusals(lane: Lane, cluster, churn: Churn, said: list[dict]) -> None:
    """Between a kill and the next registration no plugin offers GPUs, and the kubelet rejects a pod that is bound just then."""
    ends(churn.outages, said)
    longest = max((outage.end - outage.start for outage in churn.outages), default=0)
    print(f"       {len(churn.failed)} pods rejected, {len(churn.outages)} times no plugin offered GPUs, for {longest:.2f} s at most")
    lane.check("after each kill all GPUs were offered again", longest < float("inf"), str(said[-5:]))
    when = denials(cluster.parts["kubelet"].words())
    others = [(pod, *why, when.get(pod)) for pod, why in churn.failed.items() if not explained(*why, when.get(pod), churn.outages)]
    lane.check("pods failed only because the kubelet rejected them while no plugin offered GPUs", not others,
               f"{others}\n{[(o.what, o.start, o.end) for o in churn.outages]}")


def no_leaks(lane: Lane, cluster) -> None:
    lane.equal("the kubelet lists no holder any more", cluster.holders(), [])
    grants = cluster.node.root / "run/gantry/grants"
    try:
        cluster.wait_for("grants are taken back", lambda: not grants.exists() or not os.listdir(grants), 15)
    except TimeoutError:
        pass  # the comparison below reports it with more detail
    lane.equal("no grant is left", os.listdir(grants) if grants.exists() else [], [])
    cluster.wait_for("the node shows 8 GPUs", lambda: cluster.count() == (8, 8), 10)
    cluster.api.create_pod(gpu_pod("all-eight", 8, ["sh", "-c", "ls /dev | grep -c 'nvidia[0-9]'"]))
    cluster.wait_phase("all-eight", "Succeeded")
    lane.equal("one pod gets all eight afterwards", cluster.api.log("all-eight").strip(), "8")
    cluster.api.delete_pod("all-eight")
    cluster.gone("all-eight")
