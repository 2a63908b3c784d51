# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# nvidia-driver-installer with the variables of Google's DaemonSet: its log is compared with note 003's, word by word, where that has no
# readings of a card. The modules were built outside.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
google=/home/kubernetes/bin/nvidia

# install_as_google: the log is in /tmp/google.log
install_as_google() {
  ROOT_MOUNT_DIR=/ NVIDIA_INSTALL_DIR_HOST=$google NVIDIA_DRIVER_VERSION=460.56 NVIDIA_DRIVER_DOWNLOAD_URL=file://$old \
    nvidia-driver-installer --source precompiled --modules "$built/460.56" --flavour proprietary >/tmp/google.log 2>/tmp/google.err ||
    { cat /tmp/google.log /tmp/google.err; return 1; }
}
# The note's log, without the rows of its one GPU.
cat >/tmp/google.note <<'END'
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 460.56       Driver Version: 460.56       CUDA Version: 11.2     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
Verifying Nvidia installation... DONE.
Updating host's ld cache...
Updating host's ld cache... DONE.
END
# From the table on, without the rows of GPUs and the empty line between its halves.
log_like_note() {
  awk '/^\+-/ { table = 1 } !table || /^ *$/ { next } /^\|   [0-9]+  / { row = 1 } row { row = !/^\+-/; next } { print }' /tmp/google.log >/tmp/google.seen
  diff /tmp/google.note /tmp/google.seen
}

check "the host has no driver" make_bare
machine_state >/tmp/state-before
check "nvidia-driver-installer installs 460.56" install_as_google
check "its log ends as the note's, word by word" log_like_note
check "the driver is in Google's directory" test -x $google/bin/nvidia-smi
check_is "460.56 is loaded" 460.56 "$(loaded_version)"
check_quick 1000 "a second start does nothing" install_as_google
check "and says so" grep -q "^Found existing driver installation for kernel version $release and driver version 460.56" /tmp/google.log
check "verify finds nothing wrong" gantry driver verify
check "removal works" gantry driver remove
machine_state >/tmp/state-after
check "everything is as before" diff /tmp/state-before /tmp/state-after
