# SPDX-License-Identifier: Apache-2.0
"""The configuration of each program of the cluster: files and command lines."""
import json
import pathlib

ADDRESS = "10.99.0.1"
SERVICES = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
PODS = "10.244.0.0/16"
NODE = "gpu-node"
PAUSE = "localhost/pause:1"
SOCKET = "/run/containerd/containerd.sock"

KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
# The API server must show within two seconds what an agent has changed.
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 1s
syncFrequency: 10s
enforceNodeAllocatable: [pods]
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, imagefs.available: 0%, nodefs.inodesFree: 0%, imagefs.inodesFree: 0%}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
maxOpenFiles: 10000
maxPods: 250
oomScoreAdj: 0
registryPullQPS: 0
eventRecordQPS: 50
kubeAPIQPS: 100
kubeAPIBurst: 200
serializeImagePulls: false
shutdownGracePeriod: 0s
volumeStatsAggPeriod: 0s
crashLoopBackOff: {maxContainerRestartPeriod: 5s}
featureGates: {KubeletCrashLoopBackOffMax: true}
logging: {verbosity: 2}
"""

PROXY = """apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %s}
clusterCIDR: %s
mode: nftables
hostnameOverride: gpu-node
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
"""

CONTAINERD = """version = 3
root = "%(state)s/root"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "%(state)s/opt"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "%(state)s/net.d"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
"""

BRIDGE = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True}


def write(place: pathlib.Path) -> None:
    """Writes all files. The certificates exist already."""
    state = place / "containerd"
    (state / "net.d").mkdir(parents=True, exist_ok=True)
    (state / "config.toml").write_text(CONTAINERD % {"state": state})
    addresses = {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": str(place / "addresses")}
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [dict(BRIDGE, ipam=addresses)]}
    (state / "net.d/10-pods.conflist").write_text(json.dumps(network))
    (place / "kubelet.yaml").write_text(KUBELET)
    (place / "proxy.yaml").write_text(PROXY % (place / "certs/kube-proxy.kubeconfig", PODS))


def etcd(place: pathlib.Path) -> list:
    return ["etcd", "--data-dir", place / "etcd", "--listen-client-urls", "http://127.0.0.1:2379",
            "--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380", "--log-level", "warn"]


def apiserver(place: pathlib.Path) -> list:
    certs = place / "certs"
    return ["kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ADDRESS}", "--bind-address=0.0.0.0",
            f"--cert-dir={certs}/api", f"--tls-cert-file={certs}/api.crt", f"--tls-private-key-file={certs}/api.key",
            f"--service-account-key-file={certs}/accounts.pub", f"--service-account-signing-key-file={certs}/accounts.key",
            "--service-account-issuer=https://kubernetes.default.svc", f"--token-auth-file={certs}/tokens.csv",
            "--authorization-mode=Node,RBAC", f"--service-cluster-ip-range={SERVICES}", "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP", "--profiling=false", "--watch-cache=true", "--v=1"]


def controller_manager(place: pathlib.Path) -> list:
    certs = place / "certs"
    return ["kube-controller-manager", f"--kubeconfig={certs}/controller-manager.kubeconfig", "--leader-elect=false", "--secure-port=0",
            f"--root-ca-file={certs}/ca.crt", f"--service-account-private-key-file={certs}/accounts.key", f"--cluster-cidr={PODS}",
            "--kube-api-qps=100", "--kube-api-burst=200", "--v=1"]


def scheduler(place: pathlib.Path) -> list:
    return ["kube-scheduler", f"--kubeconfig={place}/certs/scheduler.kubeconfig", "--leader-elect=false", "--secure-port=0",
            "--kube-api-qps=100", "--kube-api-burst=200", "--v=1"]


def scheduler_told(place: pathlib.Path, configuration: pathlib.Path) -> list:
    """kube-scheduler with a configuration as people have it; only paths and addresses differ. kube-proxy in nftables mode serves no
    NodePort on 127.0.0.1."""
    text = configuration.read_text().replace("/etc/kubernetes/scheduler.conf", f"{place}/certs/scheduler.kubeconfig").replace("127.0.0.1:", f"{ADDRESS}:")
    here = place / "scheduler.yaml"
    here.write_text(text + "leaderElection: {leaderElect: false}\n")
    return ["kube-scheduler", f"--config={here}", "--secure-port=0", "--v=1"]


def proxy(place: pathlib.Path) -> list:
    return ["kube-proxy", f"--config={place}/proxy.yaml", "--v=1"]


def kubelet(place: pathlib.Path, address: str = ADDRESS) -> list:
    return ["kubelet", f"--config={place}/kubelet.yaml", f"--kubeconfig={place}/certs/kubelet.kubeconfig", "--root-dir=/var/lib/kubelet",
            f"--hostname-override={NODE}", f"--node-ip={address}", f"--cert-dir={place}/certs/kubelet"]


def containerd(place: pathlib.Path) -> list:
    return ["containerd", "-c", place / "containerd/config.toml", "-l", "info"]
