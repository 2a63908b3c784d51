# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# kill -9 at every step of gantry vfio. Before each step it replaces its journal, and at the end it removes it: kill_at kills it at the
# Nth of these calls, for N = 1, 2, ... until it is through. In the short form (GANTRY_VM_ROUNDS below 50) only for every fourth N,
# because each takes seconds.
before=$(functions_state)

# killed_at N COMMAND...: succeeds if the command was killed, and fails if it ended before
killed_at() {
  local number=$1
  shift
  "$parts/bin/kill_at" "$number" "$@" >/tmp/killed 2>&1
  [ $? -eq 137 ]
}
all_bound() { is_bound $k620 vfio-pci && is_bound $audio vfio-pci; }
all_back() { same "$before" "$(functions_state)"; }
no_journal() { [ -z "$(find /run/gantry/vfio -name '*.journal')" ]; }

# recover_and_release: from whatever state the kill left
recover_and_release() {
  gantry vfio recover || return
  no_journal || { echo "a journal is left"; return 1; }
  all_bound || all_back || { echo "neither bound nor as before:"; functions_state; return 1; }
  gantry vfio release $k620 || return
  all_back
}
recover_and_bind() {
  gantry vfio recover || return
  no_journal || { echo "a journal is left"; return 1; }
  all_bound || all_back || { echo "neither bound nor as before:"; functions_state; return 1; }
  gantry vfio bind $k620 || return
  all_bound
}

stride=$((${GANTRY_VM_ROUNDS:-5} < 50 ? 4 : 1))
number=1
while killed_at $number gantry vfio bind $k620; do
  check "bind killed at step $number: recover, release" recover_and_release
  number=$((number + stride))
done
check "bind was killed at more than 8 steps, then it worked" test $number -gt 9
check "it is bound" all_bound
number=1
while killed_at $number gantry vfio release $k620; do
  check "release killed at step $number: recover, bind" recover_and_bind
  number=$((number + stride))
done
check "release was killed at $((number / stride)) steps or more, then it worked" test $number -gt 6
check "all drivers and overrides are as before" all_back

# killed in the middle, and again while it recovers
check "bind is killed at step 6" killed_at 6 gantry vfio bind $k620
check "bind is refused meanwhile" refuses "gantry vfio recover" gantry vfio bind $k620
check "another GPU is not" says "reserve $t4" gantry vfio plan $t4
number=1
while killed_at $number gantry vfio recover; do
  number=$((number + 1))
done
check "recover was killed at $((number - 1)) steps, then it worked" test $number -gt 1
check "nothing is unfinished" no_journal
gantry vfio release $k620 >/dev/null 2>&1
check "all drivers and overrides are as before" all_back
