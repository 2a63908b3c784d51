# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A machine with an IOMMU that does not remap interrupts.
check "list says why" grep -qF "does not remap interrupts" <(gantry vfio list)
check "bind is refused" refuses "does not remap interrupts" gantry vfio bind $a10
check "VFIO can be loaded by hand" modprobe vfio-pci
check "what would happen without the check: vfio-pci takes the card" to_vfio $a10
check "and VFIO refuses its user" refuses "Operation not permitted" "$parts/bin/vfio_group" $a10
check "the A10 goes back" give_back $a10
check "the unsafe way can be chosen" modprobe vfio_iommu_type1
put /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts Y
check "then plan warns" says "allow_unsafe_interrupts is set" gantry vfio plan $a10
check "bind works" gantry vfio bind $a10
check "a program uses the A10" "$parts/bin/vfio_group" $a10
check "release works" gantry vfio release $a10
