# SPDX-License-Identifier: Apache-2.0
"""The edits that a reader of Google's installer makes to its files (seed 003), applied to ours in deploy/driver."""
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "deploy/driver"
VERSION = "460.56"
IMAGE = "lxyustc.registrydomain.com:5000/ubuntu-nvidia-install:20.04"
PAUSE = "lxyustc.registrydomain.com:5000/google_containers/pause:3.2"

# The reader's four edits: our line, and theirs.
EDITS = {
    "Dockerfile": (
        ("FROM debian:12\n", "FROM ubuntu:20.04\n"),
        ("RUN apt-get update && \\\n", "RUN  apt-get -o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false update && \\\n"),
    ),
    "entrypoint.sh": (
        ('NVIDIA_DRIVER_VERSION="${NVIDIA_DRIVER_VERSION:-580.159.04}"\n', 'NVIDIA_DRIVER_VERSION="${NVIDIA_DRIVER_VERSION:-460.56}"\n'),
        ('NVIDIA_DRIVER_DOWNLOAD_URL_DEFAULT="https://us.download.nvidia.com/tesla/${NVIDIA_DRIVER_VERSION}/NVIDIA-Linux-x86_64-${NVIDIA_DRIVER_VERSION}.run"\n',
         'NVIDIA_DRIVER_DOWNLOAD_URL_DEFAULT="https://us.download.nvidia.com/XFree86/Linux-x86_64/${NVIDIA_DRIVER_VERSION}/NVIDIA-Linux-x86_64-${NVIDIA_DRIVER_VERSION}.run"\n'),
    ),
    "daemonset.yaml": (
        ("- key: nvidia.com/gpu.present\n", "- key: gpu/nividia \n"),
        ('- image: "nvidia-driver-installer:latest"\n', f'- image: "{IMAGE}"\n'),
        ('- image: "registry.k8s.io/pause:3.9"\n', f'- image: "{PAUSE}"\n'),
    ),
}


def with_edits(name: str) -> str:
    text = (SOURCE / name).read_text()
    for ours, theirs in EDITS[name]:
        text = text.replace(ours, theirs)
    return text
