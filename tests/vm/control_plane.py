# SPDX-License-Identifier: Apache-2.0
"""The control plane of a cluster whose only node is a virtual machine host: etcd, kube-apiserver, kube-controller-manager and
kube-scheduler of tests/cluster. They and QEMU run in a network namespace that has nothing but a loopback device; QEMU's user-mode network
connects the host with it. The host's kubelet and containerd are started by checks/driver_daemonset.sh, with the files made here.

In the directory of `running`, besides those of tests/cluster/config.py:
  kubelet.sh, containerd.sh  scripts that start them in the host
  programs                   a link to the cluster's programs
  images/                    the pod's two images, which import needs
  daemonset.yaml             deploy/driver's with the edits of seed 003, and with packages and modules of driver_parts.py"""
import contextlib
import hashlib
import pathlib
import shlex
import shutil
import subprocess
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cluster"), str(ROOT / "tests/e2e")]

import build  # noqa: E402
import bundle  # noqa: E402
import certs  # noqa: E402
import config  # noqa: E402
import driver_notes  # noqa: E402
import images  # noqa: E402
from archive import docker_archive  # noqa: E402
from part import Part, wait_for  # noqa: E402

NEWER = "580.159.04"  # the version of the upgrade
HOST = "10.99.0.2"  # the virtual machine's address; config.ADDRESS is the control plane's, on both sides
# What the host sends to config.ADDRESS arrives at the namespace's 127.0.0.1. The API server reaches the kubelet for the logs of pods.
QEMU = ["-netdev", f"user,id=cluster,net=10.99.0.0/24,host={config.ADDRESS},dhcpstart={HOST},hostfwd=tcp:{HOST}:10250-{HOST}:10250",
        "-device", "virtio-net-pci,bus=pcie.0,netdev=cluster"]
# A connection to HOST must not come from HOST itself: QEMU would pass that on, and the virtual machine would drop it.
NETWORK = f"""set -e
ip link set lo up
ip address add {config.ADDRESS}/32 dev lo
ip address add {HOST}/32 dev lo
ip route replace local {HOST} dev lo proto kernel scope host src {config.ADDRESS} table local
echo ready
exec sleep infinity"""
SERVER = {"etcd": config.etcd, "kube-apiserver": config.apiserver}
CLIENTS = {"kube-controller-manager": config.controller_manager, "kube-scheduler": config.scheduler}  # they do not wait for it long
LOGS = ROOT / "build/vm-cluster"


class ControlPlane:
    def __init__(self, place: pathlib.Path, enter: list[str]) -> None:
        """`enter` are the words before a command that run it in the namespace."""
        self.place, self.enter = place, enter

    def install_by(self, programs: pathlib.Path, drivers: pathlib.Path) -> None:
        """Makes what the DaemonSet needs from our programs and from the directory of driver_parts.make."""
        make_images(programs, self.place / "images")
        (self.place / "daemonset.yaml").write_text(daemonset(drivers, driver_notes.VERSION))
        (self.place / "daemonset-580.yaml").write_text(daemonset(drivers, NEWER))


@contextlib.contextmanager
def running(place: pathlib.Path):
    """The control plane, in a new network namespace, as long as the context lasts."""
    (place / "images").mkdir(parents=True)
    (place / "programs").symlink_to(programs())
    certs.make(place / "certs", config.ADDRESS, config.SERVICE_ADDRESS)
    config.write(place)
    for name, words in (("kubelet", config.kubelet(place, HOST)), ("containerd", config.containerd(place))):
        (place / f"{name}.sh").write_text(f"exec {shlex.join(map(str, words))}\n")
    LOGS.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        enter = new_network(stack)
        ready = [*enter, place / "programs/kubectl", f"--kubeconfig={place}/certs/admin.kubeconfig", "get", "--raw=/readyz"]
        parts = [start(stack, place, enter, name, words(place)) for name, words in SERVER.items()]
        wait_for("kube-apiserver is ready", lambda: subprocess.run(ready, capture_output=True, check=False).returncode == 0, 120, alive=tuple(parts))
        for name, words in CLIENTS.items():
            start(stack, place, enter, name, words(place))
        yield ControlPlane(place, enter)


