# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# gantry driver on a Debian that has the kernel's headers and no driver: one command until a container computes, an upgrade and the way
# back, kill -9, removal without a trace, and a kernel that enforces signatures. The modules of 460.56 are built here; the others were
# built outside, as a place that signs them does it (driver_parts.py).
release=$(uname -r)
drivers=$GANTRY_VM_DRIVERS
old=$drivers/NVIDIA-Linux-x86_64-460.56.run
new=$drivers/NVIDIA-Linux-x86_64-580.159.04.run
to_old=(--run "$old" --sha256 "$(sha256sum "$old" | cut -d' ' -f1)")
to_new=(--run "$new" --sha256 "$(sha256sum "$new" | cut -d' ' -f1)" --source precompiled --modules "$drivers/580.159.04")

# The host has modules of its own (sim/kernel). The headers are where the package linux-headers puts them.
make_bare() {
  rm -f "/lib/modules/$release/updates"/nvidia*.ko && ln -sfn "$parts/6.1/headers/linux-headers-$release" "/lib/modules/$release/build" &&
    depmod -a && ldconfig && ! modprobe -n nvidia 2>/dev/null && [ ! -e /dev/nvidiactl ]
}
# Everything that a driver could leave behind; the cache of the loader by what is in it.
machine_state() {
  find /etc /usr/local /usr/src /usr/lib/firmware "/lib/modules/$release" /usr/lib/systemd /usr/share/glvnd /usr/share/vulkan /var/lib/gantry /var/lib/nvidia \
    /run/cdi /run/nvidia* /dev -not -path '/dev/pts/*' -not -name '.nfs*' -printf '%p %y %m %l\n' 2>/dev/null | grep -v '^/dev/\(shm\|mqueue\)' | sort
  find /etc -type f -not -name ld.so.cache -exec md5sum {} + | sort
  ldconfig -p | sort
  cut -d' ' -f1,4 /proc/modules | sort
  cat /sys/module/firmware_class/parameters/path
}
loaded_version() { sed -n 's/^NVRM version:.* Module  *\(for x86_64 *\)\{0,1\}\([0-9.]*\) .*/\2/p' /proc/driver/nvidia/version 2>/dev/null; }
with_driver() { LD_LIBRARY_PATH=/usr/local/nvidia/lib64 PATH=/usr/local/nvidia/bin:$PATH "$@"; }
gpus() { with_driver nvidia-smi -L | grep -c 'GPU-[67][24]000000-'; }
ended_by_signal() { # PID of our child
  wait "$1" 2>/dev/null
  [ $? -eq 143 ]
}

# A root file system with glibc and one program, as an image has it; podman takes a directory.
make_image() {
  local file
  mkdir -p /var/tmp/image/{bin,lib64,lib/x86_64-linux-gnu,usr/bin,usr/lib/x86_64-linux-gnu,proc,dev,sys,tmp,etc} && cp "$bin/gantry-vector-add" /var/tmp/image/bin/ &&
    cp /run/gantry-sim/busybox /var/tmp/image/bin/sh || return
  for file in /lib/x86_64-linux-gnu/{libc.so.6,libdl.so.2,libpthread.so.0,libm.so.6}; do cp "$(readlink -f "$file")" "/var/tmp/image$file" || return; done
  cp "$(readlink -f /lib64/ld-linux-x86-64.so.2)" /var/tmp/image/lib64/ld-linux-x86-64.so.2
}
in_container() {
  podman --root /run/containers-store --runroot /run/containers-run --storage-driver vfs --cgroup-manager cgroupfs --events-backend none --runtime crun \
    run --rm --network none --cgroups disabled --device nvidia.com/gpu=all --rootfs /var/tmp/image "$@"
}

check "the host has no driver" make_bare
check "an image is made" make_image
machine_state >/tmp/state-before
check "the preflight finds nothing in the way" gantry driver preflight "${to_old[@]}"
check "it finds a K620 in the way of the open modules" refuses "K620" gantry driver preflight --flavour open --run "$new"

