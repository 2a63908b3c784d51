# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Guests of this host, under KVM, from the command lines of `gantry vm config --for qemu`: a whole GPU, a mediated device, a VF.
# The first one's memory is in huge pages of the GPU's node. EFI firmware is not here: QEMU 7.2, which runs this host, aborts when OVMF
# runs in a guest under the AMD-V that it emulates.
guest=$parts/6.1
small_guest=(--memory 256MiB --cpus 1 --firmware bios)

# run_guest GPU...: boots a guest that says which NVIDIA functions it sees; the kernel takes the place of the disk
run_guest() {
  gantry vm config --for qemu "${small_guest[@]}" "$@" >/tmp/start-guest || return
  sed -i "\$ s|\$| -no-reboot -kernel $guest/vmlinux -initrd $guest/initrd -append 'console=ttyS0 panic=-1 quiet gantry.nested'|" /tmp/start-guest
  timeout 150 sh /tmp/start-guest </dev/null 2>&1
}
sees() { grep -aqE -- "$1" <<<"$2" || { tail -n 25 <<<"$2"; return 1; }; }

check "KVM can be loaded: QEMU emulates AMD's" modprobe kvm-amd
check "there is /dev/kvm" test -c /dev/kvm

check "the K620 is bound with its audio function" gantry vfio bind $k620
pages=/sys/devices/system/node/node1/hugepages/hugepages-2048kB
put $pages/nr_hugepages 127
output=$(run_guest --hugepages 2M $k620)
check "a guest with too few huge pages on the GPU's node does not start" sees 'unable to map backing store for guest RAM|preallocating memory failed' "$output"
put $pages/nr_hugepages 128
check_is "there are 128 huge pages" 128 "$(cat $pages/free_hugepages)"
output=$(run_guest --hugepages 2M $k620)
put $pages/nr_hugepages 0
check "a guest sees the K620" sees 'gantry-guest: 0x10de:0x13bb class 0x030000 node 0 magic 0x59524E47' "$output"
check "and its audio function" sees 'gantry-guest: 0x10de:0x0fbc class 0x040300' "$output"
check "it writes the K620's registers" sees 'gantry-guest: scratch 0x600DF00D' "$output"
check "gantry vm check finds nothing missing" gantry vm check /tmp/start-guest
check "the K620 is released" gantry vfio release $k620
check_is "nvidia has it" nvidia "$(driver_of $k620)"

check "the vGPU part can be loaded" modprobe nvidia-vgpu-vfio
check "an A10-4Q can be created" gantry vgpu create A10-4Q --gpu 0
uuid=$(basename /sys/bus/mdev/devices/*)
output=$(run_guest "$uuid")
check "a guest sees the mediated device" sees 'gantry-guest: 0x10de:0x2236 class 0x030000 node 0 magic 0x59524E47' "$output"
check "the vGPU can be removed" gantry vgpu remove --all --gpu 0
check "the A10 is without VFs" put $devices/$a10/sriov_numvfs 0

check "the driver can be loaded with the vendor's VFIO" load_driver vendor_vfio=1
check "and its vGPU part" modprobe nvidia-vgpu-vfio framework=vendor
check "an A10-4Q can be created" gantry vgpu create A10-4Q --gpu 0
output=$(run_guest $vf)
check "a guest sees the VF" sees 'gantry-guest: 0x10de:0x2236 class 0x030200 node 0 magic 0x59524E47' "$output"
check "the vGPU can be removed" gantry vgpu remove --all --gpu 0
check "the A10 is without VFs" put $devices/$a10/sriov_numvfs 0
check "the driver can be loaded as before" load_driver
