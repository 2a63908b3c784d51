# SPDX-License-Identifier: Apache-2.0
"""A root file system as a docker-archive, which podman, docker and containerd all load."""
import hashlib
import io
import json
import pathlib
import tarfile


def docker_archive(root: pathlib.Path, archive: pathlib.Path, names: tuple[str, ...], command: list[str],
                   env: tuple[str, ...] = ("PATH=/usr/bin:/bin",), entrypoint: list[str] | None = None) -> pathlib.Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        layer.add(root, arcname=".")
    layer_bytes = buffer.getvalue()
    digest = hashlib.sha256(layer_bytes).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Env": list(env), "Cmd": command, "Entrypoint": entrypoint},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": "a test"}],  # one for each layer, without which podman builds nothing on the image
    }).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": name, "RepoTags": list(names), "Layers": [f"{digest}/layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        for member, content in ((name, config), (f"{digest}/layer.tar", layer_bytes), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive
