# SPDX-License-Identifier: Apache-2.0
"""Files for nvidia-mig-parted: configurations that it must refuse, and steps on machines that must end in the same layout."""

H200 = """version: v1
mig-configs:
  disabled:
    - {devices: all, mig-enabled: false}
  empty:
    - {devices: all, mig-enabled: true, mig-devices: {}}
  small:
    - {devices: all, mig-enabled: true, mig-devices: {1g.18gb: 7}}
  balanced:
    - devices: all
      mig-enabled: true
      mig-devices: {1g.18gb: 2, 2g.35gb: 1, 3g.71gb: 1}
  parts:
    - {devices: all, mig-enabled: true, mig-devices: {1c.3g.71gb: 3, 2c.4g.71gb: 2}}
  media:
    - {devices: all, mig-enabled: true, mig-devices: {1g.18gb+me: 1, 1g.18gb: 6}}
  too-many:
    - {devices: all, mig-enabled: true, mig-devices: {4g.71gb: 2}}
  of-another:
    - {devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2}}
  only-first:
    - {devices: [0], mig-enabled: true, mig-devices: {7g.141gb: 1}}
  filtered:
    - {device-filter: "0x233510DE", devices: all, mig-enabled: true, mig-devices: {1g.35gb: 4}}
  filtered-out:
    - {device-filter: ["0x20B010DE"], devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}
"""
A100 = """version: v1
mig-configs:
  disabled:
    - {devices: all, mig-enabled: false}
  small:
    - {devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}
  split:
    - {devices: [0, 1, 2, 3], mig-enabled: false}
    - {devices: [4, 5, 6, 7], mig-enabled: true, mig-devices: {3g.20gb: 2}}
  on-only:
    - {devices: [0, 1], mig-enabled: true, mig-devices: {}}
"""
T4 = """version: v1
mig-configs:
  disabled:
    - {devices: all, mig-enabled: false}
  all:
    - {devices: all, mig-enabled: true, mig-devices: {}}
  named:
    - {devices: [0], mig-enabled: true, mig-devices: {}}
"""
RTX = """version: v1
mig-configs:
  graphics:
    - {devices: all, mig-enabled: true, mig-devices: {1g.24gb+gfx: 2, 2g.48gb-me: 1}}
  media:
    - {devices: all, mig-enabled: true, mig-devices: {1g.24gb+me.all: 1, 1g.24gb-me: 3}}
  media-twice:
    - {devices: [0], mig-enabled: true, mig-devices: {1g.24gb+me: 2}}
"""
B200 = """version: v1
mig-configs:
  mixed:
    - {devices: all, mig-enabled: true, mig-devices: {1g.23gb+me: 1, 2g.45gb: 1, 4g.90gb: 1}}
"""
A30 = """version: v1
mig-configs:
  mixed:
    - {devices: all, mig-enabled: true, mig-devices: {1g.6gb: 2, 2g.12gb+me: 1}}
"""

# Machine, file, what is done first from outside (gantry sim inject), then the steps: each with the exit code of
# NVIDIA's program and the GPU and compute instances that it destroys.
STEPS = [
    ("h200", H200, [], [
        ("assert -c disabled", 0, 0, 0), ("apply -c small", 0, 0, 0), ("assert -c small", 0, 0, 0), ("assert -c balanced", 1, 0, 0),
        ("apply -c small", 0, 0, 0), ("apply -c balanced", 0, 7, 7), ("apply -c parts", 0, 4, 4), ("apply -c media", 0, 2, 5),
        ("apply -m -c disabled", 0, 7, 7), ("apply -c only-first", 0, 0, 0), ("assert -c only-first", 0, 0, 0)]),
    ("h200", H200, [], [
        ("apply -c empty", 0, 0, 0), ("apply -c too-many", 1, 1, 1), ("apply -c of-another", 0, 0, 0), ("apply -c filtered", 0, 0, 0),
        ("apply -c filtered-out", 0, 0, 0), ("apply -m -c small", 0, 0, 0), ("assert -m -c small", 0, 0, 0),
        ("assert -a -c nothing", 1, 0, 0)]),
    ("a100x8", A100, [], [
        ("assert -c split", 1, 0, 0), ("apply -c split", 0, 11, 11), ("apply -c split", 0, 0, 0), ("apply -c on-only", 0, 0, 0)]),
    ("t4x4", T4, [], [
        ("assert -c disabled", 0, 0, 0), ("apply -c disabled", 0, 0, 0), ("apply -c all", 0, 0, 0), ("assert -c all", 1, 0, 0),
        ("apply -c named", 1, 0, 0)]),
    ("rtxpro6000x2", RTX, [], [("apply -c graphics", 0, 0, 0), ("apply -c media", 0, 6, 6), ("apply -c media-twice", 1, 5, 5)]),
    ("b200x2", B200, [], [("apply", 0, 0, 0), ("assert", 0, 0, 0)]),
    ("a30x2", A30, [], [("apply", 0, 0, 0), ("assert", 0, 0, 0)]),
    # Somebody fails in the middle.
    ("h200", H200, ["fault nvmlDeviceCreateGpuInstance --call 3 --result 23"], [("apply -c small", 1, 2, 2), ("assert -c small", 1, 0, 0)]),
    ("h200", H200, ["fault nvmlGpuInstanceCreateComputeInstance --call 1 --result 19"], [("apply -c only-first", 1, 1, 0)]),
    ("h200", H200, ["fault mig --call 4 --then lose"], [("apply -c small", 1, 0, 0), ("export", 0, 0, 0)]),
    ("h200", H200, ["mig --gpu 0 7g.141gb", "fault nvmlComputeInstanceDestroy --result 19"], [("apply -c small", 1, 0, 0)]),
    ("h200", H200, ["mig --gpu 0 1g.18gb 1g.18gb", "fault mig --call 2 --then destroy"], [
        ("apply -c balanced", 0, 0, 1), ("assert -c balanced", 0, 0, 0)]),
    ("h200", H200, ["unload"], [("apply -c small", 2, 0, 0), ("export", 1, 0, 0), ("assert -c disabled", 2, 0, 0)]),
]

