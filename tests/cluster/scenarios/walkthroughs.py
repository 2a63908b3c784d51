# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/walkthroughs that are about a cluster, done in this one. Each begins on a node without a device plugin."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

import world
from lane_support import Lane
from node import Node, copy

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests/docs"))
from walking import run_script, walk  # noqa: E402
from walkthrough import Count, Page, read_page  # noqa: E402

MANIFESTS = TOP / "tests/cluster/manifests"  # as the notes have them
KUBECTL_ASIDE = re.compile(r"^[IWE]\d{4} [\d:.]+ +\d+ reflector\.go:.*\n", re.MULTILINE)
LEFT = ("helm list -A --no-headers | while read -r release namespace rest; do helm uninstall -n $namespace $release --wait --timeout 60s; done",
        "kubectl -n kube-system delete daemonset --all", "kubectl delete -k deploy/kubernetes --ignore-not-found", "kubectl delete -k deploy/gpushare --ignore-not-found",
        "kubectl delete daemonset,service -l '!provider'", "kubectl delete namespace gpu team nvidia-device-plugin --ignore-not-found",
        "kubectl taint nodes gpu-node sku-", "kubectl label nodes gpu-node gpu/nividia- nvidia.com/gpu.present- gpushare-")


class ClusterStage:
    def __init__(self, lane: Lane, cluster) -> None:
        self.lane, self.cluster, self.pages = lane, cluster, 0
        self.desk, self.scheduler = lane.work, ""
        programs = lane.work / "walk-bin"
        programs.mkdir()
        (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (programs / "sudo").chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{programs}:{lane.bin}:{os.environ['PATH']}", LC_ALL="C.UTF-8")

    def turn_page(self, page: Page) -> None:
        """Pages do not depend on each other: each starts with an empty cluster and a directory with the files of the notes."""
        node = self.cluster.node
        root = node.root if page.cluster == self.cluster.machine else world.PLACE / page.cluster
        if not root.exists():
            stand_in(node, page.cluster, root)
        self.environment["GANTRY_ROOT"] = str(root)
        self.pages += 1
        self.desk = self.lane.work / f"page-{self.pages}"
        shutil.copytree(MANIFESTS, self.desk)
        for name in ("deploy", "tests"):
            (self.desk / name).symlink_to(TOP / name)
        self.cluster.api.call("DELETE", "/api/v1/namespaces/default/events")  # at once: kubectl deletes them one by one, and a churn leaves thousands
        forget_plugins(self.cluster)
        if page.scheduler:
            self.cluster.schedule_by(TOP / page.scheduler)
            self.scheduler = page.scheduler

    def run(self, script: str, seconds: int = 120) -> subprocess.CompletedProcess:
        return run_script(script, self.desk, self.environment, seconds)

    def plain(self, output: str) -> str:
        """The output without the directory of the simulated machine, which is / on a real one, and without kubectl's message about a watch
        that ends while kubectl ends."""
        return KUBECTL_ASIDE.sub("", output.replace(self.environment["GANTRY_ROOT"], ""))

    def leave(self, early: bool) -> None:
        """A page removes what it made. If it ended early, this removes the rest."""
        if early:
            for command in LEFT:
                self.run(command)
        if self.scheduler:
            self.cluster.schedule_by(None)
            self.scheduler = ""
        self.cluster.clean()


def stand_in(node: Node, machine: str, root: pathlib.Path) -> None:
    """Another machine for the agent to look at, with the GPUs of the notes: kubelet and engine are those of the one node there is."""
    node.call("sim", "create", machine, "--root", root, "--nodes", "real")
    shutil.copytree(root / "run", "/run", dirs_exist_ok=True, copy_function=copy)
    if not (root / "var/run").exists():
        (root / "var/run").symlink_to("/run")
    for directory in ("run", "var/lib/kubelet"):
        (root / directory).mkdir(parents=True, exist_ok=True)
        world.call("mount", "--rbind", f"/{directory}", root / directory)
    for driver in (root / "usr/lib").glob("nvidia-*"):  # where the notes' hostPath volumes look for it
        here = pathlib.Path("/usr/lib") / driver.name
        here.mkdir(exist_ok=True)
        world.call("mount", "--bind", driver, here)


def forget_plugins(cluster) -> None:
    """Makes the kubelet forget plugins. It counts the GPUs of a plugin for five minutes after its end, and still after a restart."""
    cluster.wait_for("no plugin offers GPUs", lambda: cluster.count()[1] == 0, 30)
    known = [name for name in cluster.api.node()["status"]["capacity"] if name.startswith(("nvidia.com/", "aliyun.com/", "gantry.dev/"))]
    if known:
        cluster.parts["kubelet"].stop()
        pathlib.Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint").unlink(missing_ok=True)
        gone = [{"op": "remove", "path": f"/status/{what}/{name.replace('/', '~1')}"} for what in ("capacity", "allocatable") for name in known]
        cluster.api.call("PATCH", "/api/v1/nodes/gpu-node/status", gone, kind="application/json-patch+json")
        cluster.parts["kubelet"].start()
        cluster.wait_for("the kubelet listens for plugins", listens, 30)


def listens() -> bool:
    """Tries a connection: the socket of the previous kubelet may still exist."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as plugin:
        plugin.connect("/var/lib/kubelet/device-plugins/kubelet.sock")
        return True


def pages() -> list[Page]:
    read = [read_page(path) for path in sorted((TOP / "docs/walkthroughs").glob("[0-9]*.md"))]
    return [page for page in read if page.cluster]


def stop_agent(cluster) -> None:
    if "agent" in cluster.parts:
        cluster.parts.pop("agent").stop()


def run(lane: Lane, cluster) -> None:
    stop_agent(cluster)
    archive = lane.work / "walk-gantry.tar"
    lane.run(TOP / "tools/image", lane.bin, archive, check=True)
    cluster.import_image(archive)
    stage = ClusterStage(lane, cluster)
    for page in pages():
        start, failed, ended = time.monotonic(), lane.failed, False
        try:
            walk(page, stage, lane)
            ended = True
        finally:
            stage.leave(early=not ended or lane.failed > failed)
        print(f"       {page.path.name}: {page.count()}, {time.monotonic() - start:.1f} s", flush=True)
    print(f"       {sum((page.count() for page in pages()), Count())}")
