# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# vGPUs before a reboot: vgpu_next_boot.sh is the next start of the same host.
check "the vGPU part of the driver can be loaded" modprobe nvidia-vgpu-vfio
check "the A10 gets two vGPUs" gantry vgpu create A10-4Q --gpu 0 --count 2
check "the T4 gets one" gantry vgpu create T4-4Q --gpu 3
check "they are stored" test -s /var/lib/gantry/vgpu/intent.json
all_vgpus >/var/lib/gantry/vgpus-of-last-boot
check_is "three are listed" 3 "$(wc -l </var/lib/gantry/vgpus-of-last-boot)"
check_is "their GPUs belong to virtual machines" "vm vm" "$(owner $a10) $(owner $t4)"
