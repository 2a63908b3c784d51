# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Faults that the kernel driver can be told to have, and a card that is pulled out.
fault=/sys/module/nvidia/parameters
check "the A10 is free" put $drivers/nvidia/unbind $a10
check "binding can fail" put $fault/fail_probe 5
check "it does" refuses "write error" put $drivers/nvidia/bind $a10
check "binding can work again" put $fault/fail_probe 0
check "it does" put $drivers/nvidia/bind $a10

check "unbinding can take a second" put $fault/remove_ms 1000
before=$(date +%s%N)
check "unbinding works" put $drivers/nvidia/unbind $a10
check "it took a second" test $((($(date +%s%N) - before) / 1000000)) -ge 1000
check "it can be quick again" put $fault/remove_ms 0
check "the A10 is bound" put $drivers/nvidia/bind $a10

check "unbinding can stick" put $fault/stick_remove 1
put $drivers/nvidia/unbind $a10 &
writer=$!
check "it sticks in the kernel" within 20 grep -q '^State:.*D ' /proc/$writer/status
kill -9 $writer
sleep 0.3
check "kill -9 does not end it" grep -q '^State:.*D ' /proc/$writer/status
check "it can go on" put $fault/stick_remove 0
wait $writer 2>/dev/null
check "the A10 is free then" within 20 is_bound $a10 none
check "the A10 is bound again" put $drivers/nvidia/bind $a10

check "unbindLock can be had" load_driver unbind_lock=1
lock=/proc/driver/nvidia/gpus/$a10/unbindLock
check "a process holds the A10" hold_file /dev/nvidia0
put $lock 1
check_is "the lock stays open meanwhile" 0 "$(cat $lock)"
release_file
put $lock 1
check_is "it shuts afterwards" 1 "$(cat $lock)"
check "a locked GPU cannot be opened" refuses "busy" head -c0 /dev/nvidia0
check "the driver can be loaded as before" load_driver

ask_qemu device_del function12-00-0
check "a card that is pulled out leaves the driver" within 30 test ! -e $devices/$twin
check "its GPU is gone from /proc" test ! -e /proc/driver/nvidia/gpus/$twin
check "Gantry says that it is not there" refuses "$twin is not on the PCI bus" gantry vfio bind $twin
check "list names the other GPUs" says "$a10" gantry vfio list
