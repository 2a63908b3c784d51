# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The simulated nvidia.ko: files, reference counts, an unbind that waits for the last user.
tree=/tmp/described
check "the same description makes a tree of files" gantry sim create "$here/host.yaml" --root $tree --nodes table
for file in version params; do
  check "/proc/driver/nvidia/$file is the tree's" diff /proc/driver/nvidia/$file $tree/proc/driver/nvidia/$file
done
for address in $a10 $k620 $t4; do
  check "$address: information is the tree's, apart from the interrupt" diff \
    <(grep -v ^IRQ /proc/driver/nvidia/gpus/$address/information) <(grep -v ^IRQ $tree/proc/driver/nvidia/gpus/$address/information)
done
check_is "/sys/module/nvidia/version is the described one" 550.90.07 "$(cat /sys/module/nvidia/version)"
check_is "five GPUs are bound" 5 "$(find /proc/driver/nvidia/gpus -mindepth 1 -maxdepth 1 | wc -l)"
check "/proc/devices has major 195 twice" test "$(grep -cE '^195 nvidia(ctl)?$' /proc/devices)" = 2
check_is "gantry info finds the GPUs by their UUIDs" "$(sed -n 's/^ *uuid: //p' "$here/host.yaml" | sort)" \
  "$(gantry info --json 2>/dev/null | grep -oE 'GPU-[0-9a-f-]{36}' | sort -u)"

check "nvidia cannot be unloaded under nvidia-uvm" refuses "in use" rmmod nvidia
check "the modules can be unloaded in order" unload_driver
check "nvidia can be loaded again" load_driver
exec 5</dev/nvidiactl
check "an open nvidiactl holds the module" refuses "in use" rmmod nvidia
exec 5<&-

check "a process holds the A10" hold_file /dev/nvidia0
put $drivers/nvidia/unbind $a10 &
writer=$!
check "unbind under the process waits in the kernel" within 20 grep -q '^State:.*D ' /proc/$writer/status
check "the kernel says why" within 20 kernel_says "Attempting to remove device $a10 with non-zero usage count!"
check "the driver link is gone already" is_bound $a10 none
check "the GPU cannot be opened meanwhile" refuses "No such device" head -c0 /dev/nvidia0
check "the other A10 can" head -c0 /dev/nvidia1
check "the writer still waits" kill -0 $writer
release_file
check "unbind returns when the process goes" wait $writer
check "the GPU can be bound again" put $drivers/nvidia/bind $a10
check "it has its minor again" grep -qE 'Device Minor:\s+0$' /proc/driver/nvidia/gpus/$a10/information
