# SPDX-License-Identifier: Apache-2.0
"""CRI-O, where it is installed: Debian 12 has no package of it. GANTRY_CRIO names the program; without it, the one in PATH is taken."""
import os
import pathlib
import shutil
import subprocess

POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}\n'
# Everything that CRI-O writes is below one directory. Images are put there by podman, which keeps them in the same form.
CONFIG = """[crio]
root = "{state}/storage"
runroot = "{state}/run"
storage_driver = "{driver}"
log_dir = "{state}/logs"
version_file = "{state}/version"
version_file_persist = "{state}/version-persist"
clean_shutdown_file = "{state}/clean.shutdown"
[crio.api]
listen = "{socket}"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
default_runtime = "runc"
apparmor_profile = "unconfined"
namespaces_dir = "{state}/ns"
container_exits_dir = "{state}/exits"
container_attach_socket_dir = "{state}/attach"
[crio.runtime.runtimes.runc]
runtime_root = "{state}/runc"
[crio.image]
pause_image = "{pause}"
pause_command = ""
signature_policy = "{state}/policy.json"
[crio.network]
network_dir = "{networks}"
plugin_dirs = ["/usr/lib/cni"]
[crio.nri]
enable_nri = false
"""
DRIVER = "vfs"  # works on every file system that a lane may be on


def missing() -> str:
    """Why CRI-O cannot be run here; "" if it can."""
    named = os.environ.get("GANTRY_CRIO", "")
    if named and not os.access(named, os.X_OK):
        return f"GANTRY_CRIO is {named}, which is not a program"
    if not named and shutil.which("crio") is None:
        return "crio is not installed, and GANTRY_CRIO names none"
    path = search_path()
    for program, package in (("pinns", "CRI-O's own"), ("conmon", "conmon"), ("runc", "runc"), ("podman", "podman")):
        if shutil.which(program, path=path) is None:
            return f"{program} is not installed (package {package})"
    return ""


def search_path() -> str:
    """PATH with the directory of the named program in front: gantry and CRI-O look for crio and pinns there."""
    named = os.environ.get("GANTRY_CRIO", "")
    return f"{pathlib.Path(named).resolve().parent}:{os.environ['PATH']}" if named else os.environ["PATH"]


def configuration(state: pathlib.Path, socket: pathlib.Path, pause: str, networks: pathlib.Path) -> str:
    state.mkdir(parents=True, exist_ok=True)
    (state / "policy.json").write_text(POLICY)
    return CONFIG.format(state=state, socket=socket, pause=pause, networks=networks, driver=DRIVER)


def load(state: pathlib.Path, archive: pathlib.Path) -> None:
    """Puts the images of an archive into CRI-O's storage. CRI-O itself gets images from registries only."""
    done = subprocess.run(["podman", "--root", state / "storage", "--runroot", state / "run", "--storage-driver", DRIVER, "--cgroup-manager", "cgroupfs",
                           "--events-backend", "file", "load", "-q", "-i", archive], capture_output=True, text=True, check=False, timeout=120,
                          env=dict(os.environ, TMPDIR=str(state)))
    if done.returncode != 0:
        raise RuntimeError(f"podman load {archive.name}: {done.stderr}")
