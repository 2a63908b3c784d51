# SPDX-License-Identifier: Apache-2.0
"""deploy/hami: a second scheduler next to the cluster's own, with the configuration and the rights of that folder, and a pod that names it.
The two programs of its pod run on the host; only paths and addresses differ."""
from cluster import LOGS
from lane_support import Lane
from part import Part, wait_for
from sharing import RIGHTS, hami_pod, manifests, placement, seen


def run(lane: Lane, cluster) -> None:
    kubeconfig = cluster.place / "certs/hami.kubeconfig"
    applied = manifests(cluster, "hami", (*RIGHTS, "ConfigMap"), "hami-scheduler")
    cluster.kubectl("apply", "-f", "-", stdin=applied)
    told = cluster.place / "hami-scheduler.yaml"
    text = cluster.kubectl("get", "configmap", "hami-scheduler", "-n", "kube-system", "-o", r"jsonpath={.data.config\.yaml}")
    told.write_text(text + f"clientConnection: {{kubeconfig: {kubeconfig}}}\n")
    cluster.start_agent("--share-gpus")
    extender = Part("hami-extender", [cluster.lane.bin / "gantry", "scheduler", "--kubeconfig", kubeconfig, "--identity", "hami", "--scheduler-name=hami-scheduler",
                                      "--webhook=off"], LOGS)
    scheduler = Part("hami-scheduler", ["kube-scheduler", f"--config={told}", "--secure-port=0", "--v=1"], LOGS)
    try:
        extender.start()
        scheduler.start()
        parts = (cluster.parts["agent"], extender, scheduler)
        wait_for("the node shows its slots", lambda: cluster.count()[1] > 8, 30, alive=parts)
        cluster.api.create_pod(hami_pod("part", 1, mib=20480, cores=30, schedulerName="hami-scheduler"))
        wait_for("the pod runs", lambda: cluster.phase("part") == "Running", 90, alive=parts)
        lane.equal("a pod of HAMi's, by the scheduler of deploy/hami, has what it asked of one GPU",
                   [(part["mib"], part["cores"]) for part in placement(cluster.api.pod("part"))["main"]], [(20480, 30)])
        lane.equal("and sees no more than that", seen(cluster, "part").get("total"), "20480")
        cluster.clean()
    finally:
        scheduler.stop()
        extender.stop()
        cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=applied)
        cluster.start_agent()
