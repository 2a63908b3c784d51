# SPDX-License-Identifier: Apache-2.0
"""The cluster's programs: Kubernetes, containerd and helm from their Go modules, built once and kept in the user's cache, the
rest from Debian packages."""
import importlib.util
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import go_programs  # noqa: E402
from go_programs import Missing  # noqa: E402

TOP = HERE.parent.parent
BUILD = TOP / "build/cluster"
ENGINES = HERE.parent / "e2e/engines"
KUBERNETES = "v1.36.3"
COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet")
HELM = "helm.sh/helm/v3"
CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")
DEBIAN = {"etcd": "etcd-server", "runc": "runc", "nft": "nftables", "ip": "iproute2", "openssl": "openssl", "busybox": "busybox-static",
          "/usr/lib/cni/bridge": "containernetworking-plugins"}


def linked_as(facts: dict[str, str]) -> list[str]:
    """Flags that strip a program and tell it its version."""
    return ["-ldflags", " ".join(["-s -w", *(f"-X {name}={value}" for name, value in facts.items())])]


def kubernetes(name: str, commands: tuple[str, ...]) -> pathlib.Path:
    """The directory of these Kubernetes programs, told the version that a release of it is told."""
    major, minor, _ = KUBERNETES[1:].split(".")
    version = "k8s.io/component-base/version"
    facts = {f"{version}.gitVersion": KUBERNETES, f"{version}.gitMajor": major, f"{version}.gitMinor": minor}
    return go_programs.build(name, HERE, [f"k8s.io/kubernetes/cmd/{command}" for command in commands], linked_as(facts))


def kubectl() -> pathlib.Path:
    """On its own: lanes outside the cluster need it too, and not the rest."""
    return kubernetes("kubectl", ("kubectl",)) / "kubectl"


def containerd() -> pathlib.Path:
    """The directory of containerd 2 and its programs."""
    return go_programs.build("containerd", ENGINES, [f"github.com/containerd/containerd/v2/cmd/{name}" for name in CONTAINERD],
                             [*linked_as({}), "-tags", "no_btrfs,no_devmapper,no_zfs"])


def helm() -> pathlib.Path:
    """Helm, told the version that a release of it would be told, and that of the cluster's Kubernetes."""
    module = HERE / "helm"
    version = next(line.split()[1] for line in (module / "go.mod").read_text().splitlines() if line.split()[:1] == [HELM])
    major, minor, _ = KUBERNETES[1:].split(".")
    facts = {f"{HELM}/internal/version.version": version, f"{HELM}/pkg/chartutil.k8sVersionMajor": major, f"{HELM}/pkg/chartutil.k8sVersionMinor": minor}
    return go_programs.build("helm", module, [f"{HELM}/cmd/helm"], linked_as(facts)) / "helm"


def programs() -> pathlib.Path:
    """The directory with links to all Go programs, which are built if they do not exist."""
    for program, package in DEBIAN.items():
        if shutil.which(program) is None:
            raise Missing(f"{program} is not installed (apt-get install {package})")
    if importlib.util.find_spec("yaml") is None:
        raise Missing("python3-yaml is not installed")
    found = [kubectl(), *(kubernetes("kubernetes", COMMANDS) / name for name in COMMANDS),
             go_programs.build("podresources", HERE, ["./podresources"], linked_as({})) / "podresources",
             *(containerd() / name for name in CONTAINERD), helm()]
    place = BUILD / "bin"
    place.mkdir(parents=True, exist_ok=True)
    for program in found:
        fresh = place / f".{program.name}.{os.getpid()}"
        fresh.symlink_to(program)
        fresh.replace(place / program.name)
    return place
