# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# docs/driver.md: the commands that need a kernel, on a Debian without a driver, word for word. The modules were built outside
# (driver_parts.py), as the page says; the page signs those of 460.56 here.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
page=$here/../../docs/driver.md

# The page's files, and a sudo where there is none: the walk is root.
prepare_page() {
  local version
  mkdir -p /srv/drivers /srv/keys && cp "$GANTRY_VM_DRIVERS"/*.run /srv/drivers/ && cp "$parts"/signing/*.pem /srv/keys/ || return
  (cd /srv/drivers && sha256sum ./*.run >SHA256SUMS) || return
  for version in 460.56 580.159.04; do
    mkdir -p "/srv/drivers/modules/$version" && cp -r "$GANTRY_VM_DRIVERS/$version" "/srv/drivers/modules/$version/$(uname -r)" || return
  done
  command -v sudo || { printf '#!/bin/sh\nexec "$@"\n' >/usr/bin/sudo && chmod 755 /usr/bin/sudo; }
}

check "the host has no driver" make_bare
check "the page's files are there" prepare_page
walk_page "$page"
check "no driver is loaded, and none is recorded" test ! -e /sys/module/nvidia -a ! -e /var/lib/gantry/driver-install/installed.json
