# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# vGPU by hand, in its three forms: mediated devices on VFs, mediated devices on the GPU, and the vendor's VFIO.
vfs=$devices/$a10/sriov_numvfs
uuid=83b8f4f2-509f-382f-3c1e-e6bfe0fa100
types() { echo "/sys/class/mdev_bus/$1/mdev_supported_types"; }
mdev_count() { find /sys/bus/mdev/devices -mindepth 1 -maxdepth 1 | wc -l; }

check "without the vGPU part there are no VFs" refuses "write error" put $vfs 8
check "the vGPU part can be loaded" modprobe nvidia-vgpu-vfio
check "8 VFs can be created" put $vfs 8
check_is "they are there" 8 "$(find $devices/$a10/ -name 'virtfn*' | wc -l)"
check_is "a VF names its card" $a10 "$(basename "$(readlink $devices/$vf/physfn)")"
check "a VF has an IOMMU group of its own" test "$(group_of $vf)" != "$(group_of $a10)"
check "the number of VFs cannot be changed to another" refuses "busy" put $vfs 4

check_is "a VF offers the card's types" "nvidia-590 nvidia-592 nvidia-594 nvidia-596" "$(cd "$(types $vf)" && echo *)"
check_is "a type has its name" "NVIDIA A10-8Q" "$(cat "$(types $vf)/nvidia-594/name")"
check "its description has the memory" grep -q 'framebuffer=8192M.*max_instance=3' "$(types $vf)/nvidia-594/description"
for i in 4 5 6; do
  check "an A10-8Q on VF $i" put "$(types 0000:11:00.$i)/nvidia-594/create" ${uuid}$i
done
check_is "the card has no memory left" 0 "$(cat "$(types 0000:11:00.7)/nvidia-594/available_instances")"
check "a fourth A10-8Q is refused" refuses "No space" put "$(types 0000:11:00.7)/nvidia-594/create" ${uuid}7
check "another size is refused" refuses "No space" put "$(types 0000:11:00.7)/nvidia-590/create" ${uuid}7
check "a wrong UUID is refused" refuses "Invalid" put "$(types 0000:11:00.7)/nvidia-594/create" 1
check "a UUID cannot be used twice" refuses "exists" put "$(types $vf)/nvidia-594/create" ${uuid}4
check "a vGPU has an IOMMU group and a node" test -c "/dev/vfio/$(basename "$(readlink /sys/bus/mdev/devices/${uuid}4/iommu_group)")"
check "a vGPU can be removed" put /sys/bus/mdev/devices/${uuid}6/remove 1
check "the VFs can be removed with vGPUs on them" put $vfs 0
check_is "no vGPU is left" 0 "$(mdev_count)"

check_is "a T4 has its vGPUs on itself" 7 "$(cat "$(types $t4)/nvidia-231/available_instances")"
check "a T4-4Q on the T4" put "$(types $t4)/nvidia-232/create" ${uuid}a
check "another one" put "$(types $t4)/nvidia-232/create" ${uuid}b
check_is "two vGPUs" 2 "$(mdev_count)"
check "unbinding the T4 removes them" put $drivers/nvidia/unbind $t4
check_is "no vGPU is left" 0 "$(mdev_count)"
check "the T4 goes back" give_back $t4

check "the driver can be loaded with the vendor's VFIO" load_driver vendor_vfio=1
check "and its vGPU part" modprobe nvidia-vgpu-vfio framework=vendor
check "8 VFs can be created" put $vfs 8
check_is "a VF stays with nvidia" nvidia "$(driver_of $vf)"
files=$devices/$vf/nvidia
check_is "it has no type at first" 0 "$(cat $files/current_vgpu_type)"
check "it offers the card's types" grep -qE '^592 +: NVIDIA A10-4Q$' $files/creatable_vgpu_types
check "an unknown type is refused" refuses "Invalid" put $files/current_vgpu_type 7
check "it can get a type" put $files/current_vgpu_type 592
check_is "it has the type" 592 "$(cat $files/current_vgpu_type)"
check "it cannot get another one" refuses "busy" put $files/current_vgpu_type 590
check_is "the next VF offers this size only" "ID : vGPU Name 592 : NVIDIA A10-4Q" \
  "$(tr -s ' \n' ' ' <$devices/0000:11:00.5/nvidia/creatable_vgpu_types | sed 's/ $//')"
check "a program uses the VF" "$parts/bin/vfio_group" $vf
check "the type can be taken away" put $files/current_vgpu_type 0
check "the VF's node is gone" test ! -e "/dev/vfio/$(group_of $vf)"
check "the VFs can be removed" put $vfs 0
check "the driver can be loaded as before" load_driver
