# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Passthrough by /dev/vfio/devices and /dev/iommu, beside the groups.
check "vfio-pci can be loaded" modprobe vfio-pci disable_idle_d3=1
check "iommufd can be loaded" modprobe iommufd
check "there is /dev/iommu" test -c /dev/iommu
check "the A10 goes to vfio-pci" to_vfio $a10
node=/dev/vfio/devices/$(cd $devices/$a10/vfio-dev && echo vfio*)
check "it has a node of its own" test -c "$node"
check "a program uses it by that node" "$parts/bin/vfio_cdev" $a10
check "a program uses it by its group" "$parts/bin/vfio_group" $a10
check "a program holds it by its node" hold_vfio vfio_cdev $a10
check "its group cannot be used meanwhile" refuses "busy" "$parts/bin/vfio_group" $a10
check "the program ends" release_vfio
check "it goes back to nvidia" give_back $a10
check_is "nvidia has it" nvidia "$(driver_of $a10)"
check "the node is gone" test ! -e "$node"
