# ---- the kernel modules

loaded() { grep -q "^$(echo "$1" | tr - _) " /proc/modules 2>/dev/null; }
unload_modules() {
  for module in nvidia-peermem nvidia-vgpu-vfio nvidia-uvm nvidia-drm nvidia-modeset nvidia; do
    loaded $module || continue
    run rmmod $module
    loaded $module || continue
    stuck=$module
    return 1
  done
}

check_not_loaded() {
  if [ "$no_modules" = y ] || { [ "$modules_only" = y ] && [ "$kernel" != "$(uname -r)" ]; }; then return 0; fi
  unload_modules && return
  text="An NVIDIA kernel module '$stuck' appears to already be loaded in your kernel.  This may be because it is in use (for example,
by a CUDA program or the NVIDIA Persistence Daemon), or because your kernel was configured without support for module unloading."
  if [ $running_driver = y ]; then
    warn "$text"
    say "Kernel module load tests will be skipped."
    load=n
    return
  fi
  error "$text"
  return 1
}

check_nouveau() {
  [ $nouveau_check = y ] || return 0
  for link in /sys/bus/pci/devices/*/driver; do
    case $(readlink "$link" 2>/dev/null) in */nouveau) ;; *) continue ;; esac
    error "The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with the NVIDIA driver, and must" \
      "be disabled before proceeding."
    return 1
  done
}

check_tools() {
  for tool in make ld "${CC:-cc}"; do
    command -v "$tool" >/dev/null 2>&1 && continue
    error "Unable to find the development tool \`$tool\` in your path; please make sure that you have the package that has it installed."
    return 1
  done
  say "Performing CC sanity check with CC=\"${CC:-cc}\"."
}

find_kernel() {
  if [ -n "$source" ]; then
    say "Using the kernel source path '$source' as specified by the '--kernel-source-path' commandline option."
  elif [ -n "${SYSSRC:-}" ]; then
    source=$SYSSRC
    say "Using the kernel source path '$source', as specified by the SYSSRC environment variable."
  else
    for source in /lib/modules/"$kernel"/source /lib/modules/"$kernel"/build none; do [ ! -d "$source" ] || break; done
    if [ "$source" = none ]; then
      error "Unable to find the kernel source tree for the currently running kernel.  Please make sure you have installed the kernel" \
        "source files for your kernel and that they are properly configured.  If you know the correct kernel source files are" \
        "installed, you may specify the kernel source path with the '--kernel-source-path' command line option."
      return 1
    fi
  fi
  if [ ! -d "$source" ]; then
    error "The kernel source path '$source' does not exist."
    return 1
  fi
  [ -n "$output" ] || output=${SYSOUT:-}
  if [ -z "$output" ]; then
    case $source in /lib/modules/"$kernel"/source) output=/lib/modules/$kernel/build ;; *) output=$source ;; esac
  fi
  if [ ! -e "$output/include/generated/utsrelease.h" ] && [ ! -e "$output/include/generated/uapi/linux/version.h" ]; then
    error "The kernel header file '$output/include/generated/utsrelease.h' does not exist.  The most likely reason for this is that the" \
      "kernel source path '$source' is incorrect."
    return 1
  fi
  say "Kernel source path: '$source'"
  say "Kernel output path: '$output'"
}

check_compiler() {
  say "Performing Compiler check."
  result=$(sh "$here/$module_directory/conftest.sh" "${CC:-cc}" x86_64 "$source" "$output" cc_version_check just_msg) && [ -z "$result" ] && return
  if [ "$cc_check" -ne 0 ]; then
    error "The Compiler version check failed:
$result
If you want to build with this compiler, use the '--no-cc-version-check' option."
    return 1
  fi
  [ -z "$result" ] || warn "$result"
  IGNORE_CC_MISMATCH=1
  export IGNORE_CC_MISMATCH
}

build_modules() {
  built=$here/$module_directory
  ready=$here/$module_directory/precompiled/$kernel
  if [ $precompiled = y ] && [ "$(cat "$ready/version" 2>/dev/null)" = "$(cat /proc/version)" ]; then
    say "Using the kernel modules of the package for this kernel."
    built=$ready
    return
  fi
  check_tools && find_kernel && check_compiler || return
  [ -n "$jobs" ] || jobs=$(nproc 2>/dev/null || echo 1)
  say "Cleaning kernel module build directory."
  run make -C "$built" clean SYSSRC="$source" SYSOUT="$output"
  say "Building kernel modules"
  if ! run make -C "$built" -j"$jobs" NV_EXCLUDE_KERNEL_MODULES="${excluded# }" SYSSRC="$source" SYSOUT="$output"; then
    to_log "-> Error."
    error "An error occurred while performing the step: \"Building kernel modules\". See ${log:-the output of make} for details."
    return 1
  fi
  say "done."
  for module in $modules; do
    [ -e "$built/$module.ko" ] || { error "The $module kernel module was not created."; return 1; }
  done
  say "Kernel module compilation complete."
}

