# SPDX-License-Identifier: Apache-2.0
"""A CRI-O for its lane: directories of its own, `gantry runtime configure` for it, and what its containers see."""
import contextlib
import os
import pathlib
import tempfile

from engine import IMAGE, Daemon, Lane, Machine, bind, uuids

from cri import Cri

HOOKS = pathlib.Path("/usr/share/containers/oci/hooks.d")
ETC = pathlib.Path("/etc/crio")
LIBEXEC = pathlib.Path("/usr/libexec/crio")
LIST = ["sh", "-c", "nvidia-smi -L; true"]  # without a GPU there is no such program
CHECKED = "Checked: crio config shows it"


def own_directories(lane: Lane) -> None:
    """CRI-O's configuration, its programs, its hooks and our journals: of this lane alone."""
    for name, target in (("etc", ETC), ("libexec", LIBEXEC), ("hooks", HOOKS), ("journals", pathlib.Path("/var/lib/gantry"))):
        bind(lane.work / name, target)


def tree(*directories: pathlib.Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for directory in directories for path in sorted(directory.rglob("*")) if path.is_file()}


def configure(lane: Lane, *argv):
    return lane.run(lane.bin / "gantry", "runtime", "configure", "--runtime=crio", *argv)


def settings(machine: Machine, environment: str = "granted", user: str = "") -> None:
    """config.toml: who may ask in a pod, and as whom the classic chain asks the driver."""
    config = machine.root / "etc/nvidia-container-runtime/config.toml"
    asked_as = f'[nvidia-container-cli]\nuser = "{user}"\n' if user else ""
    config.write_text(f'{asked_as}[gantry]\nroot = "{machine.root}"\nkubernetes-environment = "{environment}"\n')


class Crio:
    """A CRI-O with the configuration of /etc/crio."""

    def __init__(self, lane: Lane, machine: Machine) -> None:
        self.lane = lane
        self.socket = lane.work / "crio.sock"
        self.logs = pathlib.Path(tempfile.mkdtemp(prefix=f"pods-{machine.name}-", dir=lane.work))
        self.socket.unlink(missing_ok=True)
        self.daemon = Daemon(lane, "crio", ["crio"], self.socket, {"GANTRY_ROOT": str(machine.root)})
        self.cri = Cri(self.socket)
        self.version = self.cri.version()  # it listens before it watches the directories of hooks, and answers afterwards

    def run(self, argv: list[str], **asked) -> tuple[int, str]:
        """The exit status and output of a container; -1 and the engine's words if there is none."""
        try:
            return self.cri.run(IMAGE, argv, self.logs, **asked)
        except Exception as error:  # gRPC's own kind
            return -1, f"{error}\n{self.daemon.log.read_text()[-1000:]}"

    def sees(self, what: str, wanted: list[str], **asked) -> None:
        status, output = self.run(LIST, **asked)
        self.lane.check(what, status == 0 and uuids(output) == wanted, f"status {status}\n{output}\nwanted {wanted}")

    def __enter__(self) -> "Crio":
        return self

    def __exit__(self, *_) -> None:
        self.cri.channel.close()
        self.daemon.stop()


@contextlib.contextmanager
def configured(lane: Lane, machine: Machine, what: str, *flags):
    """CRI-O after `gantry runtime configure FLAGS`, which `crio config` confirms; afterwards --undo puts every byte back."""
    before = tree(ETC, HOOKS)
    done = configure(lane, *flags, "--runtime-path", lane.bin / "nvidia-container-runtime")
    lane.check(f"{what}: configured, and crio config shows it", done.returncode == 0 and CHECKED in done.stdout, done.stdout + done.stderr)
    with Crio(lane, machine) as crio:
        yield crio
    undone = configure(lane, "--undo")
    lane.check(f"{what}: --undo", undone.returncode == 0, undone.stdout + undone.stderr)
    lane.equal(f"{what}: after --undo /etc/crio and hooks.d are as they were, byte for byte", tree(ETC, HOOKS), before)
