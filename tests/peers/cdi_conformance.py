# SPDX-License-Identifier: Apache-2.0
"""CDI against NVIDIA's nvidia-ctk and the CDI library in it: each must read what the other wrote, list the same
devices, refuse the same files, and rewrite paths in the same way."""
import json
import pathlib

VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")

DEVICE = '  - name: "0"\n    containerEdits:\n      env: [A=b]\n'


def spec(version="1.1.0", kind="nvidia.com/gpu", devices=DEVICE, more="") -> str:
    return f"cdiVersion: {version}\nkind: {kind}\ndevices:\n{devices}{more}"


def edits(text: str) -> str:
    return f"  - name: a\n    containerEdits:\n      {text}\n"


# What a file must not say, and next to each what it may: both readers must agree on every one.
BAD = {
    "no version": "kind: nvidia.com/gpu\ndevices:\n" + DEVICE,
    "no such version": spec("0.9.0"),
    "a version before all": spec("0.2.0"),
    "a digit first, in 0.4": spec("0.4.0"),
    "groups, in 0.6": spec("0.6.0", devices=edits("additionalGids: [44]")),
    "a node's hostPath, in 0.4": spec("0.4.0", devices=edits("deviceNodes: [{path: /a, hostPath: /b}]")),
    "a mount's type, in 0.3": spec("0.3.0", devices=edits("mounts: [{hostPath: /a, containerPath: /b, type: bind}]")),
    "a dot in the class, in 0.5": spec("0.5.0", kind="nvidia.com/gpu.x"),
    "annotations, in 0.5": spec("0.5.0", more="annotations: {a: b}\n"),
    "net devices, in 1.0": spec("1.0.0", devices=edits("netDevices: [{hostInterfaceName: a, name: b}]")),
    "no kind": "cdiVersion: 0.5.0\ndevices:\n" + DEVICE,
    "a kind without class": spec(kind="nvidia.com"),
    "a vendor that starts with a digit": spec(kind="1a.com/gpu"),
    "a class that ends with a dash": spec(kind="nvidia.com/gpu-"),
    "no devices": "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n",
    "a device without edits": spec(devices='  - name: "0"\n    containerEdits: {}\n'),
    "a device twice": spec(devices=DEVICE + DEVICE),
    "a device without name": spec(devices="  - containerEdits:\n      env: [A=b]\n"),
    "a slash in a device name": spec(devices=DEVICE.replace('"0"', "a/b")),
    "an unknown key": spec(more="nonsense: 1\n"),
    "an unknown key in a mount": spec(devices=edits("mounts: [{hostPath: /a, containerPath: /b, x: y}]")),
    "a key twice": spec(more="kind: nvidia.com/gpu\n"),
    "an environment without =": spec(devices=edits("env: [A]")),
    "an environment without name": spec(devices=edits('env: ["=a"]')),
    "a node without path": spec(devices=edits("deviceNodes: [{type: c}]")),
    "a node of no type": spec(devices=edits("deviceNodes: [{path: /a, type: x}]")),
    "invalid permissions": spec(devices=edits("deviceNodes: [{path: /a, permissions: rx}]")),
    "a number as text": spec(devices=edits('deviceNodes: [{path: /a, major: "1"}]')),
    "a hook of no stage": spec(devices=edits("hooks: [{hookName: x, path: /a}]")),
    "a hook without path": spec(devices=edits("hooks: [{hookName: prestart}]")),
    "a mount without containerPath": spec(devices=edits("mounts: [{hostPath: /a}]")),
    "a list for a map": spec(more="containerEdits: []\n"),
    "a closID with a slash": spec(devices=edits("intelRdt: {closID: a/b}")),
    "not YAML": "a: [\n",
    "nothing": "",
}
GOOD = {
    "the least": spec("0.5.0"),
    "JSON": '{"cdiVersion": "0.3.0", "kind": "a.b/cc", "devices": [{"name": "d", "containerEdits": {"env": ["A="]}}]}',
    "everything": spec(more='annotations: {a: b}\n', kind="nvidia.com/gpu.x", devices=edits(
        "env: [A=b]\n      deviceNodes: [{path: /a, hostPath: /b, type: c, major: 1, minor: 0x2, fileMode: 0660, permissions: rw, uid: 0, gid: 4}]\n"
        "      netDevices: [{hostInterfaceName: a, name: b}]\n      hooks: [{hookName: createContainer, path: /h, args: [h], env: [A=b], timeout: 3}]\n"
        "      mounts: [{hostPath: /a, containerPath: /b, options: [ro], type: bind}]\n      intelRdt: {closID: x, schemata: [a], enableMonitoring: true}\n"
        "      additionalGids: [1, 2]")),
    "aliases": spec(devices='  - {name: a, containerEdits: &e {env: [A=b]}}\n  - {name: b, containerEdits: *e}\n'),
    "nulls": spec(more="containerEdits:\nannotations: null\n"),
}


