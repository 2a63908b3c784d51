# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# For the topics about gantry driver, in a host without a driver: packages of 460.56 and 580.159.04, and their modules built outside, as
# a place that signs them does it (driver_parts.py).
release=$(uname -r)
built=$GANTRY_VM_DRIVERS
layer=/run/gantry-sim/changes/upper # every file that was changed since the first boot
old=$built/NVIDIA-Linux-x86_64-460.56.run
new=$built/NVIDIA-Linux-x86_64-580.159.04.run
to_old=(--run "$old" --sha256 "$(sha256sum "$old" | cut -d' ' -f1)")
# Simulated modules have Gantry's own licence, so the flavour cannot be read from it.
to_new=(--run "$new" --sha256 "$(sha256sum "$new" | cut -d' ' -f1)" --flavour proprietary --source precompiled --modules "$built/580.159.04")
to_old_built=("${to_old[@]}" --flavour proprietary --source precompiled --modules "$built/460.56")
to_new_signed=("${to_new[@]/%\/580.159.04/\/580.159.04-signed}")

# A root file system with glibc and one program, as an image has it; podman takes a directory.
make_image() {
  local file
  [ ! -e /var/tmp/image ] || return 0
  mkdir -p /var/tmp/image/{bin,lib64,lib/x86_64-linux-gnu,usr/bin,usr/lib/x86_64-linux-gnu,proc,dev,sys,tmp,etc} && cp "$bin/gantry-vector-add" /var/tmp/image/bin/ &&
    cp /run/gantry-sim/busybox /var/tmp/image/bin/sh || return
  for file in /lib/x86_64-linux-gnu/{libc.so.6,libdl.so.2,libpthread.so.0,libm.so.6}; do cp "$(readlink -f "$file")" "/var/tmp/image$file" || return; done
  cp "$(readlink -f /lib64/ld-linux-x86-64.so.2)" /var/tmp/image/lib64/ld-linux-x86-64.so.2
}
# The host has modules of its own (sim/kernel), and perhaps files of a Gantry outside. The headers are where the package linux-headers puts them.
make_bare() {
  rm -rf "/lib/modules/$release/updates"/nvidia*.ko /var/lib/gantry /run/gantry && ln -sfn "$parts/6.1/headers/linux-headers-$release" "/lib/modules/$release/build" &&
    depmod -a && ldconfig && make_image && ! modprobe -n nvidia 2>/dev/null && [ ! -e /dev/nvidiactl ]
}

# Everything that a driver could leave behind: files that differ from the machine's, directories, nodes, the cache of the loader by what
# is in it, modules.
machine_state() {
  file_state
  find /dev /run/cdi /run/gantry /run/nvidia* -not -path '/dev/pts/*' -not -path '/dev/shm/*' -not -path '/dev/mqueue/*' -printf '%p %y %m %l\n' 2>/dev/null | sort
  cut -d' ' -f1,4 /proc/modules | sort
  cat /sys/module/firmware_class/parameters/path
}
file_state() {
  (
    cd $layer || exit
    # What the checks themselves and containers write, and caches that are compared below.
    find . \( -path ./tmp -o -path ./var/tmp -o -path ./etc/cni -o -path ./etc/ld.so.cache -o -path ./var/cache/ldconfig -o -path ./var/log \) -prune -o \
      -not -type d -printf '%p %y %m %U %l\n' -type f -exec md5sum {} +
  ) | sort
  find /etc -xdev -type d -not -path '/etc/cni*' 2>/dev/null | sort
  find /opt /usr/local /usr/lib/firmware /usr/share/glvnd /usr/share/vulkan /usr/src /var/lib/gantry /var/lib/nvidia -maxdepth 2 -xdev -type d 2>/dev/null | sort
  ldconfig -p | sort
}

loaded_version() { sed -n 's/^NVRM version:.* Module  *\(for x86_64 *\)\{0,1\}\([0-9.]*\) .*/\2/p' /proc/driver/nvidia/version 2>/dev/null; }
with_driver() { LD_LIBRARY_PATH=/usr/local/nvidia/lib64 PATH=/usr/local/nvidia/bin:$PATH "$@"; }
gpus() { with_driver nvidia-smi -L | grep -c 'GPU-[67][24]000000-'; }

# has_driver VERSION: loaded, and it finds both GPUs
has_driver() { same "$1" "$(loaded_version)" && same 2 "$(gpus)"; }

in_container() {
  podman --root /run/containers-store --runroot /run/containers-run --storage-driver vfs --cgroup-manager cgroupfs --events-backend none --runtime crun \
    run --rm --network none --cgroups disabled --device nvidia.com/gpu=all --rootfs /var/tmp/image "$@"
}

# check_quick MILLISECONDS SENTENCE COMMAND...: as check; and QEMU may use so much CPU for it, which tests/vm/run measures. A clock would
# also measure what else the machine does. Between the lines and the command the host sleeps, so that it does not matter when they are read.
check_quick() {
  local most=$1
  shift
  echo "gantry-cpu: begin"
  sleep 1
  check "$@"
  sleep 1
  echo "gantry-cpu: at most $most ms"
}

# kill -9 before one of its calls that replace or remove something.
kill_upgrade_at() { # NUMBER TO...
  local number=$1 calls=rename,renameat,renameat2,unlink,unlinkat,rmdir,symlink,symlinkat,finit_module,delete_module
  shift
  strace -f -o /dev/null -e "trace=$calls" -e "inject=$calls:signal=KILL:when=$number" gantry driver upgrade "$@" >/tmp/killed 2>&1
  [ $? -eq 137 ]
}

# Google's directory, and note 003's log without the rows of its one GPU.
google=/home/kubernetes/bin/nvidia
cat >/tmp/google.note <<'END'
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 460.56       Driver Version: 460.56       CUDA Version: 11.2     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
Verifying Nvidia installation... DONE.
Updating host's ld cache...
Updating host's ld cache... DONE.
END
# like_note LOG: from the table on, without the rows of GPUs and the empty line between its halves.
like_note() {
  awk '/^\+-/ { table = 1 } !table || /^ *$/ { next } /^\|   [0-9]+  / { row = 1 } row { row = !/^\+-/; next } { print }' "$1" >/tmp/google.seen
  diff /tmp/google.note /tmp/google.seen
}
