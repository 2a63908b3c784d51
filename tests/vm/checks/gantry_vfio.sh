# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry vfio: a GPU goes to vfio-pci and comes back, and everything that may be in the way is named.
row() { gantry vfio list | grep "^$1"; }
enable_vfs() { modprobe nvidia-vgpu-vfio && put $devices/$a10/sriov_numvfs 2; }
disable_vfs() { put $devices/$a10/sriov_numvfs 0 && rmmod nvidia-vgpu-vfio; }
unbind_both() { put $drivers/nvidia/unbind $a10 && put $drivers/nvidia/unbind $twin; }
take_by_new_id() {
  modprobe vfio-pci
  put $drivers/vfio-pci/new_id "10de 2236"
  put $drivers/vfio-pci/remove_id "10de 2236" && is_bound $a10 vfio-pci && is_bound $twin vfio-pci
}
# nvidia refuses the card when it comes back
release_under_fault() {
  gantry vfio bind $t4 && put /sys/module/nvidia/parameters/fail_probe 5 && refuses "$t4" gantry vfio release $t4
}
repair_after_fault() {
  put /sys/module/nvidia/parameters/fail_probe 0
  gantry vfio recover
  gantry vfio release $t4
  is_bound $t4 nvidia
}
bind_by_override() { put $devices/$1/driver_override $2 && put $drivers/../drivers_probe $1 && is_bound $1 $2; }
before=$(functions_state)

check "list says that the A10 can be passed through" grep -qE ' nvidia +[0-9]+ .* yes$' <(row $a10)
check "list names the group's other function" grep -qF $audio <(row $k620)
check "list --json is JSON with five GPUs and an NVSwitch" python3 -c \
  'import json,sys; sys.exit(len(json.load(sys.stdin)["gpus"]) != 6)' < <(gantry vfio list --json)
check "plan shows the steps" says "reserve $a10 for vfio-pci" gantry vfio plan $a10
check "plan --explain says why new_id is not written" says new_id gantry vfio plan --explain $a10
check "bind --dry-run shows them too" says "would unbind $a10 from nvidia" gantry vfio bind --dry-run $a10
check_is "neither changes anything" "$before" "$(functions_state)"
check "status says that nothing is bound" says "bound no GPU" gantry vfio status

# bind, use, release
check "bind works" gantry vfio bind $a10
check_is "vfio-pci has the A10, nvidia its twin" "vfio-pci nvidia" "$(driver_of $a10) $(driver_of $twin)"
check_is "the override is the driver" vfio-pci "$(cat $devices/$a10/driver_override)"
check "there is a node for the group" test -c "/dev/vfio/$(group_of $a10)"
check "status names it" says "$a10 is bound for virtual machines" gantry vfio status
check "list says that it is bound" grep -qE ' bound$' <(row $a10)
check "binding it again does nothing" says "nothing to do" gantry vfio bind $a10
check "a program uses it: DMA both ways, a stopped DMA, MSI, reset" "$parts/bin/vfio_group" $a10
check "a program holds it" hold_vfio vfio_group $a10
check "list names the program" grep -qF "vfio_group" <(row $a10)
check "release is refused meanwhile, with the process" refuses "/vfio_group $a10" gantry vfio release $a10
check_is "and changes nothing" vfio-pci "$(driver_of $a10)"
check "the program ends" release_vfio
check "release works" gantry vfio release $a10
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
check_is "nothing is left in /run/gantry/vfio" "lock" "$(ls /run/gantry/vfio)"
check "the driver describes the A10 again" grep -q '^Device Minor:.*0$' /proc/driver/nvidia/gpus/$a10/information
check "the A10 can be opened again" head -c0 /dev/nvidia0
check "it is bound again" gantry vfio bind $a10
rm /dev/nvidia0
check "release says that the GPU has no device node" says "/dev/nvidia0 (195:0) is missing" gantry vfio release $a10
check "the node can be made again" make_nodes
check "the A10 can be opened again" head -c0 /dev/nvidia0

# all functions of a card; GPUs by index and UUID
check "bind takes the K620 with its audio function" gantry vfio bind $k620
check_is "both are with vfio-pci" "vfio-pci vfio-pci" "$(driver_of $k620) $(driver_of $audio)"
check "a program uses the K620" "$parts/bin/vfio_group" $k620
check "release gives both back" gantry vfio release $k620
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
check "bind takes two GPUs, by index and by UUID" gantry vfio bind 0 GPU-74000000-4a10-4c30-9b50-70c1d2e3f403
check_is "both are with vfio-pci" "vfio-pci vfio-pci" "$(driver_of $a10) $(driver_of $t4)"
check "release takes one of them" gantry vfio release $t4
check "and the other" gantry vfio release $a10
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
check "bind takes the NVSwitch with a GPU" gantry vfio bind --with-nvswitches $t4
check_is "both are with vfio-pci" "vfio-pci vfio-pci" "$(driver_of $t4) $(driver_of $nvswitch)"
check "release gives both back" gantry vfio release $t4 $nvswitch
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"

# a group of which a driver of the host has a function, as someone may leave it; foreign_device.sh has a device of another slot
check "a driver takes the K620's audio function" bind_by_override $audio nvidia
check "vfio-pci takes the K620 alone" to_vfio $k620
check "doctor says that the group is not viable" doctor_says iommu.group fail "not viable because of $audio (nvidia)"
check "plan takes it along" says "unbind $audio from nvidia" gantry vfio plan $k620
check "the K620 goes back" give_back $k620
check "the audio function has no driver" give_back $audio
check "doctor has nothing to say" doctor_says iommu.group skip "no NVIDIA function is bound to a vfio driver"
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"

# what may be in the way
check "a process holds the A10" hold_file /dev/nvidia0
check "bind is refused, with the process" refuses "process $holder (sleep" gantry vfio bind $a10
check_is "and changes nothing" "$before" "$(functions_state)"
gantry vfio bind --drain --timeout 60 $a10 >/tmp/drained 2>&1 &
waiting=$!
sleep 2
check "bind --drain waits" kill -0 $waiting
release_file
check "it binds when the process has gone" wait $waiting
check "release works" gantry vfio release $a10
(exec 8>/run/gantry/vfio/lock && flock 8 && exec sleep 1000) &
locker=$!
sleep 1
check "a second Gantry at work is named" refuses "another" gantry vfio bind $a10
kill $locker
wait $locker 2>/dev/null
check "the first A10 has VFs" enable_vfs
check "bind is refused while it has" refuses "virtual function" gantry vfio bind $a10
check "without them" disable_vfs
check "an address without a GPU is refused" refuses "0000:77:00.0" gantry vfio bind 0000:77:00.0
check "a bridge is refused" refuses "0000:10:00.0 is not an NVIDIA GPU but bridge" gantry vfio bind 0000:10:00.0
check "a failed bind to nvidia is told at release" release_under_fault
check "it is repaired by release or recover" repair_after_fault
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"

# a card that was bound by hand, with new_id, which took its twin
check "both A10 are free" unbind_both
check "new_id takes both" take_by_new_id
check "release gives back what Gantry did not bind" gantry vfio release $a10 $twin
check_is "nvidia has both" "nvidia nvidia" "$(driver_of $a10) $(driver_of $twin)"
check "the twin is free" put $drivers/nvidia/unbind $twin
check "bind takes the A10" gantry vfio bind $a10
check_is "and leaves its free twin alone" "vfio-pci none" "$(driver_of $a10) $(driver_of $twin)"
check "the twin goes back" put $drivers/nvidia/bind $twin
check "release works" gantry vfio release $a10
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