before=$SECONDS
check "one command installs 460.56" gantry driver install "${to_old[@]}"
cp /tmp/output /tmp/installed
echo "          it took $((SECONDS - before)) s"
check "it ends with the table of nvidia-smi" grep -qE '^\| NVIDIA-SMI 460\.56 +Driver Version: 460\.56 +CUDA Version: 11\.2 ' /tmp/installed
check "the table has the K620" grep -qE '^\|   0  Quadro K620 ' /tmp/installed
check_is "the module is loaded" 460.56 "$(loaded_version)"
check_is "nvidia-smi finds both GPUs" 2 "$(gpus)"
check "a container with both GPUs computes" says "Test PASSED" in_container gantry-vector-add
check "verify finds nothing wrong" gantry driver verify
check "status names the driver" says 460.56 gantry driver status
before=$(date +%s%N)
check "the same again does nothing" says "nothing to do" gantry driver install "${to_old[@]}"
took=$((($(date +%s%N) - before) / 1000000))
check "in at most 3 seconds without hardware virtualisation ($took ms)" test $took -le 3000

# A program that computes holds the GPUs.
with_driver gantry-trainer --max_steps 1000000000 >/tmp/trainer 2>&1 &
trainer=$!
check "a program uses a GPU" within 60 has_open $trainer /dev/nvidia0
check "an upgrade is refused, and names it" refuses "gantry-trainer" gantry driver upgrade "${to_new[@]}"
check_is "460.56 is still loaded" 460.56 "$(loaded_version)"
check "the program still runs" kill -0 $trainer
check "with --drain --terminate the upgrade works" gantry driver upgrade --drain --terminate --timeout 60 "${to_new[@]}"
check "the program was ended by it" ended_by_signal $trainer
check_is "580.159.04 is loaded" 580.159.04 "$(loaded_version)"
check_is "nvidia-smi finds both GPUs" 2 "$(gpus)"
check "a container computes" says "Test PASSED" in_container gantry-vector-add
check "back to 460.56, without building it again" gantry driver upgrade "${to_old[@]}"
check_is "460.56 is loaded" 460.56 "$(loaded_version)"
check_is "nvidia-smi finds both GPUs" 2 "$(gpus)"

# kill -9 before one of its calls that replace or remove something; then the same command again.
calls="rename,renameat,renameat2,unlink,unlinkat,rmdir,symlink,symlinkat"
kill_upgrade_at() { # NUMBER TO...
  local number=$1
  shift
  strace -f -o /dev/null -e "trace=$calls,finit_module,delete_module" -e "inject=$calls,finit_module,delete_module:signal=KILL:when=$number" gantry driver upgrade "$@" >/tmp/killed 2>&1
  [ $? -eq 137 ]
}
for number in ${GANTRY_VM_KILLS:-6 14}; do
  if ! kill_upgrade_at "$number" "${to_new[@]}"; then break; fi
  check "an upgrade that was killed at call $number is finished by the same command" gantry driver upgrade "${to_new[@]}"
  check_is "580.159.04 is loaded" 580.159.04 "$(loaded_version)"
  check "verify finds nothing wrong" gantry driver verify
  check "back to 460.56" gantry driver upgrade "${to_old[@]}"
done

check "a process holds the T4" hold_file /dev/nvidia1
check "removal is refused, and names it" refuses "$holder" gantry driver remove
release_file
check "removal works" gantry driver remove
machine_state >/tmp/state-after
check "files, loader cache and modules are as before" diff /tmp/state-before /tmp/state-after
check "another removal finds nothing" refuses "no driver" gantry driver remove

# A kernel that enforces signatures: from here on until the host ends.
check "signatures are enforced" put /sys/module/module/parameters/sig_enforce Y
check "an unsigned module is refused before anything changes" refuses "is not signed" gantry driver install "${to_new[@]}"
check "the kernel would refuse it, too" refuses "Key was rejected by service" insmod "$drivers/580.159.04/nvidia.ko"
machine_state >/tmp/state-after
check "nothing was left" diff /tmp/state-before /tmp/state-after
to_new[7]=$drivers/580.159.04-signed
check "a signed one is installed" gantry driver install "${to_new[@]}"
check_is "580.159.04 is loaded" 580.159.04 "$(loaded_version)"
check "a container computes" says "Test PASSED" in_container gantry-vector-add
check "removal works" gantry driver remove
machine_state >/tmp/state-after
check "everything is as before" diff /tmp/state-before /tmp/state-after
