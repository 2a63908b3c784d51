# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry vfio bind --persist and release as a service that AppArmor confines, with the profile of docs/vm.md. With all its rules both
# work and the kernel denies nothing. Without one of the rules the kernel denies it, and Gantry names the file.
page=$here/../../docs/vm.md
profile=/tmp/gantry-vfio
securityfs=/sys/kernel/security

# The blocks of the page: what the service reads and runs, then what it writes.
documented_profile() {
  awk '/^profile gantry-vfio \{/ { print; inside = 1; next }
    inside && /^```/ { exit }
    inside' "$page"
  awk '/files that it writes, with the temporary/ { found = 1 }
    found && /^```/ { if (fences++) exit; next }
    found && fences { print "  " $0 }' "$page"
  echo "}"
}
# load_profile [RULE]: without the line that has this rule
load_profile() {
  documented_profile | grep -vF "${1:-no such rule}" >$profile
  [ -z "${1:-}" ] || ! diff -q $profile <(documented_profile) >/dev/null || { echo "the page has no rule $1"; return 1; }
  apparmor_parser -r -K $profile && grep -qxF "gantry-vfio (enforce)" $securityfs/apparmor/profiles
}
confined() { aa-exec -p gantry-vfio -- gantry vfio "$@"; }
# The kernel's log from here on. It is not cleared, because topic "end" reads all of it.
marks=0
mark_log() { marks=$((marks + 1)) && echo "gantry-mark $marks." >/dev/kmsg; }
new_log() { dmesg | sed "1,/gantry-mark $marks\./d"; }
denied() { new_log | grep 'apparmor="DENIED".*profile="gantry-vfio"'; }
none_denied() { dmesg | grep -qF "gantry-mark $marks." && ! denied; }
confined_state() { aa-exec -p gantry-vfio -- cat /proc/self/attr/current; }

# fails_without RULE FILE COMMAND...: the kernel denies FILE, and the command says so
fails_without() {
  local rule=$1 file=$2 output
  shift 2
  mark_log
  load_profile "$rule" || return
  output=$("$@" 2>&1) && { echo "it did not fail: $output"; return 1; }
  grep -qE 'Permission denied|not permitted' <<<"$output" || { echo "it said: $output"; return 1; }
  grep -qF -- "$file" <<<"$output" || { echo "it does not name the file: $output"; return 1; }
  denied | grep -qF -- "$file" || { echo "the kernel did not deny it:"; new_log | tail; return 1; }
}
# What the refused command left, put right without confinement.
mend() {
  gantry vfio recover && gantry vfio release "$1" && [ "$before" = "$(functions_state)" ]
}

before=$(functions_state)
mark_log
check_is "AppArmor is in the kernel" Y "$(cat /sys/module/apparmor/parameters/enabled)"
check "its files can be mounted" mount -t securityfs securityfs $securityfs
check "the profile of docs/vm.md can be loaded" load_profile
check_is "a process is confined by it" "gantry-vfio (enforce)" "$(confined_state)"
check "it may not write elsewhere" refuses "Permission denied" aa-exec -p gantry-vfio -- touch /etc/gantry-was-here
check "the kernel says so in its log" denied
mark_log

check "bind --persist works in it" confined bind --persist $a10
check_is "vfio-pci has the A10" vfio-pci "$(driver_of $a10)"
check "the card is persisted" test -e /etc/gantry/vfio.json
check "status and list work in it" eval 'confined status && confined list'
check "a card with an audio function can be bound in it" confined bind $k620
check "release gives that one back" confined release $k620
check "release gives the A10 back, and forgets it" confined release $a10
check_is "all drivers and overrides are as before" "$before" "$(functions_state)"
check "it is not bound at boot any more" test ! -e /etc/gantry/vfio.json
check "the kernel denied nothing" none_denied
check "a process holds the A10 outside the profile" hold_file /dev/nvidia0
check "bind in it names that process" refuses "process $holder (sleep" confined bind $a10
release_file
check "the kernel denied nothing" none_denied

for words in "driver_override driver_override" "drivers/*/unbind unbind" "drivers/*/bind vfio-pci/bind" "/run/gantry/vfio/* /run/gantry/vfio/" \
  "/run/gantry/owner-changes/* /run/gantry/owner-changes/" "ledger* ledger"; do
  rule=${words% *} file=${words#* }
  check "without the rule for $rule bind is refused" fails_without "$rule" "$file" confined bind $a10
  check "all is as before, or can be mended" mend $a10
done
check "without the rules for --persist it is refused" fails_without "/etc/gantry/*vfio.json*" /etc/gantry confined bind --persist $a10
check "all is as before, or can be mended" mend $a10
check "the profile can be unloaded" apparmor_parser -R $profile
check "securityfs can be unmounted" umount $securityfs