def start(stack: contextlib.ExitStack, place: pathlib.Path, enter: list[str], name: str, words: list) -> Part:
    """One of the cluster's programs, or one of Debian's, in the namespace."""
    program = place / "programs" / name
    part = Part(name, [*enter, program if program.exists() else name, *words[1:]], LOGS)
    part.log.unlink(missing_ok=True)
    part.start()
    stack.callback(part.kill)
    return part


def programs() -> pathlib.Path:
    try:
        return build.programs()
    except build.Missing as why:
        sys.exit(f"tests/vm/run: {why}. Run: tools/setup vm")


def new_network(stack: contextlib.ExitStack) -> list[str]:
    """The words that run a command in a network namespace with these two addresses and no way out."""
    holder = stack.enter_context(subprocess.Popen(["unshare", "--net", "sh", "-c", NETWORK], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True))
    stack.callback(holder.kill)
    if holder.stdout.readline() != "ready\n":
        sys.exit("tests/vm/run: no network namespace could be made; a host with a control plane needs root")
    return ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]


def make_images(programs_of_ours: pathlib.Path, into: pathlib.Path) -> None:
    """The reader's names: the installer as deploy/driver/Dockerfile makes it, and a pause."""
    images.busybox(into / "pause")
    docker_archive(into / "pause", into / "pause.tar", (config.PAUSE, driver_notes.PAUSE), ["/bin/busybox", "sleep", "2147483647"])
    root = into / "installer"
    lane = types.SimpleNamespace(bin=programs_of_ours, run=lambda *words: subprocess.run(words, capture_output=True, text=True, check=True))
    bundle.fill(lane, root, ("gantry",))
    subprocess.run(["strip", root / "usr/bin/gantry"], check=True)
    (root / "usr/bin/nvidia-driver-installer").symlink_to("gantry")
    (root / "usr/bin/chroot").symlink_to("/bin/busybox")  # for the node's own programs
    (root / "entrypoint.sh").write_text(driver_notes.with_edits("entrypoint.sh"))
    (root / "entrypoint.sh").chmod(0o755)
    docker_archive(root, into / "installer.tar", (driver_notes.IMAGE,), ["/entrypoint.sh"])
    for name in ("pause", "installer"):
        shutil.rmtree(into / name)


def daemonset(drivers: pathlib.Path, version: str) -> str:
    """With the reader's edits and, in the manifest's own places, an archive and modules that are on the node: it reaches no server and has
    no compiler. Simulated modules have Gantry's own licence, so the flavour cannot be read from it."""
    archive = drivers / f"NVIDIA-Linux-x86_64-{version}.run"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    words = ["/entrypoint.sh", "--source=precompiled", f"--modules={drivers}/{version}", "--flavour=proprietary"]
    # The reader's version is the default of the reader's entrypoint.sh.
    asked = "" if version == driver_notes.VERSION else f'        - name: NVIDIA_DRIVER_VERSION\n          value: "{version}"\n'
    text = driver_notes.with_edits("daemonset.yaml")
    for ours, theirs in (
        ('        - name: NVIDIA_DRIVER_SHA256\n          value: ""\n',
         f'        - name: NVIDIA_DRIVER_SHA256\n          value: "{digest}"\n{asked}        - name: NVIDIA_DRIVER_DOWNLOAD_URL\n          value: file:///root{archive}\n'),
        ("        name: nvidia-driver-installer\n        imagePullPolicy", f"        name: nvidia-driver-installer\n        command: [{', '.join(words)}]\n        imagePullPolicy"),
    ):
        if text.count(ours) != 1:
            sys.exit(f"tests/vm/control_plane.py: deploy/driver/daemonset.yaml does not have once: {ours}")
        text = text.replace(ours, theirs)
    return text
