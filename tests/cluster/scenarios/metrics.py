# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus reads what the agent measures: GKE's names on :2112, dcgm-exporter's on :9400, by pod."""
import json
import shutil
import urllib.parse
import urllib.request

from lane_support import Lane
from part import Part
from scenario import gpu_pod

ADDRESS = "127.0.0.1:9090"
CONFIG = """global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: gke
  static_configs: [{targets: ["127.0.0.1:2112"]}]
- job_name: dcgm
  honor_labels: true
  static_configs: [{targets: ["127.0.0.1:9400"]}]
"""
BUSY = ["sh", "-c", "trap 'exit 0' TERM; while :; do gantry-vector-add >/dev/null || exit 1; done"]


def query(text: str) -> list[dict]:
    with urllib.request.urlopen(f"http://{ADDRESS}/api/v1/query?" + urllib.parse.urlencode({"query": text}), timeout=5) as answer:
        return json.load(answer)["data"]["result"]


def run(lane: Lane, cluster) -> None:
    if shutil.which("prometheus") is None:
        lane.skip("metrics", "prometheus is not installed")
        return
    place = cluster.place / "prometheus"
    place.mkdir(exist_ok=True)
    (place / "prometheus.yaml").write_text(CONFIG)
    prometheus = Part("prometheus", ["prometheus", f"--config.file={place}/prometheus.yaml", f"--storage.tsdb.path={place}/data",
                                     f"--web.listen-address={ADDRESS}", "--log.level=warn"], cluster.parts["kubelet"].log.parent)
    prometheus.start()
    try:
        cluster.api.create_pod(gpu_pod("busy", 2, BUSY))
        cluster.wait_phase("busy", "Running")
        cluster.wait_for("Prometheus reads both endpoints", lambda: len(query("up == 1")) == 2, 20)
        agrees(lane, cluster)
    finally:
        prometheus.kill()
        cluster.api.delete_pod("busy")
        cluster.gone("busy")


def agrees(lane: Lane, cluster) -> None:
    held = next(sorted(h["devices"]) for h in cluster.holders() if h["pod"] == "busy")
    mine = '{namespace="default",pod="busy",container="main"}'
    for name in ("duty_cycle", "memory_total", "memory_used"):
        found = cluster.wait_for(f"{name} of the pod", lambda n=name: query(n + mine), 15)
        lane.equal(f":2112 {name} names the pod's GPUs", sorted(row["metric"]["accelerator_id"] for row in found), held)
    lane.equal(":2112 request counts them", [row["value"][1] for row in query("request" + mine)], ["2"])
    for name in ("duty_cycle_gpu_node", "memory_total_gpu_node", "memory_used_gpu_node"):
        lane.equal(f":2112 {name} has every GPU", len(query(name)), 8)
    cluster.wait_for("the other page has been read in full, pods included",
                     lambda: (len(query("DCGM_FI_DEV_POWER_USAGE")), len(query("DCGM_FI_DEV_POWER_USAGE" + mine))) == (8, 2), 20)
    for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"):
        lane.equal(f":9400 {name} has every GPU", len(query(name)), 8)
        lane.equal(f":9400 {name} names the pod's GPUs", sorted(row["metric"]["UUID"] for row in query(name + mine)), held)
    total = query("memory_total_gpu_node")[0]["value"][1]
    lane.check("a GPU's memory is that of an H200", 140e9 < float(total) < 155e9, total)
