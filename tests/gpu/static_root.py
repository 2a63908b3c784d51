# SPDX-License-Identifier: Apache-2.0
"""gantry alone in a root that has nothing else, on a real driver: it starts there as fast as on the host, finds the GPUs in
/proc and /sys, writes a CDI specification of the host, and says why NVML was not queried."""
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile

ROUNDS = 60
SLOWER = 1.25  # a root does not change what a static program does; the rest is the machine's noise


def run(*argv) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, errors="replace", timeout=60)


def inside(root: pathlib.Path, *argv) -> subprocess.CompletedProcess:
    """gantry in that root, with the kernel's files, and the host's below /host, in a mount namespace that ends with it."""
    mounts = 'for name in proc sys dev; do mount --rbind /$name "$0/$name"; done && mount --rbind / "$0/host" && exec chroot "$0" /bin/gantry "$@"'
    for name in ("proc", "sys", "dev", "host"):
        (root / name).mkdir(exist_ok=True)
    return run("unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, root, *argv)


def take_turns(measure: pathlib.Path, commands: dict[str, list]) -> dict[str, list[float]]:
    """Wall milliseconds of each round; both commands start chroot first, so that they differ only in the root."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, argv in commands.items():
            wall, _, status = subprocess.run([measure, *argv], capture_output=True, text=True, check=True).stdout.split()
            if status != "0":
                raise RuntimeError(f"{name} ended with status {status}")
            times[name].append(float(wall) / 1000)
    return times


def facts(text: str) -> list[tuple]:
    return [(gpu["pci"], gpu["name"], gpu["uuid"]) for gpu in json.loads(text)["gpus"]]


def in_root(lane, root: pathlib.Path, program: pathlib.Path) -> None:
    listed = inside(root, "info", "--json")
    on_host = run(program, "info", "--json")
    lane.check("empty root: gantry info finds the GPUs that it finds on the host",
               facts(listed.stdout) == facts(on_host.stdout) != [], listed.stdout[:3000] + listed.stderr)
    said = inside(root, "info").stdout
    lane.check("empty root: it says that only /proc and /sys were read, and why", "/lib/gantry/gantry-nvml" in said and
               "only /proc and /sys were read" in said, said)
    generated = inside(root, "cdi", "generate", "--root", "/host")
    lane.check("empty root: gantry cdi generate --root /host knows libcuda and the GPU's node", generated.returncode == 0 and
               "NVIDIA_CTK_LIBCUDA_DIR=" in generated.stdout and "/dev/nvidia0" in generated.stdout, generated.stdout[:3000] + generated.stderr)
    (root / "lib/gantry").mkdir(parents=True)
    shutil.copy(program.parent.parent / "lib/gantry/gantry-nvml", root / "lib/gantry/gantry-nvml")
    said = inside(root, "info").stdout
    lane.check("no glibc: gantry-nvml is there, and one sentence says why it does not start", "gantry-nvml needs glibc" in said, said)


def static_root(lane, build: pathlib.Path, keep_text) -> None:
    program = build / "bin/gantry"
    with tempfile.TemporaryDirectory(prefix="gantry-static-") as work:
        root = pathlib.Path(work) / "root"
        (root / "bin").mkdir(parents=True)
        shutil.copy(program, root / "bin/gantry")
        version = run("chroot", root, "/bin/gantry", "--version")
        lane.check("empty root: gantry --version", version.returncode == 0 and version.stdout.startswith("gantry "), version.stdout + version.stderr)
        times = take_turns(build / "bin/measure", {"on the host": ["chroot", "/", program, "--version"],
                                                   "in an empty root": ["chroot", root, "/bin/gantry", "--version"]})
        rows = [f"chroot, then gantry --version, {ROUNDS} rounds in turn; gantry has {program.stat().st_size / 1e6:.1f} MB",
                *(f"{name:18} best {min(taken):.2f} ms, median {statistics.median(taken):.2f} ms" for name, taken in times.items())]
        keep_text("static-root.txt", "\n".join(rows) + "\n")
        print("\n".join(rows))
        best = {name: min(taken) for name, taken in times.items()}
        lane.check("empty root: gantry starts as fast as on the host", best["in an empty root"] <= SLOWER * best["on the host"], str(best))
        in_root(lane, root, program)
