# SPDX-License-Identifier: Apache-2.0
"""Malicious images as the engines get them: one archive, whose images share a base layer and have one hostile layer each."""
import dataclasses
import hashlib
import io
import json
import pathlib
import tarfile

from hostile_images import UP

REPOSITORY = "docker.io/library/gantry-hostile"


@dataclasses.dataclass
class Image:
    name: str
    links: dict[str, str] = dataclasses.field(default_factory=dict)
    env: tuple[str, ...] = ()
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    volume: str = ""  # where the container has a volume
    refused: str = ""  # a piece of the error, if our runtime cannot start it

    @property
    def reference(self) -> str:
        return f"{REPOSITORY}:{self.name}"


def images(host: pathlib.Path) -> list[Image]:
    """`host` is what their author would like to reach."""
    out = {"usr/bin/nvidia-smi": str(host / "secret"), "usr/local": UP + str(host)[1:], "etc/ld.so.cache": str(host / "etc/ld.so.cache"),
           "etc/ld.so.conf.d": str(host / "etc/ld.so.conf.d"), "etc/ld.so.conf": str(host / "secret")}
    in_volume = "where nothing may be created"
    return [
        Image("links-out", out),
        Image("etc-out", {"etc": str(host / "etc")}),
        Image("libraries-out", {"usr/lib/x86_64-linux-gnu": str(host / "lib64"), "usr/local": f"/proc/1/root{host}"}),
        Image("etc-in-volume", {"etc": "/data"}, volume="/data"),
        Image("usr-local-in-volume", {"usr/local": "/data"}, volume="/data", refused=in_volume),
        Image("loop", {"usr/local/nvidia": "nvidia"}, refused="symbolic links"),
        Image("preload", env=("LD_PRELOAD=/proc/self/cwd/poc.so", "LD_LIBRARY_PATH=/proc/self/cwd", "NVIDIA_VISIBLE_DEVICES=all", "PATH=/usr/bin:/bin")),
        Image("labels", env=("NVIDIA_VISIBLE_DEVICES=all", "PATH=/usr/bin:/bin"),
              labels={"cdi.k8s.io/x": "nvidia.com/gpu=all", "com.nvidia.volumes.needed": "nvidia_driver", "nvidia.cdi.k8s.io/container.main": "all"}),
        Image("capabilities", env=("NVIDIA_DRIVER_CAPABILITIES=compute,\x1b[2J,\\..\\..", "PATH=/usr/bin:/bin"), refused="NVIDIA_DRIVER_CAPABILITIES"),
        Image("long", env=("NVIDIA_DRIVER_CAPABILITIES=" + "compute," * 8000 + "utility", "PATH=/usr/bin:/bin")),
        Image("volume-over-etc", volume="/etc"),
        Image("volume-over-usr-local", volume="/usr/local", refused=in_volume),
    ]


def link_layer(links: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for path, target in links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
            layer.addfile(entry)
    return buffer.getvalue()


def write_archive(base: pathlib.Path, archive: pathlib.Path, wanted: list[Image]) -> pathlib.Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        layer.add(base, arcname=".")
    files: dict[str, bytes] = {}
    manifest = []
    for image in wanted:
        layers = [buffer.getvalue()] + ([link_layer(image.links)] if image.links else [])
        digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
        for digest, layer in zip(digests, layers):
            files[f"{digest}/layer.tar"] = layer
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": list(image.env or ("PATH=/usr/bin:/bin",)), "Cmd": ["/bin/sh"],
                                                                              "Labels": image.labels},
                             "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        files[name] = config
        manifest.append({"Config": name, "RepoTags": [image.reference], "Layers": [f"{digest}/layer.tar" for digest in digests]})
    files["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(archive, "w") as tar:
        for member, content in files.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive


def write_annotated(base: pathlib.Path, archive: pathlib.Path, name: str, annotations: dict[str, str]) -> pathlib.Path:
    """An OCI archive whose manifest has annotations, which podman makes annotations of the container."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        layer.add(base, arcname=".")
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(kind: str, content: bytes) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        files[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}
    layer = blob("layer.v1.tar", buffer.getvalue())
    config = blob("config.v1+json", json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["/bin/sh"]},
                                               "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode())
    manifest = blob("manifest.v1+json", json.dumps({"schemaVersion": 2, "config": config, "layers": [layer], "annotations": annotations}).encode())
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    with tarfile.open(archive, "w") as tar:
        for member, content in files.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive
