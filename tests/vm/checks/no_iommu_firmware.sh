# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A machine, not a guest as far as its processor says, whose firmware offers no IOMMU.
check "list says why" grep -qF "the firmware offers no IOMMU" <(gantry vfio list)
check "bind is refused" refuses "the firmware offers no IOMMU" gantry vfio bind $a10
check "the remedy is in the firmware" refuses "in the firmware setup, then reboot" gantry vfio bind $a10
check "doctor says that GPUs cannot be given to virtual machines" doctor_says iommu.off info "the IOMMU is off"
