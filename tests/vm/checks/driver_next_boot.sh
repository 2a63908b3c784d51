# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The boot after driver_signatures: 580.159.04 is installed and not loaded. Ends with a power loss in the middle of an upgrade.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
unit=/etc/systemd/system/multi-user.target.wants/gantry-driver.service
# What systemd, which does not run here, does for this unit.
start_unit() { sh -c "$(sed -n 's/^ExecStart=//p' $unit)"; }
at_end() {
  sleep 1 # until the console has everything
  echo b >/proc/sysrq-trigger
}

check_is "no driver is loaded" "" "$(loaded_version)"
check "status says so" refuses "sudo gantry driver load" gantry driver verify
check_quick 3000 "gantry-driver.service loads it" start_unit
check "580.159.04 is loaded, with both GPUs" has_driver 580.159.04
check "a container computes" says "Test PASSED" in_container gantry-vector-add
check_quick 1000 "the same installation does nothing" says "nothing to do" gantry driver install "${to_new_signed[@]}"
check "the power goes in the middle of an upgrade" kill_upgrade_at 10 "${to_old_built[@]}"
