# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry vgpu in its three forms: mediated devices on VFs, mediated devices on the GPU, and the vendor's VFIO.
work=$(mktemp -d)

json() { gantry vgpu list --gpu "$gpu" --json; }
# values KEY: the values of one key, in order; our JSON has one member on a line
values() { sed -n "s/^ *\"$1\": *\"\\{0,1\\}\\([^\",]*\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p"; }
vgpus() { json | sed -n '/"vgpus"/,$p' | values "$1"; }
count() { vgpus id | grep -c .; }
change() { gantry vgpu "$@" -f "$work/vgpu.yaml"; }

write_sets() {
  cat >"$work/vgpu.yaml" <<END
version: v1
vgpu-configs:
  default: [{devices: all, vgpu-devices: {}}]
  small: [{devices: [$gpu], vgpu-devices: {$small: 3}}]
  large: [{devices: [$gpu], vgpu-devices: {$large: 1}}]
  mixed: [{devices: [$gpu], vgpu-devices: {$large: 1, $small: 1}}]
  wrong: [{devices: [$gpu], vgpu-devices: {$small: 1, NONE-1Q: 1}}]
END
}

# vgpu_create FRAMEWORK: one by one
vgpu_create() {
  local node
  if [ "$1" != mdev ]; then
    check_is "$1: VFs are off at first" vfs-off "$(json | values framework)"
    check "$1: VFs are enabled to learn the types" refuses "has no vGPU type NONE-1Q" gantry vgpu create NONE-1Q --gpu "$gpu"
    check_is "$1: every VF appeared" "$(json | values totalVfs)" "$(json | values enabledVfs)"
  fi
  check_is "$1: the framework is known" "$1" "$(json | values framework)"
  small=$(gantry vgpu types --gpu "$gpu" | awk 'NR == 2 { print $2 }')
  large=$(gantry vgpu types --gpu "$gpu" | awk 'NR == 3 { print $2 }')
  check "$1: there are two types" test -n "$small" -a -n "$large"
  check "$1: two can be created" gantry vgpu create "$small" --gpu "$gpu" --count 2
  check_is "$1: they are there" 2 "$(count)"
  node=$(vgpus node | head -n 1)
  check "$1: a VFIO node appeared" test -c "$node"
  check "$1: another size beside them is refused" refuses "one size" gantry vgpu create "$large" --gpu "$gpu"
  check "$1: more than fit are refused, with the number that fits" refuses "$([ "$1" = mdev ] && echo "at most" || echo "or fewer")" gantry vgpu create "$small" --gpu "$gpu" --count 1000
  check "$1: an unknown one is refused" refuses "there is no vGPU" gantry vgpu remove 00000000-0000-4000-8000-000000000000
  [ "$1" = vfio ] || check "$1: a wrong UUID is refused" refuses "is not a UUID" gantry vgpu create "$small" --gpu "$gpu" --uuid 1234
  check "$1: a process holds the first" hold_file "$node"
  check "$1: it is not removed, and the process is named" refuses "in use by process" gantry vgpu remove --all --gpu "$gpu"
  check_is "$1: and nothing else was" 2 "$(count)"
  release_file
}

# vgpu_apply FRAMEWORK: sets of a file
vgpu_apply() {
  local kept
  write_sets
  kept=$(vgpus id | head -n 1)
  check "$1: a set can be applied" change apply -c small
  check_is "$1: three exist" 3 "$(count)"
  check "$1: the first stayed" grep -qxF "$kept" <(vgpus id)
  check "$1: assert agrees" change assert -c small
  check "$1: assert of another set does not" refuses "not applied" change assert -c large
  check "$1: a set with an unknown type is refused" refuses "has no vGPU type" change apply -c wrong
  check_is "$1: and nothing was removed" 3 "$(count)"
  check "$1: another size replaces them" change apply -c large
  check_is "$1: one large one" "$large" "$(vgpus type)"
  check "$1: nvidia-vgpu-dm agrees" nvidia-vgpu-dm assert -f "$work/vgpu.yaml" -c large
  if [ "$1" = mdev ]; then
    check "$1: mixed sizes are refused on Turing" refuses "a Turing GPU has vGPUs of one size only" change apply -c mixed
    check_is "$1: and nothing was removed" "$large" "$(vgpus type)"
    return
  fi
  # Mixed sizes are switched on by nvidia-smi; here by a parameter of the simulated module.
  printf '#!/bin/sh\necho 1 >/sys/module/nvidia_vgpu_vfio/parameters/mixed\n' >"$work/nvidia-smi"
  chmod 755 "$work/nvidia-smi"
  check "$1: mixed sizes" env PATH="$work:$PATH" gantry vgpu apply -f "$work/vgpu.yaml" -c mixed
  check_is "$1: two sizes" "$(printf '%s\n' "$small" "$large" | sort)" "$(vgpus type | sort)"
  echo 0 >/sys/module/nvidia_vgpu_vfio/parameters/mixed
  check "$1: one size again" change apply -c large
}

