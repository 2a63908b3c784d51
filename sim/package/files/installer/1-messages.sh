#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154 # the other parts use these variables
# nvidia-installer of a simulated driver package (`gantry sim package`): installs the files of .manifest, builds and loads the kernel
# modules, and takes all of it back. Options, exit statuses (0 or 1), places and the lines that programs look for are those of NVIDIA's
# installer. It asks no questions: every answer is the default of --silent. What concerns X is accepted and has no effect.
set -u
umask 022
program=nvidia-installer
version=@VERSION@
branch=@BRANCH@
backup=/var/lib/nvidia

log_file=/var/log/nvidia-installer.log
log="" # until it is open
silent=n action=install
kernel="" source="" output="" module_directory="" modules_only=n no_modules=n module_path=""
utility_prefix=/usr opengl_prefix=/usr documentation_prefix=/usr libdir="" compat32=y compat32_prefix=/usr
opengl_files=y module_source=y load=y skip_unload=n skip_depmod=n nouveau_check=y precompiled=y cc_check=@CC_MISMATCH_STATUS@
modprobe_program=y running_driver=n jobs="" excluded=""
secret_key="" public_key="" sign_script="" hash=""

to_log() { [ -z "$log" ] || printf '%s\n' "$*" >>"$log"; }
say() { to_log "-> $*"; [ "$silent" = y ] || printf '  %s\n' "$*"; }
warn() { to_log "WARNING: $*"; [ "$silent" = y ] || printf '\nWARNING: %s\n\n' "$*" >&2; }
error() { to_log "ERROR: $*"; printf '\nERROR: %s\n\n' "$*" >&2; }
# run COMMAND...: with its output in the log
run() {
  to_log "   executing: '$*'..."
  if [ -n "$log" ]; then "$@" >>"$log" 2>&1; else "$@" >/dev/null 2>&1; fi
}

start_log() {
  if ! : 2>/dev/null >"$log_file"; then
    echo "$program: Error opening log file '$log_file' for writing; disabling logging." >&2
    return
  fi
  log=$log_file
  to_log "$program log file '$log'"
  to_log "creation time: $(date '+%a %b %e %H:%M:%S %Y')"
  to_log "installer version: $version"
  to_log ""
  to_log "PATH: $PATH"
  to_log ""
  to_log "$program command line:"
  to_log "    $0"
  [ -z "$words" ] || to_log "$words"
  to_log ""
  to_log "Using built-in stream user interface"
}

description() { sed -n 1p "$here/.manifest"; }
fail() {
  if [ -n "$log" ]; then
    error "Installation has failed.  Please see the file '$log' for details.  You may find suggestions on fixing installation problems" \
      "in the README available on the Linux driver download page at www.nvidia.com."
  else
    error "Installation has failed.  You may find suggestions on fixing installation problems in the README available on the Linux" \
      "driver download page at www.nvidia.com."
  fi
  exit 1
}

