# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The machine h200x8: eight GPUs, four NVSwitches, two NUMA nodes.
mapfile -t gpus < <(ls /proc/driver/nvidia/gpus)
before=$(functions_state)
of_class() { grep -lx "$1" "$devices"/*/class | wc -l; } # of_class CLASS: how many functions have it
info() { gantry info --no-nvml >/tmp/info && [ "$(grep -cE '^[0-7] .*NVIDIA H200' /tmp/info)" = 8 ]; }
check_is "nvidia has eight GPUs" 8 "${#gpus[@]}"
check "info lists them" info
check_is "there are eight GPUs on the bus" 8 "$(of_class 0x030200)"
check_is "and four NVSwitches" 4 "$(of_class 0x068000)"
check_is "four GPUs are on each NUMA node" "0 0 0 0 1 1 1 1" \
  "$(for gpu in "${gpus[@]}"; do cat "$devices/$gpu/numa_node"; done | sort -n | paste -sd ' ')"
check_is "each GPU has an IOMMU group of its own" 8 "$(for gpu in "${gpus[@]}"; do group_of "$gpu"; done | sort -u | wc -l)"
check_is "all of them can be passed through" 8 "$(gantry vfio list | grep -cE '^0000:.* nvidia +[0-9]+ .* yes$')"
check "bind takes one" gantry vfio bind "${gpus[3]}"
check_is "vfio-pci has it, nvidia the others" "7 nvidia 1 vfio-pci" \
  "$(for gpu in "${gpus[@]}"; do driver_of "$gpu"; done | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd ' ')"
check "a program uses it" "$parts/bin/vfio_group" "${gpus[3]}"
check "release gives it back" gantry vfio release "${gpus[3]}"
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