# Name -> content. Each is asserted with -a, which reads the file alone.
BAD_FILES = {
    "empty": "",
    "no-version": "mig-configs:\n  a:\n    - {devices: all, mig-enabled: false}\n",
    "other-version": "version: v2\nmig-configs: {}\n",
    "number-as-version": "version: 1\nmig-configs: {}\n",
    "no-configs": "version: v1\n",
    "empty-configs": "version: v1\nmig-configs: {}\n",
    "empty-config": "version: v1\nmig-configs:\n  a: []\n",
    "unknown-field": "version: v1\nmore: 1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: false}\n",
    "unknown-field-inside": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: false, color: red}\n",
    "no-devices": "version: v1\nmig-configs:\n  a:\n    - {mig-enabled: false}\n",
    "no-mode": "version: v1\nmig-configs:\n  a:\n    - {devices: all}\n",
    "text-as-mode": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: maybe}\n",
    "wrong-word-as-devices": "version: v1\nmig-configs:\n  a:\n    - {devices: some, mig-enabled: false}\n",
    "map-as-devices": "version: v1\nmig-configs:\n  a:\n    - {devices: {a: 1}, mig-enabled: false}\n",
    "text-in-devices": "version: v1\nmig-configs:\n  a:\n    - {devices: [a], mig-enabled: false}\n",
    "number-as-filter": "version: v1\nmig-configs:\n  a:\n    - {device-filter: 7, devices: all, mig-enabled: false}\n",
    "enabled-without-devices": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: true}\n",
    "disabled-with-devices": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: false, mig-devices: {1g.18gb: 1}}\n",
    "wrong-profile": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: true, mig-devices: {small: 1}}\n",
    "wrong-attribute": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: true, mig-devices: {1g.18gb+.x: 1}}\n",
    "more-compute-than-gpu": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: true, mig-devices: {3c.2g.35gb: 1}}\n",
    "negative-count": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: true, mig-devices: {1g.18gb: -1}}\n",
    "all-counts-zero": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: true, mig-devices: {1g.18gb: 0}}\n",
    "fraction-as-count": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: true, mig-devices: {1g.18gb: 1.5}}\n",
    "list-at-the-top": "- 1\n- 2\n",
    "not-yaml": "version: v1\n  mig-configs: [\n",
    "tab": "version: v1\nmig-configs:\n\ta: 1\n",
    "two-configs": "version: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: false}\n  b:\n    - {devices: all, mig-enabled: false}\n",
    "key-twice": "version: v1\nversion: v1\nmig-configs:\n  a:\n    - {devices: all, mig-enabled: false}\n",
}
BAD_CHECKPOINTS = {
    "empty": "",
    "not-json": "version: v1\n",
    "no-version": "{}",
    "other-version": '{"version":"v2"}',
    "unknown-gpu": '{"version":"v1","MigState":{"Devices":[{"UUID":"GPU-none","MigMode":1,"GpuInstances":null}]}}',
}
BAD_HOOKS = {
    "empty": "",
    "wrong-type": "version: v1\nhooks: 7\n",
    "no-such-program": "version: v1\nhooks:\n  apply-start:\n    - {workdir: /, command: /no/such, args: []}\n",
    "failing": "version: v1\nhooks:\n  apply-exit:\n    - {workdir: /, command: /no/such}\n",
}
# NVIDIA's program takes these for good.
ACCEPTED = {"file more-compute-than-gpu", "file key-twice", "checkpoint no-version", "checkpoint other-version"}
# With the exit code of NVIDIA's program.
CALLS = {"": 0, "--version": 0, "nonsense": 3, "apply": 1, "assert": 1, "checkpoint": 1, "restore": 1, "apply --bad": 1, "export -o xml": 1,
         "generate-config -o xml": 1, "export extra": 0, "apply -f /no/such/file": 1, "export -o json -l mine": 0, "-d export": 0, "export -h": 0,
         "help apply": 0}
