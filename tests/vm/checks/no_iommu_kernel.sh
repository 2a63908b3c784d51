# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A machine whose firmware offers an IOMMU that a parameter of the kernel switches off.
check "list says why" grep -qF "intel_iommu=off on the kernel's command line switches it off" <(gantry vfio list)
check "bind is refused" refuses "intel_iommu=off" gantry vfio bind $a10
check "the remedy is the parameter" refuses "remove intel_iommu=off from the kernel's command line" gantry vfio bind $a10
check "vfio-pci can be loaded all the same" modprobe vfio-pci
put $devices/$t4/driver_override vfio-pci
put $devices/$t4/driver/unbind $t4
put $drivers/vfio-pci/bind $t4 2>/dev/null
check_is "but it takes no card" none "$(driver_of $t4)"
put $devices/$t4/driver_override ""
check "the T4 goes back" put $drivers/nvidia/bind $t4
