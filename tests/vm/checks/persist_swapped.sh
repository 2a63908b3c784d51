# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry vfio bind --persist, third boot: the two equal cards have changed their places.
etc_state() { (cd /etc && find . -printf '%p %y %m %l\n' | sort && find systemd gantry -type f -exec md5sum {} + 2>/dev/null | sort); }
check_is "nvidia has both cards" "nvidia nvidia" "$(driver_of $a10) $(driver_of $twin)"
check "restore says which card it found, and is refused" refuses "the slot $a10 holds another card" gantry vfio restore
check "it names both serial numbers" refuses "48-b0-2d-a1-00-00-00-02" gantry vfio restore
check_is "nvidia still has both" "nvidia nvidia" "$(driver_of $a10) $(driver_of $twin)"
check "release forgets it" gantry vfio release $a10
check "/etc is as before the first boot, byte for byte" diff /var/tmp/etc-before <(etc_state)
check "nothing is left to restore" gantry vfio restore
