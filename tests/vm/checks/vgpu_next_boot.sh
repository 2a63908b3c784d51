# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The start after vgpu_reboot.sh: the kernel has forgotten the vGPUs, and gantry-vgpu.service creates them again.
unit=$here/../../deploy/systemd/gantry-vgpu.service
command=$(sed -n 's/^ExecStart=//p' "$unit")
check "the vGPU part of the driver can be loaded" modprobe nvidia-vgpu-vfio
check_is "the kernel has no vGPUs" "" "$(all_vgpus)"
check_is "the A10 has no VFs" 0 "$(cat $devices/$a10/sriov_numvfs)"
check_is "the ledger still knows the owner" "vm vm" "$(owner $a10) $(owner $t4)"
check "doctor misses the vGPUs" doctor_says vgpu.restored warn "vGPUs that should exist do not"
sed "s#/usr/bin/gantry#$bin/gantry#" "$unit" >/tmp/gantry-vgpu.service
check "systemd understands the unit" systemd-analyze verify --man=no /tmp/gantry-vgpu.service
check "the unit starts: its condition is true" test -e "$(sed -n 's/^ConditionPathExists=//p' "$unit")"
check "the unit's command is gantry's" same /usr/bin/gantry "${command%% *}"
# shellcheck disable=SC2086 # the words of a command
check "it creates them" gantry ${command#* }
check "they are those of the last boot, with their UUIDs" diff /var/lib/gantry/vgpus-of-last-boot <(all_vgpus)
check "doctor is content" doctor_says vgpu.restored ok "the stored vGPUs exist"
check "all can be removed" gantry vgpu remove --all
check_is "the GPUs are the kubelet's again" "plugin plugin" "$(owner $a10) $(owner $t4)"
