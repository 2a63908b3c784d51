# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the files in checks/, which run in a virtual machine host as root. A check prints one line that begins with "ok" or "FAILED";
# tests/vm/run reads these lines from the serial console.
passed=0
failed=0
devices=/sys/bus/pci/devices
drivers=/sys/bus/pci/drivers

# The functions of tests/vm/host.yaml
a10=0000:11:00.0
twin=0000:12:00.0    # an equal card
k620=0000:41:00.0
audio=0000:41:00.1   # of the K620
t4=0000:44:00.0
t4_twin=0000:45:00.0 # behind the same switch
nvswitch=0000:01:00.0
vf=0000:11:00.4      # the first VF of the first A10

# check SENTENCE COMMAND...: the command must succeed
check() {
  local sentence=$1 status=0
  shift
  "$@" >/tmp/output 2>&1 || status=$? # in this shell, so that the command can wait for its children
  if [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
    echo "ok      $sentence"
  else
    failed=$((failed + 1))
    echo "FAILED  $sentence"
    { echo "\`$*\` exit status $status"; head -n 30 /tmp/output; } | sed 's/^/          /'
  fi
}

# check_is SENTENCE WANTED GIVEN
check_is() {
  check "$1" same "$2" "$3"
}
same() {
  [ "$1" = "$2" ] || { printf 'wanted: %s\ngiven:  %s\n' "$1" "$2"; return 1; }
}

# refuses TEXT COMMAND...: the command must fail and say TEXT
refuses() {
  local text=$1 output
  shift
  output=$("$@" 2>&1) && { echo "it did not fail: $output"; return 1; }
  grep -qF -- "$text" <<<"$output" || { echo "it failed with: $output"; return 1; }
}

# says TEXT COMMAND...: the command must succeed and say TEXT
says() {
  local text=$1 output
  shift
  output=$("$@" 2>&1) || { echo "it failed: $output"; return 1; }
  grep -qF -- "$text" <<<"$output" || { echo "it said: $output"; return 1; }
}

# within SECONDS COMMAND...: waits until the command succeeds
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}

put() { echo "$2" >"$1"; } # put FILE TEXT

driver_of() {
  local link
  link=$(readlink "$devices/$1/driver") && echo "${link##*/}" || echo none
}
group_of() {
  local link
  link=$(readlink "$devices/$1/iommu_group") && echo "${link##*/}" || echo none
}
is_bound() { [ "$(driver_of "$1")" = "$2" ]; }

# functions_state: driver and override of every NVIDIA function, to compare before and after
functions_state() {
  local device
  for device in "$devices"/*; do
    [ "$(cat "$device/vendor")" != 0x10de ] || echo "${device##*/} $(driver_of "${device##*/}") $(cat "$device/driver_override")"
  done
}

# to_vfio ADDRESS...: the override first, so that nothing else takes the function in between
to_vfio() {
  local address
  for address in "$@"; do
    put "$devices/$address/driver_override" vfio-pci || return
    if [ -e "$devices/$address/driver" ]; then put "$devices/$address/driver/unbind" "$address" || return; fi
    put $drivers/../drivers_probe "$address" || return
    is_bound "$address" vfio-pci || return
  done
}

# give_back ADDRESS...: to the driver that matches
give_back() {
  local address
  for address in "$@"; do
    [ ! -e "$devices/$address/driver" ] || put "$devices/$address/driver/unbind" "$address" || return
    put "$devices/$address/driver_override" "" || return
    put $drivers/../drivers_probe "$address" || return
  done
}

# load_driver [PARAMETER...]: nvidia.ko again, with these parameters
load_driver() {
  unload_driver && modprobe nvidia "$@" && make_nodes
}
unload_driver() {
  local module
  for module in nvidia_vgpu_vfio nvidia_modeset nvidia_uvm nvidia; do
    [ ! -d /sys/module/$module ] || rmmod $module || return
  done
}
make_nodes() {
  local file minor
  for file in /proc/driver/nvidia/gpus/*/information; do
    minor=$(sed -n 's/^Device Minor:[[:space:]]*//p' "$file")
    [ -e "/dev/nvidia$minor" ] || mknod "/dev/nvidia$minor" c 195 "$minor" || return
  done
  [ -e /dev/nvidiactl ] || mknod /dev/nvidiactl c 195 255
}

# In the background, a process that has FILE open until release_file.
hold_file() {
  (exec 7<"$1" && exec sleep 1000) &
  holder=$!
  within 20 has_open "$holder" "$1"
}
has_open() { readlink /proc/"$1"/fd/* 2>/dev/null | grep -qxF "$2"; }
release_file() {
  kill "$holder"
  wait "$holder" 2>/dev/null
  return 0
}

# hold_vfio PROGRAM ADDRESS, release_vfio: the same for a VFIO device
hold_vfio() {
  coproc HELD { "$parts/bin/$1" "$2" hold 2>&1; }
  local line
  while read -r -t 20 line <&"${HELD[0]}"; do
    [ "$line" != holding ] || return 0
  done
  return 1
}
release_vfio() {
  local writer=${HELD[1]} pid=$HELD_PID
  exec {writer}>&-
  wait "$pid"
}

# bind_and_release GPU: Gantry's, as a check that a GPU is all right again
bind_and_release() { gantry vfio bind "$1" && gantry vfio release "$1"; }

# hold_hidden FILE: as hold_file, but no /proc/PID/fd shows the open file
hold_hidden() {
  coproc HELD { "$parts/bin/hold_hidden" "$1" 2>&1; }
  local line
  read -r -t 20 line <&"${HELD[0]}" && [ "$line" = holding ]
}

# owner GPU: in the ownership ledger
owner() {
  gantry vfio list --json | python3 -c \
    'import json, sys; print(*[one["owner"] for one in json.load(sys.stdin)["gpus"] if one["address"] == sys.argv[1]])' "$1"
}

# all_vgpus: one line for each vGPU: its id, which is its UUID or its VF, and its type
all_vgpus() {
  gantry vgpu list --json | python3 -c 'import json, sys
for gpu in json.load(sys.stdin)["gpus"]:
    for one in gpu["vgpus"]:
        print(one["id"], one["type"])'
}

# doctor_says CHECK VERDICT TEXT: one check of gantry doctor has this verdict, and its sentence has this text
doctor_says() {
  local output
  output=$(gantry doctor --all --only "$1" --json 2>/tmp/doctor)
  python3 -c '
import json, sys
check = next(one for one in json.load(sys.stdin)["checks"] if one["id"] == sys.argv[1])
sys.exit(check["verdict"] != sys.argv[2] or sys.argv[3] not in check["summary"])' "$1" "$2" "$3" <<<"$output" || { echo "$output"; return 1; }
}

kernel_says() { dmesg | grep -qF -- "$1"; }

# ask_qemu COMMAND [ID]: tests/vm/run sees this line and tells QEMU's monitor
ask_qemu() { echo "gantry-request: $*"; }

# walk_page PAGE: runs the page's commands and compares what they print; each is a check
walk_page() {
  "$here/walk" "$@" >/tmp/walked 2>&1
  cat /tmp/walked
  passed=$((passed + $(grep -c '^ok      ' /tmp/walked)))
  failed=$((failed + $(grep -c '^FAILED  ' /tmp/walked)))
  check "the page was walked to its end" grep -q '^ok .*its own count is right' /tmp/walked
}
