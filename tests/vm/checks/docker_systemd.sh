# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Walk-through 003a with the notes' daemon.json as they have it, with native.cgroupdriver=systemd, where systemd manages the cgroups:
# pure cgroup v2, and devices allowed by a program in the kernel. A container keeps its GPUs over `systemctl daemon-reload`.
page=$here/../../docs/walkthroughs/003a-docker-daemon-json.md

# The lines that the page writes into /etc/docker/daemon.json.
daemon_json() {
  sed -n "/tee \/etc\/docker\/daemon.json/,/^END/p" "$page" | sed '1d;$d'
}

# systemd as process 1 of a namespace of its own, which shares the host's files. Without the units that empty /tmp, where the checkout
# of a test may be, or that wait for devices.
start_systemd() {
  local unit
  mkdir -p /etc/docker /var/lib/docker /var/lib/containerd /etc/systemd/system
  # The kernel lays no overlay of a container over the overlay that is this host's root.
  mount -t tmpfs tmpfs /var/lib/docker && mount -t tmpfs tmpfs /var/lib/containerd || return
  for unit in systemd-tmpfiles-setup systemd-tmpfiles-setup-dev systemd-tmpfiles-clean systemd-udevd systemd-udev-trigger systemd-journal-flush; do
    ln -sf /dev/null "/etc/systemd/system/$unit.service"
  done
  daemon_json >/etc/docker/daemon.json
  container=other setsid unshare --pid --fork --mount-proc /lib/systemd/systemd --system --unit=basic.target --show-status=no \
    --log-level=err >/tmp/systemd 2>&1 </dev/null &
  within 120 active basic.target
}
active() { systemctl is-active -q "$1" 2>/dev/null; }
# in_systemd COMMAND...: in its namespaces
init_pid() { pgrep -f '^/lib/systemd/systemd --system' | tail -n 1; }
in_systemd() { nsenter -t "$(init_pid)" -m -p "$@"; }

# The images by the notes' names.
docker_images() {
  "$here/walk" --cuda-images /tmp "$bin" && docker load -q -i /tmp/cuda.tar && docker load -q -i /tmp/add.tar
}
cuda=lxyustc.registrydomain.com:5000/nvidia/cuda:latest

# The page's sudo, for which systemctl has to be in systemd's namespaces.
write_sudo() {
  printf '#!/bin/sh\n[ "$1" != systemctl ] || exec nsenter -t %s -m -p "$@"\nexec "$@"\n' "$(init_pid)" >/usr/bin/sudo && chmod 755 /usr/bin/sudo
}

# The driver's libraries of the same machine, which a virtual machine host does without. This kernel chose the number of nvidia-uvm.
driver_files() {
  sed "s/uvm_major: .*/uvm_major: $(awk '$2 == "nvidia-uvm" { print $1 }' /proc/devices)/" "$here/host.yaml" >/tmp/host.yaml &&
    gantry sim create /tmp/host.yaml --root /tmp/machine --nodes table >/dev/null &&
    cp -a /tmp/machine/usr/lib/x86_64-linux-gnu/. /usr/lib/x86_64-linux-gnu/ && cp /tmp/machine/usr/bin/nvidia-smi /usr/bin/
}

for program in gantry gantry-runtime nvidia-container-runtime nvidia-container-runtime-hook nvidia-container-cli nvidia-ctk; do
  ln -sf "$bin/$program" /usr/bin/
done
check "systemd runs" start_systemd
check_is "it manages cgroup v2 alone" cgroup2fs "$(stat -fc %T /sys/fs/cgroup)"
check "the driver's libraries are there" driver_files
check "docker starts with the notes' daemon.json" in_systemd systemctl start docker
check_is "its cgroup driver is systemd, its runtime ours" "systemd nvidia" "$(docker info --format '{{.CgroupDriver}} {{.DefaultRuntime}}')"
echo "versions: docker $(docker version --format '{{.Server.Version}}'), $(containerd --version | cut -d' ' -f1,3)," \
  "$(runc --version | head -n 1), $(systemctl --version | head -n 1 | cut -d' ' -f1,2), Linux $(uname -r)"
check "the images are loaded" docker_images
check "sudo is there" write_sudo

# The page's own commands, with what it shows: nothing to change, the half file and back, vector-add.
walk_page "$page" 'daemon\.json|runtime configure|cuda-vector-add'
check_is "the file is the notes' again" "$(daemon_json)" "$(cat /etc/docker/daemon.json)"
check_is "docker has its cgroup driver and runtime again" "systemd nvidia" "$(docker info --format '{{.CgroupDriver}} {{.DefaultRuntime}}')"
# The page's table is that of another card and driver.
table=$(docker run --rm --gpus all $cuda nvidia-smi)
check "docker run --gpus all nvidia-smi prints the driver's table" grep -q 'Driver Version: 550.90.07' <<<"$table"
check_is "with a row for each GPU" 5 "$(grep -cE '\| +00000000:[0-9A-F]{2}:00\.0 ' <<<"$table")"
check_is "nvidia-smi -L in a container is the host's" "$(nvidia-smi -L)" "$(docker run --rm --gpus all $cuda nvidia-smi -L)"
check_is "without a flag the image asks by itself" "$(nvidia-smi -L)" "$(docker run --rm nvidia/cuda nvidia-smi -L)"
check_is "and can ask for nothing" "" "$(docker run --rm -e NVIDIA_VISIBLE_DEVICES=void nvidia/cuda ls /dev | grep nvidia)"

start_container() { docker run -d --name "$1" --gpus all $cuda sleep 600; }
# opens CONTAINER [NODE]
opens() { docker exec "$1" sh -c ": < /dev/${2:-nvidia0}"; }

# systemd knows a container's devices by their links in /dev/char, which the driver does not make.
check "a container with all GPUs starts" start_container without_links
check "it opens its GPU" opens without_links
check "systemctl daemon-reload" in_systemd systemctl daemon-reload
check "without links in /dev/char that takes the GPU away" refuses "Operation not permitted" opens without_links
check "doctor names the links" grep -q node.char-links <(gantry doctor --all)
# The package's udev rule makes them when the driver is loaded.
rule=$(sed -n 's/.*RUN+="\(.*create-dev-char-symlinks[^"]*\)".*/\1/p' "$here/../../deploy/udev/71-gantry.rules")
check "the package's udev rule makes the links" sh -c "$rule"
check "a container with all GPUs starts" start_container kept
check "systemctl daemon-reload" in_systemd systemctl daemon-reload
check "the container keeps its GPU" opens kept
check "and the driver's control node" opens kept nvidiactl
check "another device is refused" refuses "Operation not permitted" docker exec kept sh -c 'mknod /bin/mem c 1 1 && : < /bin/mem'
