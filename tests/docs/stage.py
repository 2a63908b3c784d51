# SPDX-License-Identifier: Apache-2.0
"""The stage of a walk-through: a simulated machine whose files are where engines look for them, in a separate mount namespace, with podman
and docker in separate directories. docs/walkthroughs/README.md describes it for readers."""
import os
import pathlib
import subprocess
import sys

from walking import run_script

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e/engines"))
from engine import IMAGE, Lane, bind, image_archive, needs_program, needs_root, own_mounts  # noqa: E402, F401

# What the machine has to say to engines and hooks, which look for it on the machine they run on.
SERVED = ("etc/cdi", "run/cdi", "etc/docker", "etc/containerd", "etc/nvidia-container-runtime", "usr/share/containers/oci/hooks.d")

# The images of the notes, by what they are: an image with CUDA's environment, and one that adds vectors.
CUDA_TAGS = ("docker.io/nvidia/cuda:latest", "lxyustc.registrydomain.com:5000/nvidia/cuda:latest")
ADD_TAGS = ("k8s.gcr.io/cuda-vector-add:v0.1", "lxyustc.registrydomain.com:5000/cuda-vector-add:v0.1")
CUDA_ENVIRONMENT = (
    "PATH=/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/bin:/bin", "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
    "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")

STAND_INS = {
    "sudo": 'exec "$@"\n',
    "nvidia-smi": 'exec gantry sim run --root "$GANTRY_ROOT" -- nvidia-smi "$@"\n',
    "lspci": '/usr/bin/lspci -O sysfs.path="$GANTRY_ROOT/sys/bus/pci" "$@" 2>/dev/null\n',
    "lsmod": """echo 'Module                  Size  Used by'
while read -r name size count users rest; do printf '%-20s %8s  %s %s\\n' "$name" "$size" "$count" "${users%[,-]}"; done < "$GANTRY_ROOT/proc/modules"
""",
    # The images of the notes, for the engine that is named.
    "stage-images": f"""set -eu
exec > "$STAGE/images.log"
"$1" load -q -i "$STAGE/image.tar"
for tag in {' '.join(CUDA_TAGS)}; do "$1" tag {IMAGE} "$tag"; done
id=$("$1" create {IMAGE})
for tag in {' '.join(ADD_TAGS)}; do "$1" commit --change 'CMD ["gantry-vector-add"]' "$id" "$tag" 2> /dev/null; done
"$1" rm "$id"
""",
    # No systemd here: docker alone can be restarted, without the option that needs systemd.
    "systemctl": """set -eu
[ "$*" = "restart docker" ] || { echo "systemctl $*: not on this stage" >&2; exit 1; }
ended() { case $(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null) in ''|Z) true ;; *) false ;; esac; }
if [ -s "$STAGE/docker.pid" ]; then
  pid=$(cat "$STAGE/docker.pid"); kill "$pid" || true
  for _ in $(seq 300); do ended "$pid" && break; sleep 0.1; done
  rm -f "$STAGE/docker.pid" "$STAGE/docker.sock"
fi
{ cat /etc/docker/daemon.json 2> /dev/null || echo '{}'; } | grep -v native.cgroupdriver=systemd > "$STAGE/daemon.json"
setsid dockerd --config-file "$STAGE/daemon.json" --data-root "$STAGE/docker" --exec-root "$STAGE/docker-exec" -H "$DOCKER_HOST" \\
  -p "$STAGE/docker.pid" --bridge none --iptables=false --ip6tables=false --ip-forward=false > "$STAGE/dockerd.log" 2>&1 < /dev/null &
for _ in $(seq 600); do docker version > /dev/null 2>&1 && break; sleep 0.1; done
docker version > /dev/null || { tail -n 20 "$STAGE/dockerd.log" >&2; exit 1; }
docker image inspect "$STAGE_IMAGE" > /dev/null 2>&1 || "$STAGE/bin/stage-images" docker
""",
}


