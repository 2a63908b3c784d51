#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gantry vfio on a real kernel: run inside the virtual machine host, as root, with gantry in PATH and the driver nvidia
# (real or simulated) loaded. Prints "ok NAME" or "FAIL NAME reason" for each check; the last line counts them.
#
# The host needs two equal GPUs, the first with a sound function; GANTRY_VM_FOREIGN may name a GPU that shares its IOMMU
# group with a device of the host. GANTRY_VM_VFIO_TEST may name a program that opens a group and uses its device:
# it is called with the group's number and the PCI address.
# shellcheck disable=SC3043  # local: busybox and dash have it

PCI=/sys/bus/pci/devices
failed=0
passed=0

ok() {
  passed=$((passed + 1))
  echo "ok $1"
}
fail() {
  failed=$((failed + 1))
  echo "FAIL $1 $2"
}
# expect NAME FOUND WANTED
expect() {
  if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "found '$2', wanted '$3'"; fi
}
# expect_text NAME TEXT PART
expect_text() {
  case "$2" in
    *"$3"*) ok "$1" ;;
    *) fail "$1" "'$3' is not in: $(echo "$2" | tr '\n' ' ')" ;;
  esac
}

driver_of() {
  local link
  link=$(readlink "$PCI/$1/driver") || return 0
  echo "${link##*/}"
}
override_of() { cat "$PCI/$1/driver_override"; }
group_of() {
  local link
  link=$(readlink "$PCI/$1/iommu_group") || return 0
  echo "${link##*/}"
}
gpus() {
  local d
  for d in "$PCI"/*; do
    [ "$(cat "$d/vendor")" = 0x10de ] || continue
    case "$(cat "$d/class")" in
      0x0300* | 0x0302*) [ -e "$d/physfn" ] || echo "${d##*/}" ;;
    esac
  done
}
minor_of() {
  sed -n 's/^Device Minor:[[:space:]]*//p' "/proc/driver/nvidia/gpus/$1/information"
}
# hold NODE SECONDS: a process that has the node open; its pid is in $HOLDER.
hold() {
  (
    exec 3<>"$1"
    exec sleep "$2"
  ) &
  HOLDER=$!
  sleep 1
}
let_go() {
  kill "$HOLDER" 2>/dev/null
  wait "$HOLDER" 2>/dev/null
}
# The state of all NVIDIA functions, to compare before and after.
snapshot() {
  local d
  for d in "$PCI"/*; do
    [ "$(cat "$d/vendor")" = 0x10de ] && echo "${d##*/} $(driver_of "${d##*/}") $(override_of "${d##*/}")"
  done
}

# shellcheck disable=SC2046  # one word for each GPU
set -- $(gpus)
GPU=$1
TWIN=$2
SOUND="${GPU%.*}.1"

check_list() {
  local text
  text=$(gantry vfio list 2>&1)
  expect_text list-names-the-gpu "$text" "$GPU"
  expect_text list-says-yes "$(echo "$text" | grep "^$GPU")" yes
}

check_bind_and_release() {
  local before text
  before=$(snapshot)
  text=$(gantry vfio bind "$GPU" 2>&1)
  expect bind-status "$?" 0
  expect bind-gpu "$(driver_of "$GPU")" vfio-pci
  [ -e "$PCI/$SOUND" ] && expect bind-sound "$(driver_of "$SOUND")" vfio-pci
  expect bind-leaves-the-twin "$(driver_of "$TWIN")" nvidia
  if [ -c "/dev/vfio/$(group_of "$GPU")" ]; then ok bind-node; else fail bind-node "$text"; fi
  expect bind-override "$(override_of "$GPU")" vfio-pci
  if [ -n "$GANTRY_VM_VFIO_TEST" ]; then
    text=$("$GANTRY_VM_VFIO_TEST" "$(group_of "$GPU")" "$GPU" 2>&1)
    expect use-through-the-iommu "$?" 0
  fi
  gantry vfio release "$GPU" >/dev/null 2>&1
  expect release-status "$?" 0
  expect release-leaves-no-trace "$(snapshot)" "$before"
  expect release-empties-run "$(ls /run/gantry/vfio)" lock
}

