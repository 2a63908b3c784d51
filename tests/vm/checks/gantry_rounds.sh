# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# bind, use and release many times (GANTRY_VM_ROUNDS), and nothing leaks: no kernel memory, no group, no descriptor, no process. Then
# release on a host on which vfio-pci has had every GPU from the start, so that nvidia.ko is not loaded.
rounds=${GANTRY_VM_ROUNDS:-5}
round() {
  gantry vfio bind $a10 && "$parts/bin/vfio_group" $a10 && gantry vfio release $a10
}
# kB of the kernel that do not come back; the file cache is dropped first
kernel_kb() {
  echo 3 >/proc/sys/vm/drop_caches
  awk '/^(SUnreclaim|KernelStack|PageTables):/ { sum += $2 } END { print sum }' /proc/meminfo
}
numbers() {
  echo "programs $(grep -ls . /proc/[0-9]*/cmdline | wc -l)"
  echo "open descriptors $(find /proc/[0-9]*/fd -type l 2>/dev/null | wc -l)"
  echo "groups $(find /sys/kernel/iommu_groups -maxdepth 1 | wc -l) nodes $(find /dev/vfio | wc -l)"
  echo "files of Gantry $(find /run/gantry /var/lib/gantry -type f 2>/dev/null | wc -l)"
  grep -E '^(vfio|nvidia)' /proc/modules | cut -d' ' -f1,3 | sort
}
# A process that has answered may need a moment to end: the numbers that stay for two seconds, after ten at the most.
settled_numbers() {
  local now before="" same=0 tries=0
  while [ $same -lt 4 ] && [ $tries -lt 20 ]; do
    now=$(numbers) same=$((same + 1)) tries=$((tries + 1))
    [ "$now" = "$before" ] || same=0
    before=$now
    sleep 0.5
  done
  echo "$now"
}
check "one round to load everything" round
before=$(functions_state)
first=$(settled_numbers)
kb=$(kernel_kb)
done_rounds=0
while [ $done_rounds -lt "$rounds" ] && round >/tmp/round 2>&1; do done_rounds=$((done_rounds + 1)); done
check_is "$rounds rounds of bind, DMA through the IOMMU, release" "$rounds" "$done_rounds"
[ $done_rounds -eq "$rounds" ] || cat /tmp/round
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
last=$(settled_numbers)
check_is "processes, descriptors, groups, nodes, files and reference counts are as before" "$first" "$last"
grown=$(($(kernel_kb) - kb))
check "the kernel keeps less than 2 MiB more ($grown kB)" test $grown -lt 2048

all_gpus=("$a10" "$twin" "$k620" "$t4" "$t4_twin")
unbind_all() {
  local gpu
  for gpu in "${all_gpus[@]}"; do put $drivers/nvidia/unbind "$gpu" || return; done
}
loaded_modules() { grep -E '^nvidia' /proc/modules | cut -d' ' -f1 | sort; }
loaded=$(loaded_modules)
check "no GPU has a driver" unbind_all
check "nvidia is not loaded" unload_driver
check "bind takes all GPUs" gantry vfio bind "${all_gpus[@]}"
check "status says that no driver had them before" says "$a10  vfio-pci, before no driver" gantry vfio status
check "release of one says nothing of a missing driver" eval '! gantry vfio release $a10 2>&1 | grep -F "has no driver"'
check_is "nvidia was loaded for it; the others are with vfio-pci" "nvidia vfio-pci" "$(driver_of $a10) $(driver_of $twin)"
check "release gives the others back" gantry vfio release "${all_gpus[@]:1}"
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
for module in $loaded; do modprobe "$module"; done
check "the GPUs can be opened" eval 'make_nodes && head -c0 /dev/nvidia0'
# Release loads what CUDA needs, too.
for module in $(comm -13 <(echo "$loaded") <(loaded_modules)); do rmmod "$module"; done
check_is "the modules are as before" "$loaded" "$(loaded_modules)"