class Stage:
    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.pages = 0
        self.desk = lane.work
        self.root: pathlib.Path | None = None
        self.bound: list[pathlib.Path] = []
        programs = lane.work / "bin"
        for directory in (programs, lane.work / "usr-bin"):
            directory.mkdir()
        self.environment = dict(
            os.environ, PATH=f"{programs}:{os.environ['PATH']}", HOME=str(lane.work), LC_ALL="C.UTF-8", STAGE=str(lane.work), STAGE_IMAGE=CUDA_TAGS[0],
            DOCKER_HOST=f"unix://{lane.work}/docker.sock", CONTAINERS_CONF=str(lane.work / "containers.conf"),
            CONTAINERS_STORAGE_CONF=str(lane.work / "storage.conf"))
        self.write_programs(programs)
        self.install()
        self.write_podman()
        image_archive(lane, CUDA_ENVIRONMENT)
        loaded = self.run("stage-images podman")
        if loaded.returncode != 0:
            raise RuntimeError(f"podman does not take the image:\n{loaded.stdout}")

    def write_programs(self, programs: pathlib.Path) -> None:
        for name, text in STAND_INS.items():
            (programs / name).write_text(f"#!/bin/bash\n{text}")
            (programs / name).chmod(0o755)

    def install(self) -> None:
        """Our programs in /usr/bin, where people's configuration names them."""
        for program in self.lane.bin.iterdir():
            (self.lane.work / "usr-bin" / program.name).symlink_to(program)
        subprocess.run(["mount", "-t", "overlay", "gantry-stage", "-o", f"ro,lowerdir={self.lane.work}/usr-bin:/usr/bin", "/usr/bin"], check=True)
        # Without a bridge docker needs no forwarding, but warns about it.
        (self.lane.work / "ip_forward").write_text("1\n")
        subprocess.run(["mount", "--bind", self.lane.work / "ip_forward", "/proc/sys/net/ipv4/ip_forward"], check=True)

    def write_podman(self) -> None:
        work = self.lane.work
        # A test machine's root may be without CAP_SYS_RESOURCE: podman's own limits would then be refused.
        (work / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\nnetns = "none"\n'
            f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\ntmp_dir = "{work}/podman-tmp"\n')
        # At podman's usual places, where `gantry explain` looks for a container's name.
        for kept, place in ((work / "podman", "/var/lib/containers/storage"), (work / "podman-run", "/run/containers/storage")):
            bind(kept, pathlib.Path(place))
        (work / "storage.conf").write_text('[storage]\ndriver = "overlay"\ngraphroot = "/var/lib/containers/storage"\nrunroot = "/run/containers/storage"\n')

    def turn_page(self, _page) -> None:
        """Pages do not depend on each other: each has new machines and an empty working directory."""
        self.pages += 1
        self.desk = self.lane.work / f"page-{self.pages}"
        self.desk.mkdir()

    def enter(self, machine: str) -> None:
        """From here on commands run on this machine."""
        self.leave()
        self.root = self.lane.work / f"{machine}-{self.pages}"
        if not self.root.exists():
            self.make(machine)
        self.environment["GANTRY_ROOT"] = str(self.root)
        for place in SERVED:
            bind(self.root / place, pathlib.Path("/") / place)
            self.bound.append(pathlib.Path("/") / place)

    def make(self, machine: str) -> None:
        self.lane.run(self.lane.bin / "gantry", "sim", "create", machine, "--root", self.root, "--nodes", "real", check=True)
        if not (self.root / "var/run").exists():
            (self.root / "var/run").symlink_to("../run")
        # The hooks' environment is not ours: they learn of the machine from its configuration alone.
        config = self.root / "etc/nvidia-container-runtime/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[gantry]\nroot = "{self.root}"\n')

    def run(self, script: str, seconds: int = 120) -> subprocess.CompletedProcess:
        return run_script(script, self.desk, self.environment, seconds)

    def plain(self, output: str) -> str:
        """The output without the directory of the simulated machine, which is / on a real one."""
        return output.replace(str(self.root), "") if self.root else output

    def leave(self) -> None:
        pid = self.lane.work / "docker.pid"
        if pid.exists():
            self.run('kill "$(cat "$STAGE/docker.pid")"; for _ in $(seq 200); do [ -e "$STAGE/docker.pid" ] || break; sleep 0.1; done')
        while self.bound:
            subprocess.run(["umount", self.bound.pop()], check=True)

    def end(self) -> None:
        self.leave()
        self.run("podman rm --all --force --time 0")