check_held_group() {
  local group text
  gantry vfio bind "$GPU" >/dev/null 2>&1
  group=$(group_of "$GPU")
  hold "/dev/vfio/$group" 60
  text=$(gantry vfio release "$GPU" 2>&1)
  expect_text release-refuses-a-running-machine "$text" "pid $HOLDER"
  expect release-refused-changes-nothing "$(driver_of "$GPU")" vfio-pci
  let_go
  gantry vfio release "$GPU" >/dev/null 2>&1
  expect release-after-the-machine "$(driver_of "$GPU")" nvidia
}

check_busy() {
  local text node
  node="/dev/nvidia$(minor_of "$GPU")"
  hold "$node" 60
  text=$(gantry vfio bind "$GPU" 2>&1)
  expect busy-status "$?" 1
  expect_text busy-names-the-process "$text" "pid $HOLDER"
  expect busy-changes-nothing "$(driver_of "$GPU")" nvidia
  (
    sleep 3
    kill "$HOLDER"
  ) &
  gantry vfio bind "$GPU" --drain --timeout 30 >/dev/null 2>&1
  expect drain-waits "$?" 0
  let_go
  gantry vfio release "$GPU" >/dev/null 2>&1
}

check_kill() {
  # The journal says how far a killed bind came; recover finishes it or takes it back.
  local before delay text state bad=""
  before=$(snapshot)
  for delay in 0.05 0.1 0.2 0.4 0.8; do
    gantry vfio bind "$GPU" >/dev/null 2>&1 &
    local child=$!
    sleep "$delay"
    kill -9 "$child" 2>/dev/null
    wait "$child" 2>/dev/null
    text=$(gantry vfio recover 2>&1) || bad="$bad $delay: $text"
    state=$(driver_of "$GPU")
    [ "$state" = vfio-pci ] || [ "$(snapshot)" = "$before" ] || bad="$bad after $delay: $(snapshot)"
    gantry vfio release "$GPU" >/dev/null 2>&1
    [ "$(snapshot)" = "$before" ] || bad="$bad not released after $delay"
  done
  expect kill-and-recover "$bad" ""
}

check_second_gantry() {
  local text
  mkdir -p /run/gantry/vfio
  flock /run/gantry/vfio/lock sleep 5 &
  local holder=$!
  sleep 1
  text=$(gantry vfio bind "$GPU" 2>&1)
  expect_text second-gantry-is-refused "$text" "another Gantry"
  wait "$holder"
}

# Needs a driver whose remove waits for an open descriptor, as NVIDIA's does; the simulated one does.
check_stuck() {
  local text node start end
  node="/dev/nvidia$(minor_of "$GPU")"
  # The holder comes after the check: it waits for the override, which is written before the unbind.
  (
    while ! grep -q vfio-pci "$PCI/$GPU/driver_override"; do :; done
    exec 3<"$node"
    exec sleep 50
  ) &
  HOLDER=$!
  start=$(date +%s)
  text=$(gantry vfio bind "$GPU" 2>&1)
  end=$(date +%s)
  case "$text" in
    *"stuck in the kernel"*)
      ok stuck-is-told
      if [ $((end - start)) -lt 45 ]; then ok stuck-keeps-its-deadline; else fail stuck-keeps-its-deadline "$((end - start)) s"; fi
      expect_text stuck-refuses-the-next "$(gantry vfio bind "$GPU" 2>&1)" stuck
      expect_text stuck-status "$(gantry vfio status 2>&1)" stuck
      let_go
      sleep 2
      gantry vfio recover >/dev/null 2>&1
      expect stuck-comes-back "$(driver_of "$GPU")" nvidia
      ;;
    *)
      # The holder was too late, so this run shows nothing.
      let_go
      gantry vfio release "$GPU" >/dev/null 2>&1
      echo "skip stuck: the holder did not open the node in time"
      ;;
  esac
}

