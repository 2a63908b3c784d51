# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A GPU that drives the console, because no other card does.
check_is "the K620 is the primary display" 1 "$(cat $devices/$k620/boot_vga)"
check "list says so" grep -qE "^$k620 .*drives the console" <(gantry vfio list)
check "bind is refused" refuses "$k620 drives the console" gantry vfio bind $k620
check_is "nvidia has it" nvidia "$(driver_of $k620)"
