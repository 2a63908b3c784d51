# SPDX-License-Identifier: Apache-2.0
"""Images made by hand: busybox alone, and busybox with this machine's glibc and our programs."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from archive import docker_archive  # noqa: E402
from bundle import WORKLOADS, fill  # noqa: E402
from lane_support import Lane  # noqa: E402

PAUSE = "localhost/pause:1"
BUSYBOX = "docker.io/library/busybox:1.35"
# Names that people's manifests use. Here they all stand for our image.
CUDA = ("localhost/cuda:1", "k8s.gcr.io/cuda-vector-add:v0.1", "lxyustc.registrydomain.com:5000/cuda-vector-add:v0.1",
        "docker.io/nvidia/cuda:latest", "docker.io/kshatrix/gpu-example:cuda-10.2")

# As in NVIDIA's images: a runtime that goes by the environment gives the container every GPU.
NVIDIA = ("PATH=/usr/local/bin:/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
# Seeds 000 and 001: the Job's manifest gives arguments alone, the notebook's not even these.
TRAINER = ("localhost/mnist:1", "mcr.microsoft.com/azuredocs/samples-tf-mnist-demo:gpu", "docker.io/wbuchwalter/tf-mnist:gpu")
NOTEBOOK = ("localhost/notebook:1", "docker.io/library/tensorflow:latest-gpu-jupyter")


def busybox(root: pathlib.Path) -> None:
    for directory in ("bin", "tmp", "etc", "proc", "sys", "dev"):
        (root / directory).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", root / "bin/busybox")
    for name in ("sh", "sleep", "cat", "ls", "echo", "httpd", "nc", "wget", "env", "true", "false", "mkdir"):
        (root / "bin" / name).symlink_to("busybox")


def cuda(lane: Lane, root: pathlib.Path) -> None:
    fill(lane, root, WORKLOADS)
    probe = pathlib.Path(__file__).resolve().parent.parent / "e2e/share_probe.c"
    lane.run("cc", "-o", root / "usr/bin/share-probe", probe, "-ldl", check=True)
    for name in ("mkdir", "nc", "httpd", "wget", "date", "kill", "seq", "sort"):
        if not (root / "bin" / name).exists():
            (root / "bin" / name).symlink_to("busybox")
    for name, program in (("deviceQuery", "gantry-device-query"), ("vectorAdd", "gantry-vector-add")):
        (root / "usr/bin" / name).symlink_to(program)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nuser:x:1000:\n")
    lane.run("/sbin/ldconfig", "-r", root)


def make(lane: Lane, place: pathlib.Path) -> list[pathlib.Path]:
    """Makes archives of all images of the lane."""
    place.mkdir(parents=True, exist_ok=True)
    busybox(place / "busybox")
    cuda(lane, place / "cuda")
    made = [docker_archive(place / "busybox", place / "pause.tar", (PAUSE,), command=["/bin/busybox", "sleep", "2147483647"]),
            docker_archive(place / "busybox", place / "busybox.tar", (BUSYBOX,), command=["sh"]),
            docker_archive(place / "cuda", place / "cuda.tar", CUDA, command=["gantry-vector-add"], env=NVIDIA),
            docker_archive(place / "cuda", place / "mnist.tar", TRAINER, entrypoint=["gantry-trainer"], command=[], env=NVIDIA),
            docker_archive(place / "cuda", place / "notebook.tar", NOTEBOOK, command=["gantry-notebook"], env=NVIDIA)]
    for name in ("busybox", "cuda"):
        shutil.rmtree(place / name)
    return made