# What a reboot does: the driver forgets.
vgpu_restore() {
  local device
  if [ "$1" = vfio ]; then
    put "$devices/$a10/sriov_numvfs" 0
  else
    for device in /sys/bus/mdev/devices/*; do put "$device/remove" 1; done
  fi
  check_is "$1: all are forgotten" 0 "$(count)"
  check "$1: apply --restore creates them" gantry vgpu apply --restore
  check_is "$1: the large one is back" "$large" "$(vgpus type)"
  check "$1: all can be removed" gantry vgpu remove --all
  check_is "$1: none is left" 0 "$(count)"
}

# kill -9 at every write of the state; the next change completes it
vgpu_kill() {
  local number=1 steps="rename,renameat,renameat2,unlink,unlinkat"
  while
    strace -o /dev/null -e "trace=$steps" -e "inject=$steps:signal=KILL:when=$number" \
      gantry vgpu apply -f "$work/vgpu.yaml" -c small >/tmp/killed 2>&1
    [ $? -eq 137 ]
  do
    check "$1: killed at write $number: restore completes it" gantry vgpu apply --restore
    check "$1: the other set can be applied" change apply -c large
    number=$((number + 1))
  done
  check "$1: apply was killed at $((number - 1)) writes, then it worked" test $number -gt 1
  check "$1: the large one again" change apply -c large
}

rm -rf /var/lib/gantry/vgpu
modprobe nvidia-vgpu-vfio
gpu=0
check "VFs can fail to appear" put /sys/module/nvidia/parameters/fail_sriov 5
check "create says so" refuses "enable 8 virtual functions of $a10" gantry vgpu create A10-4Q --gpu 0
check_is "and leaves none" 0 "$(cat $devices/$a10/sriov_numvfs)"
check "VFs can appear again" put /sys/module/nvidia/parameters/fail_sriov 0
vgpu_create mdev-vf
vgpu_apply mdev-vf
vgpu_kill mdev-vf
vgpu_restore mdev-vf
put $devices/$a10/sriov_numvfs 0
gpu=3
vgpu_create mdev
vgpu_apply mdev
vgpu_restore mdev

# One GPU that cannot be restored does not keep the other from it. What doctor says meanwhile.
forget_vgpus() {
  local device
  for device in /sys/bus/mdev/devices/*; do put "$device/remove" 1 || return; done
}
check "doctor names the GPU without vGPU types" doctor_says vgpu.types fail "no vGPU types on GPU 2 ($k620)"
mkdir -p /usr/share/nvidia/vgpu
check "the driver's list of types is there" put /usr/share/nvidia/vgpu/vgpuConfig.xml \
  '<vgpuconfig><pgpu><devId vendorId="0x10de" deviceId="0x2236"/></pgpu><pgpu><devId vendorId="0x10de" deviceId="0x1eb8"/></pgpu></vgpuconfig>'
check "doctor does not miss types on a model without them" doctor_says vgpu.types ok "every GPU that can have vGPUs"
rm /usr/share/nvidia/vgpu/vgpuConfig.xml
check "doctor misses the vGPU manager" doctor_says guest.vgpu-host fail "the vGPU manager does not run"
check "the A10 gets a vGPU" gantry vgpu create A10-4Q --gpu 0
check "the T4 gets one" gantry vgpu create T4-4Q --gpu 3
check "doctor finds both" doctor_says vgpu.restored ok "the stored vGPUs exist"
check "the kernel forgets them" forget_vgpus
check "doctor misses them" doctor_says vgpu.restored warn "vGPUs that should exist do not"
check "the A10 has no VFs" put $devices/$a10/sriov_numvfs 0
check "the A10 has no driver" put $drivers/nvidia/unbind $a10
check "restore says that the A10 was not restored" refuses "$a10 was not restored" gantry vgpu apply --restore
check_is "the T4 has its vGPU all the same" T4-4Q "$(gpu=3 vgpus type)"
check "the A10 has its driver again" put $drivers/nvidia/bind $a10
check "restore completes it" gantry vgpu apply --restore
check_is "the A10 has its vGPU" A10-4Q "$(gpu=0 vgpus type)"
check "a CDI file is there" install -D /dev/null /var/run/cdi/nvidia.yaml
check "doctor says that containers cannot compute here" doctor_says vgpu.host-driver fail "containers ask for GPUs, but"
rm /var/run/cdi/nvidia.yaml
check "the kernel forgets them" forget_vgpus
check "the A10 has no VFs" put $devices/$a10/sriov_numvfs 0
check "the plain driver is loaded" load_driver
check "doctor says that it has no vGPUs" doctor_says vgpu.plain-driver fail "is the plain driver"
rm -rf /var/lib/gantry/vgpu

check "the driver can be loaded with the vendor's VFIO" load_driver vendor_vfio=1
check "and its vGPU part" modprobe nvidia-vgpu-vfio framework=vendor
gpu=0
vgpu_create vfio
vgpu_apply vfio
vgpu_restore vfio
[ "$(cat $devices/$a10/sriov_numvfs)" = 0 ] || put $devices/$a10/sriov_numvfs 0
check "the driver can be loaded as before" load_driver
rm -rf "$work" /var/lib/gantry/vgpu
