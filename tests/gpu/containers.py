# SPDX-License-Identifier: Apache-2.0
"""Containers on a real GPU, with runc and crun and a root file system that were carried along: through our runtime, and
through the classic hook with the plain runtime. PyTorch runs in a root that is this machine's own, less its driver."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

MATMUL = """
import torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
b = torch.eye(4096, device="cuda", dtype=torch.bfloat16)
assert torch.equal(a @ b, a), "wrong product"
print("matmul on", torch.cuda.get_device_name(0), "right; libcuda from",
      [l.split()[-1] for l in open("/proc/self/maps") if "libcuda.so" in l][0])
"""


class Bundles:
    def __init__(self, build: pathlib.Path, work: pathlib.Path) -> None:
        self.build, self.work, self.count = build, work, 0
        self.engines = build / "engines"
        self.root = work / "root"
        with tarfile.open(build / "rootfs.tar") as tar:
            tar.extractall(self.root)
        for name in ("gantry-vector-add", "gantry-device-query", "gantry-trainer"):
            shutil.copy(build / "bin" / name, self.root / "usr/bin" / name)
        self.env = dict(os.environ, PATH=f"{self.engines}:{os.environ['PATH']}", LD_LIBRARY_PATH=str(self.engines / "lib"))

    def bundle(self, argv: list[str], env: list[str], root: pathlib.Path | None = None, hooks: dict | None = None) -> pathlib.Path:
        self.count += 1
        path = self.work / f"bundle{self.count}"
        path.mkdir()
        subprocess.run([self.engines / "runc", "spec"], cwd=path, check=True, env=self.env)
        spec = json.loads((path / "config.json").read_text())
        spec["process"].update(args=argv, terminal=False, env=["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root", *env])
        spec["process"].pop("rlimits", None)
        spec["root"] = {"path": str(root or self.root), "readonly": False}
        if hooks:
            spec["hooks"] = hooks
        (path / "config.json").write_text(json.dumps(spec))
        return path

    def run(self, runtime: str, bundle: pathlib.Path, name: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(runtime), "--root", str(self.work / "state"), "run", "--bundle", str(bundle), name], capture_output=True,
                              text=True, errors="replace", timeout=300, env=self.env)


def without_driver(work: pathlib.Path) -> pathlib.Path:
    """This machine's root as an image: an overlay in which the driver's own files are not there."""
    base = work / "overlay"
    base.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "gantry-test", base], check=True)
    for name in ("upper", "work", "root"):
        (base / name).mkdir()
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={base}/upper,workdir={base}/work", base / "root"], check=True)
    root = base / "root"
    shutil.rmtree(root / "usr/local/nvidia", ignore_errors=True)
    for place in ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/bin"):
        for pattern in ("libcuda.so*", "libnvidia-*.so*", "nvidia-smi"):
            for file in (root / place).glob(pattern):
                file.unlink()
    for conf in (root / "etc/ld.so.conf.d").glob("*nvidia*"):
        conf.unlink()
    subprocess.run(["chroot", root, "ldconfig"], check=False, capture_output=True)
    return root


def containers(lane, build: pathlib.Path, keep) -> None:
    if not (build / "rootfs.tar").exists():
        lane.skip("containers", "no root file system was carried along (make gpu-pack makes one)")
        return
    program = build / "bin"
    refreshed = keep("cdi-refresh.txt", subprocess.run([program / "gantry", "cdi", "refresh"], capture_output=True, text=True))
    lane.check("gantry cdi refresh", refreshed.returncode == 0, refreshed.stdout + refreshed.stderr)
    shown = subprocess.run(["cat", "/var/run/cdi/nvidia.yaml"], capture_output=True, text=True)
    keep("nvidia.yaml", shown)
    host = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    work = pathlib.Path(tempfile.mkdtemp(prefix="gantry-containers-"))
    bundles = Bundles(build, work)
    asked = ["NVIDIA_VISIBLE_DEVICES=all"]
    shim = program / "nvidia-container-runtime"

    def sees(what: str, ran: subprocess.CompletedProcess) -> None:
        lane.check(f"{what}: nvidia-smi -L as on the host", ran.returncode == 0 and ran.stdout == host, ran.stdout + ran.stderr)

    sees("our runtime", bundles.run(shim, bundles.bundle(["nvidia-smi", "-L"], asked), "shim1"))
    table = bundles.run(shim, bundles.bundle(["nvidia-smi"], asked), "shim2")
    keep("container-nvidia-smi.txt", table)
    lane.check("our runtime: nvidia-smi prints its table", table.returncode == 0 and "H200" in table.stdout, table.stdout + table.stderr)
    added = keep("container-vector-add.txt", bundles.run(shim, bundles.bundle(["gantry-vector-add"], asked), "shim3"))
    lane.check("our runtime: gantry-vector-add passes", "Test PASSED" in added.stdout, added.stdout + added.stderr)
    trained = keep("container-trainer.txt", bundles.run(shim, bundles.bundle(["gantry-trainer", "--max_steps", "500"], asked), "shim4"))
    lane.check("our runtime: gantry-trainer learns", trained.returncode == 0 and "Accuracy at step 500: 0.9" in trained.stdout,
               trained.stdout + trained.stderr)
    sees("CDI name nvidia.com/gpu=0", bundles.run(shim, bundles.bundle(["nvidia-smi", "-L"], ["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]), "cdi1"))
    none = bundles.run(shim, bundles.bundle(["/bin/ls", "/dev"], []), "none1")
    lane.check("nothing asked: no GPU", none.returncode == 0 and "nvidia" not in none.stdout, none.stdout + none.stderr)

    hook = {"prestart": [{"path": str(program / "nvidia-container-runtime-hook"), "args": ["nvidia-container-runtime-hook", "prestart"],
                          "env": ["PATH=/usr/bin:/bin"]}]}
    for runtime in ("runc", "crun"):
        engine = bundles.engines / runtime
        if not engine.exists():
            lane.skip(f"classic hook with {runtime}", "it was not carried along")
            continue
        sees(f"classic hook, plain {runtime}", bundles.run(engine, bundles.bundle(["nvidia-smi", "-L"], asked, hooks=hook), f"classic-{runtime}1"))
        added = bundles.run(engine, bundles.bundle(["gantry-vector-add"], asked, hooks=hook), f"classic-{runtime}2")
        lane.check(f"classic hook, plain {runtime}: gantry-vector-add passes", "Test PASSED" in added.stdout, added.stdout + added.stderr)

    bench = keep("bench-containers.txt", subprocess.run(
        [sys.executable, ROOT / "bench/containers", "--real", "--rounds", "40", "--bin", program], capture_output=True, text=True,
        env=dict(bundles.env, PATH=f"{bundles.root}/bin:{bundles.env['PATH']}")))
    print(bench.stdout)
    lane.check("the benchmark of containers runs", bench.returncode == 0, bench.stdout + bench.stderr)

    root = without_driver(work)
    torch = keep("container-pytorch.txt", bundles.run(shim, bundles.bundle([shutil.which("python3"), "-c", MATMUL], asked, root=root), "torch1"))
    lane.check("PyTorch matmul in a container, with our driver directory", torch.returncode == 0 and "/usr/local/nvidia" in torch.stdout,
               torch.stdout + torch.stderr[-1500:])
    explained = subprocess.run([program / "gantry", "explain", bundles.bundle(["nvidia-smi"], asked)], capture_output=True, text=True)
    keep("explain.txt", explained)
    lane.check("gantry explain", explained.returncode == 0, explained.stdout + explained.stderr)
    subprocess.run(["umount", "-l", work / "overlay/root", work / "overlay"], check=False)
    shutil.rmtree(work, ignore_errors=True)
