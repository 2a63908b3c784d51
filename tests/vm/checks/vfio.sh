# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Passthrough by hand: vfio-pci, IOMMU groups, and a program that uses the GPU as a virtual machine monitor does.
check "vfio-pci can be loaded" modprobe vfio-pci disable_idle_d3=1
for round in 1 2 3; do
  check "round $round: the A10 goes to vfio-pci" to_vfio $a10
  check "round $round: a program uses it: DMA both ways, a stopped DMA, MSI, reset" "$parts/bin/vfio_group" $a10
  check "round $round: it goes back to nvidia" give_back $a10
  check_is "round $round: nvidia has it" nvidia "$(driver_of $a10)"
done
check "the IOMMU reported the stopped DMA" kernel_says "DMAR: [DMA Write"
check "/dev/vfio has no group left" test ! -e "/dev/vfio/$(group_of $a10)"

# new_id takes every card of the type; driver_override takes one
check "the A10 is free" put $drivers/nvidia/unbind $a10
check "its twin is free" put $drivers/nvidia/unbind $twin
put $drivers/vfio-pci/new_id "10de 2236" 2>/dev/null
check_is "new_id takes the twin, too" "vfio-pci vfio-pci" "$(driver_of $a10) $(driver_of $twin)"
check "the id can be removed" put $drivers/vfio-pci/remove_id "10de 2236"
check "both go back" give_back $a10 $twin

# groups
not_viable() {
  "$parts/bin/vfio_group" "$1"
  [ $? -eq 3 ]
}
check "the K620 goes to vfio-pci" to_vfio $k620
put $drivers/nvidia/new_id "10de 0fbc" 2>/dev/null # the audio function: any driver that is not VFIO's will do
check_is "its audio function has another driver" nvidia "$(driver_of $audio)"
check "the group is not viable then" not_viable $k620
check "the id can be removed" put $drivers/nvidia/remove_id "10de 0fbc"
check "the audio function is free" put $drivers/nvidia/unbind $audio
check "a free neighbour is enough" "$parts/bin/vfio_group" $k620
check "the K620 goes back" give_back $k620
check "the K620 and its audio function go to vfio-pci" to_vfio $k620 $audio
check "a program uses the K620, which has no FLR" "$parts/bin/vfio_group" $k620
check "they go back" give_back $audio $k620
check_is "nvidia has the K620" nvidia "$(driver_of $k620)"

# a release under a program that uses the device
check "the A10 goes to vfio-pci" to_vfio $a10
check "a program holds it" hold_vfio vfio_group $a10
put $drivers/vfio-pci/unbind $a10 &
writer=$!
sleep 0.5
check "unbind under the program waits" kill -0 $writer
check "the program ends" release_vfio
check "unbind returns" wait $writer
check "the A10 goes back" give_back $a10
check_is "nvidia has it" nvidia "$(driver_of $a10)"
