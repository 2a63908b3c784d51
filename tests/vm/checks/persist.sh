# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry vfio bind --persist, first boot of three: the changes of this host are there in the next one.
etc_state() { (cd /etc && find . -printf '%p %y %m %l\n' | sort && find systemd gantry -type f -exec md5sum {} + 2>/dev/null | sort); }
etc_state >/var/tmp/etc-before
check "bind --persist works" gantry vfio bind --persist $a10
check "the unit is enabled for the start of the machine" test -L /etc/systemd/system/sysinit.target.wants/gantry-vfio.service
check "it runs this program" grep -qx "ExecStart=$bin/gantry vfio restore" /etc/systemd/system/gantry-vfio.service
check "systemd understands it" systemd-analyze verify --man=no /etc/systemd/system/gantry-vfio.service
check "the card is named by address, ids and serial number" grep -q '"serial": "48-b0-2d-a1-00-00-00-01"' /etc/gantry/vfio.json
check "status says so" says "$a10 is bound at every boot" gantry vfio status
check "release takes it back" gantry vfio release $a10
check "/etc is as before, byte for byte" diff /var/tmp/etc-before <(etc_state)
check_is "nvidia has the A10" nvidia "$(driver_of $a10)"
check "bind --persist works again" gantry vfio bind --persist $a10
