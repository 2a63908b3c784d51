# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The boot after driver_next_boot, which lost its power in the middle of an upgrade from 580.159.04 to 460.56.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
check "a driver is loaded as at boot" gantry driver load
check "both GPUs work" same 2 "$(gpus)"
check "the same upgrade ends" gantry driver upgrade "${to_old_built[@]}"
check "460.56 is loaded, with both GPUs" has_driver 460.56
check "verify finds nothing wrong" gantry driver verify
check "removal works" gantry driver remove
file_state >/tmp/files-after
check "files and loader cache are as they were two boots ago" diff /var/tmp/files-before /tmp/files-after
