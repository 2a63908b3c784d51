# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry vfio bind --persist, second boot: the card is bound, its equal twin is not, and no driver had it before.
check_is "vfio-pci has the A10, nvidia its twin" "vfio-pci nvidia" "$(driver_of $a10) $(driver_of $twin)"
check "status says that no driver had it before" says "$a10  vfio-pci, before no driver" gantry vfio status
check "it is bound at every boot" says "$a10 is bound at every boot" gantry vfio status
check "a program uses it" "$parts/bin/vfio_group" $a10
check "restore again does nothing" says "nothing to do" gantry vfio restore
check "release gives it to nvidia, though it was never there" gantry vfio release $a10
check_is "nvidia has it" nvidia "$(driver_of $a10)"
check "it is not bound at boot any more" test ! -e /etc/gantry/vfio.json
check "bind --persist works again" gantry vfio bind --persist $a10
