# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# docs/walkthroughs/002c: the commands of the notes, line by line, then Gantry's, with a real containerd.
page=$here/../../docs/walkthroughs/002c-a-gpu-for-a-virtual-machine.md

start_containerd() {
  "$here/walk" --image /tmp/image.tar || return
  mkdir -p /etc/containerd /programs && rm -f /etc/containerd/config.toml
  cp "$parts/bin/vfio_group" /programs/ || return
  # The kernel lays no overlay of a container over the overlay that is this host's root.
  mkdir -p /var/lib/containerd && mount -t tmpfs tmpfs /var/lib/containerd || return
  containerd >/tmp/containerd 2>&1 &
  containerd=$!
  within 60 timeout 20 ctr version && ctr image import /tmp/image.tar
}
end_containerd() {
  kill $containerd
  wait $containerd
  return 0
}

check "containerd is ready" start_containerd
walk_page "$page"
end_containerd
check_is "nvidia has both A10 again" "nvidia nvidia" "$(driver_of $a10) $(driver_of $twin)"
