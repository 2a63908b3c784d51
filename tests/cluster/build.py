# SPDX-License-Identifier: Apache-2.0
"""The cluster's programs: Kubernetes and containerd from their Go modules, built once and kept in build/, the rest from
Debian packages."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
BUILD = TOP / "build/cluster"
ENGINES = HERE.parent / "e2e/engines"
KUBERNETES = "v1.36.3"
COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet")
HELM = "helm.sh/helm/v3"
CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")
DEBIAN = {"etcd": "etcd-server", "runc": "runc", "nft": "nftables", "ip": "iproute2", "openssl": "openssl", "busybox": "busybox-static",
          "/usr/lib/cni/bridge": "containernetworking-plugins"}


class Missing(Exception):
    """What the cluster cannot be built without, and why it is not there."""


def go() -> str:
    found = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if found is None:
        raise Missing("no Go toolchain on this machine")
    return found


def stamp(module: pathlib.Path, argv: list[str]) -> str:
    """What a build depends on: our own sources, and by go.sum everybody else's."""
    ours = [source for word in argv if word.startswith("./") for source in sorted((module / word).glob("*.go"))]
    digest = hashlib.sha256()
    for path in (module / "go.mod", module / "go.sum", *ours):
        digest.update(path.read_bytes())
    digest.update("\0".join(argv).encode())
    return digest.hexdigest()


def with_progress(argv: list[str], cwd: pathlib.Path, what: str) -> None:
    """A long build that says every 20 seconds how far it is."""
    log = BUILD / "build.log"
    start = time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(argv, cwd=cwd, stdout=out, stderr=out, env=dict(os.environ, CGO_ENABLED="0"))
        while True:
            try:
                process.wait(timeout=20)
                break
            except subprocess.TimeoutExpired:
                done = log.read_text(errors="replace").splitlines()
                print(f"building {what}: {len(done)} packages, {time.monotonic() - start:.0f} s", flush=True)
    if process.returncode != 0:
        raise RuntimeError(f"{what} does not build:\n{log.read_text(errors='replace')[-3000:]}")
    print(f"built {what} in {time.monotonic() - start:.0f} s", flush=True)


def build(what: str, module: pathlib.Path, into: pathlib.Path, flags: list[str], packages: list[str]) -> None:
    argv = [go(), "build", "-p", "2", "-v", *flags, "-o", f"{into}/", *packages]
    mark = into / f".{what}.stamp"
    wanted = stamp(module, argv[1:-len(packages) - 2] + packages)
    names = [package.rsplit("/", 1)[1] for package in packages]
    if mark.exists() and mark.read_text() == wanted and all((into / name).exists() for name in names):
        return
    into.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    with_progress(["nice", "-n", "10", *argv], module, what)
    mark.write_text(wanted)


def helm() -> pathlib.Path:
    """Helm, told the version that a release of it would be told, and that of the cluster's Kubernetes."""
    module = HERE / "helm"
    version = next(line.split()[1] for line in (module / "go.mod").read_text().splitlines() if line.split()[:1] == [HELM])
    major, minor, _ = KUBERNETES[1:].split(".")
    facts = {f"{HELM}/internal/version.version": version, f"{HELM}/pkg/chartutil.k8sVersionMajor": major, f"{HELM}/pkg/chartutil.k8sVersionMinor": minor}
    build("helm", module, BUILD / "bin", ["-ldflags", "-s -w " + " ".join(f"-X {name}={value}" for name, value in facts.items())], [f"{HELM}/cmd/helm"])
    return BUILD / "bin/helm"


def programs() -> pathlib.Path:
    """The directory of the Go programs, built if they are not there."""
    for program, package in DEBIAN.items():
        if shutil.which(program) is None:
            raise Missing(f"{program} is not installed (apt-get install {package})")
    place = BUILD / "bin"
    major, minor, _ = KUBERNETES[1:].split(".")
    version = f"-X k8s.io/component-base/version.gitVersion={KUBERNETES} -X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}"
    build("kubernetes", HERE, place, ["-ldflags", f"-s -w {version}"], [f"k8s.io/kubernetes/cmd/{name}" for name in COMMANDS])
    build("podresources", HERE, place, ["-ldflags", "-s -w"], ["./podresources"])
    build("containerd", ENGINES, place, ["-ldflags", "-s -w", "-tags", "no_btrfs,no_devmapper,no_zfs"],
          [f"github.com/containerd/containerd/v2/cmd/{name}" for name in CONTAINERD])
    helm()
    return place
