# ---- what can be asked for

refresh_system() {
  [ "$no_modules" = y ] || [ "$skip_depmod" = y ] || run depmod -a "$kernel"
  run ldconfig
}

uninstall() {
  [ -e $backup/log ] || return 1
  [ "$skip_unload" = y ] || unload_modules || say "The kernel module '$stuck' is in use and stays loaded."
  # First everything that was installed goes, then what was there before comes back.
  sed -n 's/^[01]: //p' $backup/log | while read -r path; do rm -f "$path" || to_log "-> Unable to remove installed file '$path'."; done
  awk '/^(2|[1-9][0-9][0-9]+): \// { print $1, substr($0, index($0, ":") + 2); getline second; print second }' $backup/log >"$work/old"
  while read -r entry path && read -r first second; do
    case $entry in
      2:) ln -s "$first" "$path" ;;
      *) mv "$backup/${entry%:}" "$path" && chmod "${second%% *}" "$path" ;;
    esac
  done <"$work/old"
  [ ! -e $backup/dirs ] || sort -r $backup/dirs | while read -r path; do rmdir "$path" 2>/dev/null; done
  rm -rf $backup
  refresh_system
}

describe_installed() { # "'DESCRIPTION' (version: V)"
  echo "'$(sed -n 2p $backup/log)' (version: $(sed -n 1p $backup/log))"
}

do_info() {
  if [ ! -e $backup/log ]; then
    echo "There is no NVIDIA driver currently installed."
    exit 1
  fi
  echo "The currently installed driver is: $(describe_installed)."
}

do_sanity() {
  if [ ! -e $backup/log ]; then
    error "Unable to find any installed NVIDIA driver.  The sanity check feature is only intended to be used with an existing NVIDIA driver installation."
    exit 1
  fi
  altered=$(awk '/^1: / { path = substr($0, 4); getline sum; print sum, path }' $backup/log | while read -r sum path; do
    [ "$(cksum 2>/dev/null <"$path" | cut -d' ' -f1)" = "$sum" ] || echo "$path"
  done)
  if [ -n "$altered" ]; then
    error "The installation of $(describe_installed) has been altered since it was originally installed: $altered"
    exit 1
  fi
  echo "The driver $(describe_installed) appears to be installed properly."
}

do_uninstall() {
  if [ ! -e $backup/log ]; then
    error "There is no NVIDIA driver currently installed."
    exit 1
  fi
  was=$(sed -n 1p $backup/log)
  uninstall
  say "Uninstallation of existing driver: NVIDIA Accelerated Graphics Driver for Linux-x86_64 ($was) is complete."
}

do_add_kernel() {
  need_package
  load=n
  precompiled=n
  if ! { choose_modules && build_modules; }; then
    error "Unable to add a precompiled kernel interface for the running kernel."
    exit 1
  fi
  # kbuild's clean removes all modules below its directory.
  for module in $modules; do cp "$built/$module.ko" "$work/" || exit 1; done
  run make -C "$here/$module_directory" clean SYSSRC="$source" SYSOUT="$output"
  ready=$here/$module_directory/precompiled/$kernel
  mkdir -p "$ready" && cp "$work"/*.ko "$ready/" && cp /proc/version "$ready/version"
}

do_install() {
  need_package
  check_not_loaded || fail
  say "Installing NVIDIA driver version $version."
  choose_modules || fail
  if [ "$no_modules" = y ]; then
    warn "You specified the '--no-kernel-modules' command line option, nvidia-installer will not install any kernel modules as part of" \
      "this driver installation."
  else
    check_nouveau && build_modules && sign_modules && test_modules || fail
  fi
  if [ -e $backup/log ] && [ "$modules_only" = n ]; then
    say "Uninstalling the previous installation with $0."
    skip_unload=y
    uninstall
  fi
  say "Installing '$(description)' ($version):"
  install_all || { uninstall; fail; }
  refresh_system
  say "done."
  say "Driver file installation is complete."
  # As the vendor's: nvidia-uvm is loaded by nvidia-modprobe when a program needs it.
  case "$no_modules$load $kernel $modules" in
    "ny $(uname -r) "*nvidia-drm*) run modprobe nvidia-drm || { error "Unable to load the 'nvidia-drm' kernel module."; fail; } ;;
  esac
  say "Running post-install sanity check:"
  say "done."
  say "Post-install sanity check passed."
  only=""
  [ "$modules_only" = n ] || only="kernel module for the "
  say "Installation of the $only$(description) (version: $version) is now complete."
}

need_package() {
  [ -e "$here/.manifest" ] && return
  error "No package found for installation.  Please run this utility with the '--help' option for usage information."
  exit 1
}

case $action in
  recommend) recommended_type; exit 0 ;;
  info) do_info; exit 0 ;;
  sanity) do_sanity; exit 0 ;;
esac
start_log
[ "$silent" = y ] || printf '\nWelcome to the NVIDIA Software Installer for Unix/Linux\n\n'
if [ "$(id -u)" -ne 0 ] && [ $action != add_kernel ]; then
  error "nvidia-installer must be run as root"
  exit 1
fi
[ -n "$kernel" ] || kernel=$(uname -r)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
do_$action
