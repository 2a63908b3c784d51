# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry driver on a Debian that has the kernel's headers and no driver: one command until a container computes, an upgrade under a
# program that computes and the way back, kill -9, removal without a trace. The modules of 460.56 are built here.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
ended_by_signal() { # PID of our child
  wait "$1" 2>/dev/null
  [ $? -eq 143 ]
}

check "the host has no driver" make_bare
machine_state >/tmp/state-before
check "the preflight finds nothing in the way" gantry driver preflight "${to_old[@]}"
check "it finds a K620 in the way of the open modules" refuses "Maxwell GPUs work only with the proprietary" gantry driver preflight --flavour open --run "$new"

before=$SECONDS
check "one command installs 460.56" gantry driver install "${to_old[@]}"
cp /tmp/output /tmp/installed
echo "          it took $((SECONDS - before)) s"
check "it ends with the table of nvidia-smi" grep -qE '^\| NVIDIA-SMI 460\.56 +Driver Version: 460\.56 +CUDA Version: 11\.2 ' /tmp/installed
check "the table has the K620" grep -qE '^\|   0  Quadro K620 ' /tmp/installed
check "460.56 is loaded, with both GPUs" has_driver 460.56
check "a container with both GPUs computes" says "Test PASSED" in_container gantry-vector-add
check "verify finds nothing wrong" gantry driver verify
check "status names the driver" says 460.56 gantry driver status
check_quick 1000 "the same again does nothing" says "nothing to do" gantry driver install "${to_old[@]}"

LD_LIBRARY_PATH=/usr/local/nvidia/lib64 gantry-trainer --max_steps 100000000 >/tmp/trainer 2>&1 &
trainer=$!
check "a program that computes holds a GPU" within 60 has_open $trainer /dev/nvidia0
check "an upgrade is refused, and names it" refuses "gantry-trainer" gantry driver upgrade "${to_new[@]}"
check_is "460.56 is still loaded" 460.56 "$(loaded_version)"
check "the program still runs" kill -0 $trainer
check "with --drain --terminate the upgrade works" gantry driver upgrade --drain --terminate --timeout 60 "${to_new[@]}"
check "the program was ended by it" ended_by_signal $trainer
check "580.159.04 is loaded, with both GPUs" has_driver 580.159.04
check "a container computes" says "Test PASSED" in_container gantry-vector-add
check "back to 460.56, without building it again" gantry driver upgrade "${to_old[@]}"
check "460.56 is loaded, with both GPUs" has_driver 460.56

# `make soak` gives more numbers; the unit tests end it at every effect (kill_test.cpp).
for number in $GANTRY_VM_KILLS; do
  if ! kill_upgrade_at "$number" "${to_new[@]}"; then break; fi
  check "an upgrade that was killed at call $number is finished by the same command" gantry driver upgrade "${to_new[@]}"
  check "580.159.04 is loaded, with both GPUs" has_driver 580.159.04
  check "verify finds nothing wrong" gantry driver verify
  check "back to 460.56" gantry driver upgrade "${to_old[@]}"
done

check "a process holds the T4" hold_file /dev/nvidia1
check "removal is refused, and names it" refuses "$holder" gantry driver remove
release_file
check "removal works" gantry driver remove
machine_state >/tmp/state-after
check "files, nodes, loader cache and modules are as before" diff /tmp/state-before /tmp/state-after
check "another removal finds nothing" refuses "no driver" gantry driver remove
