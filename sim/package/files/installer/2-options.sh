# ---- the command line

usage() {
  cat <<END

$program:  version $version
  A simulated NVIDIA software installer.

./$program [options]

  -v, --version                    Print the version and exit.
  -h, --help                       Print the common options and exit.
  -A, --advanced-options           Print all options and exit.

END
}
all_options() {
  cat <<END
  -a, --accept-license             Accepted and ignored.
  -i, --driver-info                Say which driver is installed.
  --uninstall                      Remove the installed driver.
  --sanity                         Check the installed driver's files.
  -q, --no-questions; -s, --silent; --ui=none
                                   No questions; no output but errors.
  --utility-prefix=P, --opengl-prefix=P, --documentation-prefix=P, --opengl-libdir=D, --utility-libdir=D, --compat32-prefix=P
                                   Where files are installed; default /usr.
  --no-install-compat32-libs, --no-opengl-files
                                   Leave these files out.
  --log-file-name=F                Log; default /var/log/nvidia-installer.log.
  --tmpdir=D                       Accepted.
  -k, --kernel-name=R              Install modules for kernel R, which need not run.
  --kernel-source-path=D, --kernel-output-path=D, --kernel-install-path=D
                                   The kernel's headers, and where modules go.
  -K, --kernel-module-only, --kernel-modules-only; --no-kernel-module, --no-kernel-modules
                                   Only the modules; everything but the modules.
  -m, --kernel-module-build-directory=kernel|kernel-open; -M, --kernel-module-type=open|proprietary
                                   The flavour of the modules.
  --no-unified-memory, --no-drm, --no-peermem
                                   Leave this module out.
  --no-kernel-module-source, --no-precompiled-interface, -n, --no-nvidia-modprobe
  --skip-module-load, --skip-module-unload, --skip-depmod
  -z, --no-nouveau-check; -Z, --disable-nouveau; --no-cc-version-check; -j, --concurrency-level=N
  --module-signing-secret-key=F, --module-signing-public-key=F, --module-signing-script=F, --module-signing-hash=H
  --allow-installation-with-running-driver
  --print-recommended-kernel-module-type
  --add-this-kernel                Build the modules for the running kernel into the package.

END
}

unknown() {
  echo "$0: unrecognized option: \"$1\"" >&2
  echo >&2
  echo "ERROR: Invalid commandline, please run \`$program --help\` for usage information." >&2
  exit 1
}

