# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The host itself: is it the machine that the description says, with an IOMMU?
# first_register GPU: by which NVIDIA's driver tells the chips apart
first_register() {
  python3 -c 'import mmap, os, sys
with mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, prot=mmap.PROT_READ) as bar:
    print(bar[:4][::-1].hex())' "$devices/$1/resource0"
}
check "there is an IOMMU" test -e /sys/class/iommu/dmar0
check "interrupts are remapped" kernel_says "Enabled IRQ remapping"
for address in $a10 $twin $k620 $t4 $t4_twin $nvswitch; do
  check_is "$address is NVIDIA's" 0x10de "$(cat $devices/$address/vendor)"
done
check_is "the A10 has its class, ids and revision" "0x030200 0x2236 0x1482 0xa1" \
  "$(cd $devices/$a10 && echo "$(cat class) $(cat device) $(cat subsystem_device) $(cat revision)")"
check_is "the K620 is a VGA controller with an audio function" "0x030000 0x040300" "$(cat $devices/$k620/class) $(cat $devices/$audio/class)"
check_is "the A10s are on node 0, the T4s on node 1" "0 0 1 1" "$(cat $devices/{$a10,$twin,$t4,$t4_twin}/numa_node | paste -sd ' ')"
check "each A10 has an IOMMU group of its own" test "$(group_of $a10)" != "$(group_of $twin)"
check_is "the K620 and its audio function share a group" "$(group_of $k620)" "$(group_of $audio)"
check "each T4 has a group of its own, though they share a switch" test "$(group_of $t4)" != "$(group_of $t4_twin)"
check_is "the A10 can be reset" "flr bus" "$(cat $devices/$a10/reset_method)"
check_is "the A10 can have 8 VFs" "8 0 2236" "$(cd $devices/$a10 && echo "$(cat sriov_totalvfs) $(cat sriov_numvfs) $(cat sriov_vf_device)")"
check_is "each GPU has the number of its own chip" "172000a1 172000a1 117000a2 164000a1 164000a1" \
  "$(for address in $a10 $twin $k620 $t4 $t4_twin; do first_register $address; done | paste -sd ' ')"
