# ---- the files of the package

library_directory() { # below PREFIX
  if [ -n "$libdir" ]; then
    echo "$libdir"
  elif ldconfig -p 2>/dev/null | grep -qF "$1/lib/x86_64-linux-gnu/" || [ -d "$1/lib/x86_64-linux-gnu" ]; then
    echo lib/x86_64-linux-gnu
  elif [ -d "$1/lib64" ]; then
    echo lib64
  else
    echo lib
  fi
}

# One line for each file or link that is to be installed: "file MODE FROM TO" or "link TO TARGET".
destinations() {
  awk -v version="$version" -v gl="$opengl_prefix" -v gl_lib="$(library_directory "$opengl_prefix")" -v util="$utility_prefix" \
    -v util_lib="$(library_directory "$utility_prefix")" -v doc="$documentation_prefix" -v compat="$compat32_prefix/lib32" \
    -v compat32="$compat32" -v opengl_files="$opengl_files" -v modprobe_program="$modprobe_program" -v module_source="$module_source" \
    -v modules_only="$modules_only" -v build="$module_directory" '
    function library(prefix, folder) { return arch == "COMPAT32" ? compat : prefix "/" folder }
    NR < 9 || NF < 3 { next }
    {
      path = $1; mode = $2; type = $3; at = 4; arch = ""; folder = ""; target = ""; to = ""
      name = path; sub(/.*\//, "", name)
      if ($at == "NATIVE" || $at == "COMPAT32") arch = $(at++)
      if (arch == "COMPAT32" && compat32 != "y") next
      is_link = type ~ /SYMLINK$/
      if (type ~ /^(CUDA|OPENCL|OPENCL_WRAPPER)_/ && type != "CUDA_ICD" || type ~ /^(TLS_LIB|VDPAU_|DOCUMENTATION|MANPAGE|NVIDIA_MODPROBE|VULKAN_ICD_JSON)/)
        folder = $(at++)
      if (is_link) target = $at
      gsub(/^\/|\/$/, "", folder)
      if (folder != "") folder = "/" folder
      if (type == "KERNEL_MODULE_SRC" || type == "DKMS_CONF") {
        if (module_source != "y" || index(path, build "/") != 1) next
        to = path; sub(/^[^\/]*\//, "", to); to = "/usr/src/nvidia-" version "/" to
      } else if (modules_only == "y") next
      else if (type == "FIRMWARE") to = "/lib/firmware/nvidia/" version "/" name
      else if (type ~ /^NVIDIA_MODPROBE/) { if (modprobe_program != "y") next; to = "/usr/bin/" name }
      else if (type ~ /^(UTILITY_BIN|INSTALLER_BINARY)/) to = util "/bin/" name
      else if (type ~ /^UTILITY_LIB/) to = library(util, util_lib) "/" name
      else if (type == "CUDA_ICD") to = "/etc/OpenCL/vendors/" name
      else if (type == "VULKAN_ICD_JSON") to = "/etc/vulkan" folder "/" name
      else if (type == "GLVND_EGL_ICD_JSON") to = "/usr/share/glvnd/egl_vendor.d/" name
      else if (type == "DOCUMENTATION") to = doc "/share/doc" folder "/" name
      else if (type == "MANPAGE") to = doc "/share/man" folder "/" name
      else {
        if (opengl_files != "y" && type ~ /^(OPENGL|GLVND|GLX|EGL)_/) next
        to = library(gl, gl_lib) folder "/" name
      }
      if (is_link) print "link", to, target
      else print "file", mode, path, to
    }' "$here/.manifest"
}

make_directory() { # and remember each that was not there
  [ -d "$1" ] && return
  make_directory "$(dirname "$1")" || return
  mkdir "$1" && echo "$1" >>"$backup/dirs"
}
number=100
keep_old() { # a file that is in the way
  [ -e "$1" ] || [ -L "$1" ] || return 0
  if [ -L "$1" ]; then
    printf '2: %s\n%s\n%s\n' "$1" "$(readlink "$1")" "$(stat -c '%04a %u %g' "$1")" >>"$backup/log"
    rm -f "$1"
  else
    printf '%s: %s\n%s %s\n' $number "$1" "$(cksum <"$1" | cut -d' ' -f1)" "$(stat -c '%04a %u %g' "$1")" >>"$backup/log"
    mv "$1" "$backup/$number" || return
    number=$((number + 1))
  fi
}
install_file() { # MODE FROM TO
  make_directory "$(dirname "$3")" && keep_old "$3" && cp "$2" "$3" && chmod "$1" "$3" || return
  printf '1: %s\n%s\n' "$3" "$(cksum <"$3" | cut -d' ' -f1)" >>"$backup/log"
}
install_link() { # PATH TARGET
  make_directory "$(dirname "$1")" && keep_old "$1" && ln -s "$2" "$1" || return
  printf '0: %s\n%s\n' "$1" "$2" >>"$backup/log"
}

install_all() {
  [ ! -d $backup ] || [ "$modules_only" = y ] || rm -rf $backup
  mkdir -p $backup && chmod 700 $backup || return
  (umask 077; [ -e $backup/log ] || printf '%s\n%s\n' "$version" "$(description)" >$backup/log)
  destinations >"$work/files" || return
  while read -r kind first second third; do
    case $kind in
      file) install_file "$first" "$here/$second" "$third" ;;
      link) install_link "$first" "$second" ;;
    esac || { error "Unable to install '$third$first'."; return 1; }
  done <"$work/files"
  [ "$no_modules" = y ] && return
  for module in $modules; do
    install_file 0644 "$built/$module.ko" "$module_path/$module.ko" || return
  done
}

