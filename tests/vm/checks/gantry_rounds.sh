# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# bind, use and release many times (GANTRY_VM_ROUNDS), and nothing leaks: no kernel memory, no group, no descriptor, no process.
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
  echo "groups $(find /sys/kernel/iommu_groups -maxdepth 1 | wc -l) nodes $(find /dev/vfio | wc -l)"
  echo "files of Gantry $(find /run/gantry /var/lib/gantry -type f 2>/dev/null | wc -l)"
  grep -E '^(vfio|nvidia)' /proc/modules | cut -d' ' -f1,3 | sort
}
check "one round to load everything" round
before=$(functions_state)
first=$(numbers)
kb=$(kernel_kb)
done_rounds=0
while [ $done_rounds -lt "$rounds" ] && round >/tmp/round 2>&1; do done_rounds=$((done_rounds + 1)); done
check_is "$rounds rounds of bind, DMA through the IOMMU, release" "$rounds" "$done_rounds"
[ $done_rounds -eq "$rounds" ] || cat /tmp/round
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
check_is "processes, groups, nodes, files and reference counts are as before" "$first" "$(numbers)"
grown=$(($(kernel_kb) - kb))
check "the kernel keeps less than 2 MiB more ($grown kB)" test $grown -lt 2048
