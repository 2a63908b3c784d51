# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry gpu reset while an agent runs: the device counts its resets, and driver and owner are the same afterwards.
# resets GPU: how often the device was reset (GANTRY_GPU_RESETS of sim/pci/registers.h)
resets() {
  python3 -c 'import mmap, os, sys
with mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, prot=mmap.PROT_READ) as bar:
    print(int.from_bytes(bar[8:12], "little"))' "$devices/$1/resource0"
}
has_lines() { [ "$(grep -cF "$2" "$3")" = "$1" ]; } # has_lines NUMBER TEXT FILE

gantry agent --kubelet-socket= --output-file= >/tmp/agent 2>&1 &
agent=$!
check "an agent takes requests" within 30 test -S /run/gantry/owner.sock
first=$(resets $t4)
twin_first=$(resets $t4_twin)
check "the T4 counts its resets" test "$first" -gt 0
check "a process holds the T4" hold_file /dev/nvidia3
check "the reset is refused, with the process" refuses "process $holder (sleep" gantry gpu reset $t4
check_is "and does nothing" "$first nvidia" "$(resets $t4) $(driver_of $t4)"
gantry gpu reset --drain 60 $t4 >/tmp/drained 2>&1 &
waiting=$!
sleep 2
check "with --drain it waits" kill -0 $waiting
release_file
check "it is done when the process has gone" wait $waiting
check_is "the T4 was reset once" $((first + 1)) "$(resets $t4)"
check_is "its twin behind the same switch was not" "$twin_first" "$(resets $t4_twin)"
check_is "nvidia has it, for the kubelet" "nvidia plugin" "$(driver_of $t4) $(owner $t4)"
check "it can be opened" head -c0 /dev/nvidia3
check "the agent's log names the command" has_lines 1 "a command has a GPU" /tmp/agent
check "and that it has ended" grep -qE "a command has ended.*gantry gpu reset $t4" /tmp/agent

# a GPU of virtual machines: vfio-pci stays, and so does the owner
check "the T4 is bound for virtual machines" gantry vfio bind $t4
first=$(resets $t4)
check "it can be reset" says "$t4 was reset (flr)" gantry gpu reset $t4
check_is "it was, once" $((first + 1)) "$(resets $t4)"
check_is "vfio-pci has it, for virtual machines" "vfio-pci vm" "$(driver_of $t4) $(owner $t4)"
check "a virtual machine holds it" hold_vfio vfio_group $t4
first=$(resets $t4)
check "then the reset is refused, with the process" refuses "vfio_group" gantry gpu reset $t4
check_is "and does nothing" "$first vfio-pci" "$(resets $t4) $(driver_of $t4)"
check "the virtual machine ends" release_vfio
check "release works" gantry vfio release $t4
check_is "nvidia has it, for the kubelet" "nvidia plugin" "$(driver_of $t4) $(owner $t4)"
check "the agent is alive" kill -0 $agent
kill $agent
check "it ends when asked" wait $agent
