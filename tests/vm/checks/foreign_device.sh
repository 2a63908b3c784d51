# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A GPU whose IOMMU group also has a device of another slot: both are behind one conventional PCI bus, whose devices the IOMMU cannot
# tell apart.
gpu=0000:02:01.0
serial=0000:02:02.0
check_is "nvidia has the GPU" nvidia "$(driver_of $gpu)"
check_is "the host's driver has the serial port" serial "$(driver_of $serial)"
check_is "they share a group" "$(group_of $serial)" "$(group_of $gpu)"
check "plan names the serial port, its group and its driver" refuses \
  "IOMMU group $(group_of $gpu) also has $serial (device, driver serial)" gantry vfio plan $gpu
check "list names it" grep -qF $serial <(gantry vfio list | grep "^$gpu")
check "bind is refused, with its name" refuses "also has $serial (device, driver serial)" gantry vfio bind $gpu
check "and says what helps" refuses "a slot that separates devices (ACS)" gantry vfio bind $gpu
check_is "and changes nothing" "nvidia serial" "$(driver_of $gpu) $(driver_of $serial)"
check "VFIO can be loaded by hand" modprobe vfio-pci
check "what would happen without the check: vfio-pci takes the GPU" to_vfio $gpu
check "doctor says that the group is not viable" doctor_says iommu.group fail "not viable because of $serial (serial)"
check "and VFIO refuses its user" refuses "not viable" "$parts/bin/vfio_group" $gpu
check "the GPU goes back" give_back $gpu
check "the serial port loses its driver" put $drivers/serial/unbind $serial
check "bind works then" gantry vfio bind $gpu
check_is "vfio-pci has the GPU, nothing the serial port" "vfio-pci none" "$(driver_of $gpu) $(driver_of $serial)"
check "doctor agrees" doctor_says iommu.group ok "every group with a GPU for VMs is viable"
check "release works" gantry vfio release $gpu
check "the serial port goes back" put $drivers/serial/bind $serial
check_is "all drivers are as before" "nvidia serial" "$(driver_of $gpu) $(driver_of $serial)"
