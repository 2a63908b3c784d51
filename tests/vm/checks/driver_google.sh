# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# nvidia-driver-installer with the variables of Google's DaemonSet: its log is compared with note 003's, word by word, where that has no
# readings of a card. The modules were built outside.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"

# install_as_google: the log is in /tmp/google.log
install_as_google() {
  ROOT_MOUNT_DIR=/ NVIDIA_INSTALL_DIR_HOST=$google NVIDIA_DRIVER_VERSION=460.56 NVIDIA_DRIVER_DOWNLOAD_URL=file://$old \
    nvidia-driver-installer --source precompiled --modules "$built/460.56" --flavour proprietary >/tmp/google.log 2>/tmp/google.err ||
    { cat /tmp/google.log /tmp/google.err; return 1; }
}
check "the host has no driver" make_bare
machine_state >/tmp/state-before
check "nvidia-driver-installer installs 460.56" install_as_google
check "its log ends as the note's, word by word" like_note /tmp/google.log
check "the driver is in Google's directory" test -x $google/bin/nvidia-smi
check_is "460.56 is loaded" 460.56 "$(loaded_version)"
check_quick 1000 "a second start does nothing" install_as_google
check "and says so" grep -q "^Found existing driver installation for kernel version $release and driver version 460.56" /tmp/google.log
check "verify finds nothing wrong" gantry driver verify
check "removal works" gantry driver remove
machine_state >/tmp/state-after
check "everything is as before" diff /tmp/state-before /tmp/state-after
