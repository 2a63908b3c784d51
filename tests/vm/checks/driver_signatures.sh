# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A kernel that enforces signatures: from here on until the host ends.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
check "the host has no driver" make_bare
machine_state >/tmp/state-before
file_state >/var/tmp/files-before # for driver_power_loss
check "signatures are enforced" put /sys/module/module/parameters/sig_enforce Y
check "an unsigned module is refused before anything changes" refuses "is not signed" gantry driver install "${to_new[@]}"
check "the kernel would refuse it, too" refuses "Key was rejected by service" insmod "$built/580.159.04/nvidia.ko"
check "against our advice it is refused by the kernel, and taken back" refuses "all is as it was before" \
  gantry driver install --ignore unsigned-module-refused "${to_new[@]}"
machine_state >/tmp/state-after
check "nothing was left" diff /tmp/state-before /tmp/state-after
check "a signed one is installed" gantry driver install "${to_new_signed[@]}"
check "580.159.04 is loaded, with both GPUs" has_driver 580.159.04
check "a container computes" says "Test PASSED" in_container gantry-vector-add
check "removal works" gantry driver remove
machine_state >/tmp/state-after
check "everything is as before" diff /tmp/state-before /tmp/state-after
# For the next boot, see driver_next_boot.
check "the signed one is installed again" gantry driver install "${to_new_signed[@]}"
