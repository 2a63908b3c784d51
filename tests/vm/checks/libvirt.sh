# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# libvirt starts guests from the XML of `gantry vm config --for libvirt`: GPUs that Gantry bound, GPUs that libvirt binds itself, vGPUs.
guest=$parts/6.1
small_guest=(--memory 256MiB --cpus 1 --firmware bios)
virsh() { timeout 120 /usr/bin/virsh -q -c qemu:///system "$@"; }

# Debian's packages, unpacked: users, settings and directories are what their scripts would make.
install_libvirt() {
  cp -a "$parts/libvirt/." / && ldconfig || return
  echo 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin' >>/etc/passwd
  printf 'libvirt-qemu:x:64055:\nlibvirt:x:64056:\n' >>/etc/group
  mkdir -p /var/lib/libvirt /var/log/libvirt /run/libvirt
  # This host has no systemd: no machines, no cgroups of it, no virtlogd.
  printf '%s\n' 'user = "root"' 'group = "root"' 'security_driver = "none"' 'cgroup_controllers = []' 'namespaces = []' \
    'remember_owner = 0' 'stdio_handler = "file"' >/etc/libvirt/qemu.conf
  printf '%s\n' 'auth_unix_rw = "none"' 'unix_sock_group = "root"' 'log_outputs = "3:stderr"' >/etc/libvirt/libvirtd.conf
}
start_libvirt() {
  /usr/sbin/libvirtd >/tmp/libvirtd 2>&1 &
  within 60 virsh version
}
# write_domain GPU...: /tmp/guest.xml, with a kernel in the place of a disk, and its console in a file
write_domain() {
  rm -f /tmp/console
  gantry vm config --for libvirt --name guest "${small_guest[@]}" "$@" >/tmp/guest.xml || return
  gantry vm check /tmp/guest.xml || return
  sed -i -e "s|</os>|<kernel>$guest/vmlinux</kernel><initrd>$guest/initrd</initrd><cmdline>console=ttyS0 panic=-1 quiet gantry.nested</cmdline></os>|" \
    -e "s|<console type='pty'/>|<serial type='file'><source path='/tmp/console'/></serial>|" /tmp/guest.xml
}
says_on_console() { within 120 grep -aqsE -- "$1" /tmp/console || { tail -n 20 /tmp/console; tail -n 20 /var/log/libvirt/qemu/guest.log; return 1; }; }
start_guest() {
  virsh undefine guest 2>/dev/null # its UUID comes from the GPUs, so another guest of this name is refused
  virsh define /tmp/guest.xml --validate && virsh start guest
}
guest_ended() { within 60 is_shut_off; }
is_shut_off() { [ "$(virsh domstate guest)" = "shut off" ]; }

check "KVM can be loaded" modprobe kvm-amd
check "libvirt is installed" install_libvirt
check "libvirtd answers" start_libvirt

check "the K620 is bound with its audio function" gantry vfio bind $k620
check "the XML is written, and gantry vm check finds nothing missing" write_domain $k620
check "Gantry's card is not libvirt's to bind" grep -qF "managed='no'" /tmp/guest.xml
check "libvirt starts the guest" start_guest
check "the guest sees the K620" says_on_console 'gantry-guest: 0x10de:0x13bb class 0x030000 node 0'
check "it ends" guest_ended
check_is "the K620 is still Gantry's" vfio-pci "$(driver_of $k620)"
check "it is released" gantry vfio release $k620

check "the XML of a card that nvidia has is written" write_domain $t4
check "libvirt is to bind it" grep -qF "managed='yes'" /tmp/guest.xml
check "libvirt starts the guest" start_guest
check "the guest sees the T4" says_on_console 'gantry-guest: 0x10de:0x1eb8 class 0x030200 node 0'
check "it ends" guest_ended
check "libvirt gives the T4 back to nvidia" within 20 is_bound $t4 nvidia

check "the vGPU part can be loaded" modprobe nvidia-vgpu-vfio
check "a T4-4Q can be created" gantry vgpu create T4-4Q --gpu 3
check "the XML of the mediated device is written" write_domain "$(basename /sys/bus/mdev/devices/*)"
check "libvirt starts the guest" start_guest
check "the guest sees it" says_on_console 'gantry-guest: 0x10de:0x1eb8'
check "it ends" guest_ended
check "the vGPU can be removed" gantry vgpu remove --all --gpu 3

check "the driver can be loaded with the vendor's VFIO" load_driver vendor_vfio=1
check "and its vGPU part" modprobe nvidia-vgpu-vfio framework=vendor
check "an A10-4Q can be created" gantry vgpu create A10-4Q --gpu 0
check "the XML of the VF is written" write_domain $vf
check "and says which libvirt can start it" says "libvirt 10.0 or later" gantry vm config --for libvirt "${small_guest[@]}" $vf
check "this one, 9.0, refuses it as the note says" refuses "must be manually detached" start_guest
check_is "the VF stayed with nvidia" nvidia "$(driver_of $vf)"
check "the vGPU can be removed" gantry vgpu remove --all --gpu 0
check "the A10 is without VFs" put $devices/$a10/sriov_numvfs 0
check "the driver can be loaded as before" load_driver
