# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A virtual machine whose host gave it no IOMMU.
check "list says why" grep -qF "itself a virtual machine without an IOMMU" <(gantry vfio list)
check "bind is refused" refuses "itself a virtual machine without an IOMMU" gantry vfio bind $a10
check "the remedy is for its host" refuses "intel-iommu,intremap=on,caching-mode=on" gantry vfio bind $a10
check_is "nvidia has the A10" nvidia "$(driver_of $a10)"
check "doctor knows that this is a guest" doctor_says guest.kind "QEMU"
check "doctor does not ask for an IOMMU in a guest" doctor_says iommu.off "does not need an IOMMU"
