# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What stands in the way of gantry driver, in a host without a driver: it is told, and nothing is changed.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
elsewhere=/var/lib/nvidia
to_elsewhere=("${to_new[@]}" --directory "$elsewhere")
gpus_off() { put $devices/0000:01:00.0/remove 1 && put $devices/0000:02:00.0/remove 1; }
gpus_on() { put /sys/bus/pci/rescan 1 && within 10 test -e $devices/0000:02:00.0; }
# at_time TIME COMMAND...: with a clock that is wrong
at_time() {
  local now status
  now=$(date +%s)
  date -s "$1" >/dev/null
  shift
  "$@"
  status=$?
  date -s "@$now" >/dev/null
  return $status
}
preflight_of_download() { gantry driver preflight --version 580.159.04 --sha256 "$(printf 'a%.0s' {1..64})"; }
make_read_only() { mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"; }
tmpfs_elsewhere() { mount -t tmpfs -o "size=$1" tmpfs $elsewhere; }
# The first of two installers stands still in the middle of its work.
begin_install() {
  gantry driver install "${to_elsewhere[@]}" >/tmp/first 2>&1 &
  first=$!
  within 60 test -s /var/lib/gantry/driver-install/journal.json && kill -STOP $first
}
end_install() {
  if kill -CONT $first && wait $first; then return 0; fi
  cat /tmp/first
  return 1
}

check "the host has no driver" make_bare
mkdir -p $elsewhere
machine_state >/tmp/state-before
check "a driver with nouveau's name takes the GPUs" insmod "$built/nouveau.ko"
check "the preflight names nouveau and what helps" refuses "blacklist nouveau" gantry driver preflight "${to_new[@]}"
check "an installation is refused" refuses "nouveau holds" gantry driver install "${to_new[@]}"
check "against our advice it fails" refuses "all is as it was before" gantry driver install --ignore nouveau-holds-gpu "${to_new[@]}"
check "nouveau goes" rmmod nouveau
check "without it the preflight finds nothing" gantry driver preflight "${to_new[@]}"

check "the GPUs are taken out" gpus_off
check "a node without a GPU is told" refuses "no NVIDIA GPU" gantry driver install "${to_new[@]}"
check "the GPUs are put back" gpus_on
check "a clock in 1970 is behind" refuses "the clock is behind by at least" at_time 1970-01-02 preflight_of_download
check "a clock in 2040 is ahead" refuses "the clock is probably ahead" at_time 2040-01-01 preflight_of_download
machine_state >/tmp/state-after
check "nothing was changed" diff /tmp/state-before /tmp/state-after

check "/usr is read-only" make_read_only /usr
check "an installation is refused and names another directory" refuses "choose a --directory" gantry driver install "${to_new[@]}"
check "a small disk" tmpfs_elsewhere 1m
check "is too small for the preflight" refuses "make room" gantry driver install "${to_elsewhere[@]}"
check "and in the middle of an installation" refuses "the disk is full" gantry driver install --ignore disk-full "${to_elsewhere[@]}"
check_is "nothing is on it" "" "$(ls -A $elsewhere)"
check "there is room" mount -o remount,size=64m $elsewhere
check "an installer begins" begin_install
check "a second one is refused, and names the first" refuses "$first" gantry driver install "${to_elsewhere[@]}"
check "removal is refused as well" refuses "is changing the driver" gantry driver remove
check "the first one ends" end_install
check_is "580.159.04 is loaded" 580.159.04 "$(loaded_version)"
check "a container computes, with a read-only /usr" says "Test PASSED" in_container gantry-vector-add

check "a user that no search finds holds the T4" hold_hidden /dev/nvidia1
check "an upgrade names the module that refuses" refuses "module nvidia is held" gantry driver upgrade "${to_old_built[@]}"
check "so does removal" refuses "module nvidia" gantry driver remove
check_is "580.159.04 is still loaded" 580.159.04 "$(loaded_version)"
check "the user lets go" release_vfio
check "the driver works" gantry driver verify
check "removal works" gantry driver remove
check "the disk goes" umount $elsewhere
check "/usr can be written to" umount -l /usr # programs of it run
machine_state >/tmp/state-after
check "everything is as before" diff /tmp/state-before /tmp/state-after