# set_option NAME VALUE
set_option() {
  case $1 in
    utility-prefix | installer-prefix) utility_prefix=$2 ;;
    opengl-prefix) opengl_prefix=$2 ;;
    documentation-prefix) documentation_prefix=$2 ;;
    compat32-prefix) compat32_prefix=$2 ;;
    opengl-libdir | utility-libdir) libdir=$2 ;;
    log-file-name) log_file=$2 ;;
    kernel-name) kernel=$2 ;;
    kernel-source-path | kernel-include-path) source=$2 ;;
    kernel-output-path) output=$2 ;;
    kernel-install-path) module_path=$2 ;;
    kernel-module-build-directory) module_directory=$2 ;;
    kernel-module-type)
      case $2 in
        open) module_directory=kernel-open ;;
        proprietary) module_directory=kernel ;;
        *) error "'$2' is not a valid kernel module type."; exit 1 ;;
      esac ;;
    concurrency-level) jobs=$2 ;;
    ui) [ "$2" != none ] || silent=y ;;
    module-signing-secret-key) secret_key=$2 ;;
    module-signing-public-key) public_key=$2 ;;
    module-signing-script) sign_script=$2 ;;
    module-signing-hash) hash=$2 ;;
    *) ;; # accepted, without effect
  esac
}
takes_value() {
  case $1 in
    utility-prefix | installer-prefix | opengl-prefix | documentation-prefix | compat32-prefix | opengl-libdir | utility-libdir) ;;
    log-file-name | kernel-name | kernel-source-path | kernel-include-path | kernel-output-path | kernel-install-path) ;;
    kernel-module-build-directory | kernel-module-type | concurrency-level | tmpdir | ui | proc-mount-point) ;;
    module-signing-secret-key | module-signing-public-key | module-signing-script | module-signing-hash) ;;
    module-signing-key-path | module-signing-x509-hash | x-prefix | xfree86-prefix | x-module-path | x-library-path) ;;
    x-sysconfig-path | compat32-chroot | compat32-libdir | application-profile-path | force-selinux | selinux-chcon-type) ;;
    force-tls | glvnd-egl-config-path | kernel-module-source-prefix | kernel-module-source-dir | systemd-unit-prefix) ;;
    systemd-sleep-prefix | systemd-sysconf-prefix | override-file-type-destination | precompiled-kernel-interfaces-path) ;;
    *) return 1 ;;
  esac
}
set_flag() {
  case $1 in
    version) echo; echo "$program:  version $version"; echo "  A simulated NVIDIA software installer."; echo; exit 0 ;;
    help | help-args-only) usage; exit 0 ;;
    advanced-options | advanced-options-args-only) usage; all_options; exit 0 ;;
    driver-info) action=info ;;
    uninstall) action=uninstall ;;
    sanity) action=sanity ;;
    add-this-kernel) action=add_kernel ;;
    print-recommended-kernel-module-type) action=recommend ;;
    silent) silent=y ;;
    no-install-compat32-libs) compat32=n ;;
    no-opengl-files) opengl_files=n ;;
    no-drm) excluded="$excluded nvidia-drm" ;;
    no-unified-memory) excluded="$excluded nvidia-uvm" ;;
    no-peermem) excluded="$excluded nvidia-peermem" ;;
    kernel-module-only | kernel-modules-only) modules_only=y ;;
    no-kernel-module | no-kernel-modules) no_modules=y ;;
    no-kernel-module-source) module_source=n ;;
    no-precompiled-interface) precompiled=n ;;
    no-nvidia-modprobe) modprobe_program=n ;;
    no-nouveau-check) nouveau_check=n ;;
    no-cc-version-check) cc_check=0 ;;
    skip-module-load) load=n ;;
    skip-module-unload) skip_unload=y ;;
    skip-depmod) skip_depmod=y ;;
    allow-installation-with-running-driver) running_driver=y ;;
    accept-license | no-questions | expert | install-compat32-libs | no-ncurses-color | no-abi-note | no-rpms | no-backup) ;;
    no-recursion | no-x-check | disable-nouveau | no-disable-nouveau | run-nvidia-xconfig | no-sigwinch-workaround | debug) ;;
    no-distro-scripts | no-wine-files | dkms | no-dkms | no-check-for-alternate-installs | force-libglx-indirect | no-network) ;;
    no-libglx-indirect | install-libglvnd | no-install-libglvnd | systemd | no-systemd | rebuild-initramfs) ;;
    no-rebuild-initramfs | no-runlevel-check | install-vdpau-wrapper | glvnd-glx-client | glvnd-egl-client) ;;
    *) unknown "--$1" ;;
  esac
}
long_name() { # of one letter
  case $1 in
    v) echo version ;; h) echo help ;; A) echo advanced-options ;; a) echo accept-license ;; i) echo driver-info ;;
    e) echo expert ;; q) echo no-questions ;; s) echo silent ;; c) echo no-ncurses-color ;; k) echo kernel-name ;;
    n) echo no-precompiled-interface ;; b) echo no-backup ;; r) echo no-recursion ;; K) echo kernel-module-only ;;
    z) echo no-nouveau-check ;; Z) echo disable-nouveau ;; X) echo run-nvidia-xconfig ;; j) echo concurrency-level ;;
    m) echo kernel-module-build-directory ;; M) echo kernel-module-type ;; d) echo debug ;; N) echo no-network ;;
  esac
}

words=$(for word in "$@"; do printf '    %s\n' "$word"; done)
case $0 in *nvidia-uninstall) action=uninstall ;; esac
while [ $# -gt 0 ]; do
  word=$1
  shift
  value=""
  has_value=n
  case $word in
    --*=*) name=${word%%=*}; name=${name#--}; value=${word#*=}; has_value=y ;;
    --*) name=${word#--} ;;
    -?=*) name=$(long_name "$(printf %s "$word" | cut -c2)"); value=${word#*=}; has_value=y ;;
    -?) name=$(long_name "${word#-}") ;;
    *) unknown "$word" ;;
  esac
  [ -n "$name" ] || unknown "$word"
  if takes_value "$name"; then
    if [ $has_value = n ]; then
      [ $# -gt 0 ] || { echo "$0: option \"$word\" requires an argument." >&2; unknown "$word"; }
      value=$1
      shift
    fi
    set_option "$name" "$value"
  else
    set_flag "$name"
  fi
done

here=$(cd "$(dirname "$0")" && pwd)

