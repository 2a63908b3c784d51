# SPDX-License-Identifier: Apache-2.0
"""A real API server accepts everything in deploy/ and knows every field. Nothing is stored."""
import pathlib

from lane_support import Lane

DEPLOY = pathlib.Path(__file__).resolve().parents[3] / "deploy"
CHART = DEPLOY / "helm/nvidia-device-plugin"
# Values as people have them.
SETS = {"without values": "", "another node label": "nodeLabel=gpu/nividia", "configurations": "config.map.one=version: v1",
        "much": "migStrategy=mixed,deviceListStrategy={cdi-cri},devicePlugin.enableHostNetwork=true,runtimeClass.create=true,gfd.enabled=false,"
                "extraEnv[0].name=A,extraEnv[0].value=b,nodeSelector.a=b,podSecurityContext.fsGroup=0"}


def run(lane: Lane, cluster) -> None:
    # Strict: a field that the API does not know is an error, not a warning.
    for folder in ("kubernetes", "plain"):
        said = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", DEPLOY / folder, check=False)
        lane.check(f"kubectl apply -k deploy/{folder}", "daemonset.apps/nvidia-device-plugin-daemonset created" in said and "rror" not in said, said)
    for folder, made in (("gpushare", "deployment.apps/gpushare-schd-extender created"), ("hami", "deployment.apps/hami-scheduler created")):
        said = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", DEPLOY / folder, check=False)
        lane.check(f"kubectl apply -k deploy/{folder}", made in said and "rror" not in said, said)
    cluster.kubectl("create", "namespace", "gpu")
    for what, values in SETS.items():
        rendered = lane.run("helm", "template", "nvdp", CHART, "--namespace", "gpu", *(["--set", values] if values else []))
        said = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=rendered.stdout, check=False) if rendered.stdout else rendered.stderr
        lane.check(f"the chart, {what}", "nvdp-nvidia-device-plugin created" in said and "rror" not in said, said)
    cluster.kubectl("delete", "namespace", "gpu", "--wait=false")