check_foreign() {
  [ -n "$GANTRY_VM_FOREIGN" ] || return 0
  expect_text foreign-device-is-named "$(gantry vfio plan "$GANTRY_VM_FOREIGN" 2>&1)" "IOMMU group"
  gantry vfio bind "$GANTRY_VM_FOREIGN" >/dev/null 2>&1
  expect foreign-device-refused "$?" 1
}

# What the notes do: the second card of the type goes too when it has no driver.
check_new_id() {
  local ids
  ids="$(sed s/0x// "$PCI/$TWIN/vendor") $(sed s/0x// "$PCI/$TWIN/device")"
  modprobe vfio-pci 2>/dev/null
  echo "$GPU" >"$PCI/$GPU/driver/unbind"
  echo "$TWIN" >"$PCI/$TWIN/driver/unbind"
  echo "$ids" >/sys/bus/pci/drivers/vfio-pci/new_id
  expect new-id-takes-the-twin "$(driver_of "$TWIN")" vfio-pci
  echo "$ids" >/sys/bus/pci/drivers/vfio-pci/remove_id
  gantry vfio release "$GPU" "$TWIN" >/dev/null 2>&1
  expect new-id-is-undone "$(driver_of "$GPU") $(driver_of "$TWIN")" "nvidia nvidia"
  # With an override only the named card goes.
  echo "$TWIN" >"$PCI/$TWIN/driver/unbind"
  gantry vfio bind "$GPU" >/dev/null 2>&1
  expect override-leaves-the-twin "$(driver_of "$TWIN")" ""
  echo "$TWIN" >/sys/bus/pci/drivers/nvidia/bind
  gantry vfio release "$GPU" >/dev/null 2>&1
}

# The first boot persists; the second, with the same /etc, finds the card bound by the unit.
check_persist_first_boot() {
  mkdir -p /run/systemd/system
  gantry vfio bind "$GPU" --persist >/dev/null 2>&1
  expect persist-status "$?" 0
  expect_text persist-unit "$(cat /etc/systemd/system/gantry-vfio.service)" "vfio restore"
}
check_persist_next_boot() {
  gantry vfio restore >/dev/null 2>&1
  expect restore-status "$?" 0
  expect restore-binds-the-card "$(driver_of "$GPU")" vfio-pci
  expect restore-leaves-the-twin "$(driver_of "$TWIN")" nvidia
  gantry vfio release "$GPU" >/dev/null 2>&1
  expect persist-is-taken-back "$(ls /etc/gantry/vfio.json 2>/dev/null)" ""
}

check_loops() {
  local i before open
  before=$(snapshot)
  open=$(find /proc/1/fd | wc -l)
  for i in $(seq "${GANTRY_VM_LOOPS:-50}"); do
    gantry vfio bind "$GPU" >/dev/null 2>&1 || {
      fail loop "bind $i"
      return
    }
    gantry vfio release "$GPU" >/dev/null 2>&1 || {
      fail loop "release $i"
      return
    }
  done
  expect loop-leaves-no-trace "$(snapshot)" "$before"
  expect loop-leaks-no-descriptor "$(find /proc/1/fd | wc -l)" "$open"
}

if [ -z "$GPU" ] || [ -z "$TWIN" ]; then
  fail setup "the host needs two GPUs; found: '$GPU' '$TWIN'"
else
  for part in ${GANTRY_VM_CHECKS:-list bind_and_release held_group busy kill second_gantry foreign new_id stuck}; do
    "check_$part"
  done
fi
echo "vfio: $passed ok, $failed failed"
[ "$failed" -eq 0 ]