def without_host_paths(value: dict, side: str) -> dict:
    """A node's hostPath that only repeats its path says nothing; on the container side nvidia-ctk loses it."""
    for edits in [value.get("containerEdits", {}), *(device["containerEdits"] for device in value.get("devices", []))]:
        for node in edits.get("deviceNodes", []):
            if side == "container" or node.get("hostPath") == node["path"]:
                node.pop("hostPath", None)
    return value


class Conformance:
    def __init__(self, lane, ctk: pathlib.Path) -> None:
        self.lane, self.ctk = lane, ctk
        self.gantry = lane.bin / "gantry"
        self.count = 0

    def directory(self, text: str, name: str = "x.yaml") -> pathlib.Path:
        self.count += 1
        directory = self.lane.work / f"cdi{self.count}"
        directory.mkdir()
        (directory / name).write_text(text)
        return directory

    def ours(self, directory) -> list[str]:
        return self.lane.run(self.gantry, "cdi", "list", "--spec-dir", directory).stdout.split()

    def theirs(self, directory) -> list[str]:
        return self.lane.run(self.ctk, "--quiet", "cdi", "list", f"--spec-dir={directory}").stdout.split()

    def both_list(self, what: str, text: str, name: str = "x.yaml") -> list[str]:
        directory = self.directory(text, name)
        listed = self.ours(directory)
        self.lane.check(what, bool(listed) and listed == self.theirs(directory),
                        self.lane.run(self.gantry, "cdi", "validate", directory / name).stderr + f"  ours: {listed}")
        return listed

    def same_refusals(self) -> None:
        for what, text in BAD.items():
            directory = self.directory(text)
            self.lane.equal(f"CDI: both refuse {what}", (self.ours(directory), self.theirs(directory)), ([], []))
        for what, text in GOOD.items():
            self.both_list(f"CDI: both read {what}", text)
        directory = self.directory(spec())
        (directory / "y.json").write_text(json.dumps({
            "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
            "devices": [{"name": n, "containerEdits": {"env": ["A=b"]}} for n in ("0", "1")]}))
        self.lane.equal("CDI: both drop a device that two files have", (self.ours(directory), self.theirs(directory)),
                        (["nvidia.com/gpu=1"],) * 2)

    def converted(self, machine: str, text: str) -> None:
        """What we make of their specification in each version, read by them."""
        source = self.directory(text) / "x.yaml"
        for version in VERSIONS:
            done = self.lane.run(self.gantry, "cdi", "transform", "version", "--target-version", version, "--input", source)
            if version < "0.5" and done.returncode == 1 and "on the host" in done.stderr:
                self.lane.check(f"CDI {version} of {machine}: a node at another place is not lost silently", done.stdout == "")
                continue
            self.both_list(f"CDI {version} of {machine}: nvidia-ctk lists what gantry wrote", done.stdout)

    def value(self, text: str) -> dict:
        """A specification as JSON, by our reader; permissions of Go's and our YAML differ in looks only."""
        output = self.directory(text) / "value.json"
        done = self.lane.run(self.gantry, "cdi", "transform", "version", "--target-version=1.1", "--input",
                             output.with_name("x.yaml"), "--output", output)
        return json.loads(output.read_text()) if done.returncode == 0 else {"error": done.stderr}

    def same_roots(self, machine: str, text: str, root: str) -> None:
        """Whole components only: nvidia-ctk 1.20 also takes /us for the beginning of /usr/bin, which we do not. And where
        it moves a node in the container, it forgets that the host has it at the old place; we keep that."""
        source = self.directory(text) / "x.yaml"
        for side, start in (("host", root), ("container", "/usr"), ("container", "/dev")):
            flags = ("cdi", "transform", "root", "--from", start, "--to", "/elsewhere", "--relative-to", side, "--input", source)
            made = [self.lane.run(program, *flags) for program in (self.gantry, self.ctk)]
            ours, theirs = (without_host_paths(self.value(run.stdout), side) for run in made)
            self.lane.equal(f"CDI of {machine}: {start} moved on the {side} side as nvidia-ctk moves it", ours, theirs)

    def generated(self, machine: str, root: pathlib.Path, names: set[str]) -> None:
        """What gantry writes for a machine, in each flavour and version, read by them."""
        for flavour in ("no-hooks", "one-hook"):
            for version in VERSIONS:
                done = self.lane.run(self.gantry, "cdi", "generate", "--root", root, "--engine-root", "/", "--flavour", flavour,
                                     "--target-version", version)
                what = f"CDI {version}, {flavour}, of {machine}: nvidia-ctk lists what gantry generated"
                if done.returncode != 0:
                    self.lane.check(what, False, done.stderr)
                    continue
                listed = self.both_list(what, done.stdout)
                if version >= "0.5":
                    self.lane.equal(f"{what}, all of it", set(listed), {f"nvidia.com/gpu={n}" for n in names})

    def can_generate(self) -> bool:
        return self.lane.run(self.gantry, "cdi", "generate", "--help").returncode == 0