sign_modules() {
  [ -n "$secret_key" ] && [ -n "$public_key" ] || return 0
  for sign in "$sign_script" "$output/scripts/sign-file" "$source/scripts/sign-file" none; do
    [ ! -x "$sign" ] || break
  done
  if [ "$sign" = none ]; then
    error "nvidia-installer cannot sign the kernel modules without the \`sign-file\` module signing program, and was unable to" \
      "automatically locate it. Set the '--module-signing-script' option."
    return 1
  fi
  [ -n "$hash" ] || hash=$(sed -n 's/^CONFIG_MODULE_SIG_HASH="\(.*\)"/\1/p' "$output/.config" 2>/dev/null)
  for module in $modules; do
    run "$sign" "${hash:-sha256}" "$secret_key" "$public_key" "$built/$module.ko" && continue
    error "Failed to sign kernel module."
    return 1
  done
  say "Signed kernel module."
}

# Loads the modules as they were built, and unloads them: a driver that cannot be loaded is not installed.
test_modules() {
  [ $load = y ] && [ "$kernel" = "$(uname -r)" ] || return 0
  for module in $modules; do
    message=$(insmod "$built/$module.ko" 2>&1) && continue
    unload_modules
    case $message in
      *"Required key not available"* | *"Key was rejected"*)
        error "The kernel module failed to load because it was not signed by a key that is trusted by the kernel. Please try installing" \
          "the driver again, and set the --module-signing-secret-key and --module-signing-public-key options on the command line." ;;
    esac
    error "Unable to load the kernel module '$module.ko'.  This happens most frequently when this kernel module was built against the" \
      "wrong or improperly configured kernel sources, or if another driver, such as nouveau, is present and prevents the NVIDIA kernel" \
      "module from obtaining ownership of the NVIDIA device(s), or no NVIDIA device installed in this system is supported by this NVIDIA" \
      "Linux graphics driver release.
Please see the log entries 'Kernel module load error' and 'Kernel messages' at the end of the file '$log' for more information."
    to_log "-> Kernel module load error: $message"
    to_log "-> Kernel messages:"
    [ -z "$log" ] || dmesg 2>/dev/null | tail -n 10 >>"$log"
    return 1
  done
  unload_modules
}

# open or proprietary: what suits the GPUs. supported-gpus.json has one chip in a line.
recommended_type() {
  type=""
  for device in /sys/bus/pci/devices/*; do
    [ "$(cat "$device/vendor" 2>/dev/null)" = 0x10de ] || continue
    case $(cat "$device/class") in 0x0300* | 0x0302*) ;; *) continue ;; esac
    id=$(cut -c3- "$device/device" | tr a-f A-F)
    chip=$(grep -F "\"devid\":\"0x$id\"" "$here/supported-gpus/supported-gpus.json" 2>/dev/null | head -n 1)
    case $chip in
      "") ;;
      *\"kernelopen\"*) [ -n "$type" ] || type=open ;;
      *) type=proprietary ;;
    esac
  done
  echo "${type:-$([ "$branch" -ge 560 ] && echo open || echo proprietary)}"
}

choose_modules() {
  if [ -z "$module_directory" ]; then
    module_directory=kernel
    if [ "$branch" -ge 560 ] && [ -d "$here/kernel-open" ] && [ "$(recommended_type)" = open ]; then module_directory=kernel-open; fi
  fi
  if [ ! -d "$here/$module_directory" ]; then
    error "The kernel module build directory '$module_directory' is not present in this installer package."
    return 1
  fi
  modules=""
  for module in $(sed -n 4p "$here/.manifest"); do
    case " $excluded " in *" $module "*) continue ;; esac
    # nvidia-drm and nvidia-uvm need the others to be loaded before them.
    modules="$modules $module"
  done
  modules=${modules# }
  [ -n "$module_path" ] ||
    if [ -d "/lib/modules/$kernel/kernel" ]; then module_path=/lib/modules/$kernel/kernel/drivers/video; else module_path=/lib/modules/$kernel/video; fi
}

