# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Guests of this host, under KVM, that see the GPU: by passthrough, as a mediated device and as a VF.
guest=$parts/6.1
# qemu_monitor ARGUMENT...: what QEMU's monitor says of the PCI devices of a guest that is not started
qemu_monitor() {
  printf 'info pci\nquit\n' | timeout 60 qemu-system-x86_64 -machine q35 -accel kvm -cpu host -m 128 -display none -vga none -net none \
    -serial none -monitor stdio -S "$@" 2>&1
}
# run_guest ARGUMENT...: boots a guest that says which NVIDIA functions it sees
run_guest() {
  timeout 100 qemu-system-x86_64 -machine q35 -accel kvm -cpu host -m 256 -nographic -no-reboot -vga none -net none "$@" \
    -kernel "$guest/vmlinux" -initrd "$guest/initrd" -append "console=ttyS0 panic=-1 quiet gantry.nested" </dev/null 2>&1
}
sees() { grep -aqE -- "$1" <<<"$2" || { printf '%s\n' "$2" | tail -n 20; return 1; }; }

check "KVM can be loaded: QEMU emulates AMD's" modprobe kvm-amd
check "there is /dev/kvm" test -c /dev/kvm
check "vfio-pci can be loaded" modprobe vfio-pci disable_idle_d3=1
check "the K620 and its audio function go to vfio-pci" to_vfio $k620 $audio

output=$(run_guest -device vfio-pci,host=$k620)
check "a guest sees the K620" sees 'gantry-guest: 0x10de:0x13bb class 0x030000 magic 0x59524E47' "$output"
check "it writes the K620's registers" sees 'gantry-guest: scratch 0x600DF00D' "$output"

check "the vGPU part can be loaded" modprobe nvidia-vgpu-vfio
check "the A10 gets 2 VFs" put $devices/$a10/sriov_numvfs 2
uuid=83b8f4f2-509f-382f-3c1e-e6bfe0fa1004
check "an A10-4Q on a VF" put /sys/class/mdev_bus/$vf/mdev_supported_types/nvidia-592/create $uuid
output=$(qemu_monitor -device vfio-pci,host=$k620 -device vfio-pci,sysfsdev=/sys/bus/mdev/devices/$uuid)
check "a guest can have the K620 and the vGPU" sees 'PCI device 10de:13bb' "$output"
check "it sees the vGPU" sees 'PCI device 10de:2236' "$output"
check "they go back" give_back $audio $k620

check "the driver can be loaded with the vendor's VFIO" load_driver vendor_vfio=1
check "and its vGPU part" modprobe nvidia-vgpu-vfio framework=vendor
check "the A10 gets 2 VFs" put $devices/$a10/sriov_numvfs 2
check "a VF gets a type" put $devices/$vf/nvidia/current_vgpu_type 592
output=$(run_guest -device vfio-pci,host=$vf)
check "a guest sees the VF" sees 'gantry-guest: 0x10de:0x2236 class 0x030200 magic 0x59524E47' "$output"
check "the type can be taken away" put $devices/$vf/nvidia/current_vgpu_type 0
