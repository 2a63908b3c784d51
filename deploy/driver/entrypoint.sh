#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which driver, and where; then nvidia-driver-installer. Each of the variables can also be set in daemonset.yaml.
set -eu
set -x # the log begins with what was asked for

NVIDIA_DRIVER_VERSION="${NVIDIA_DRIVER_VERSION:-580.159.04}"
NVIDIA_DRIVER_DOWNLOAD_URL_DEFAULT="https://us.download.nvidia.com/tesla/${NVIDIA_DRIVER_VERSION}/NVIDIA-Linux-x86_64-${NVIDIA_DRIVER_VERSION}.run"
NVIDIA_DRIVER_DOWNLOAD_URL="${NVIDIA_DRIVER_DOWNLOAD_URL:-$NVIDIA_DRIVER_DOWNLOAD_URL_DEFAULT}"
NVIDIA_INSTALL_DIR_HOST="${NVIDIA_INSTALL_DIR_HOST:-/var/lib/nvidia}"
NVIDIA_INSTALL_DIR_CONTAINER="${NVIDIA_INSTALL_DIR_CONTAINER:-/usr/local/nvidia}"
ROOT_MOUNT_DIR="${ROOT_MOUNT_DIR:-/root}"
set +x

export NVIDIA_DRIVER_VERSION NVIDIA_DRIVER_DOWNLOAD_URL NVIDIA_INSTALL_DIR_HOST NVIDIA_INSTALL_DIR_CONTAINER ROOT_MOUNT_DIR

# An image without Gantry uses the package of the node.
for installer in /usr/bin/nvidia-driver-installer "${ROOT_MOUNT_DIR}/usr/bin/nvidia-driver-installer"; do
  [ -x "$installer" ] && exec "$installer" "$@"
done
echo "entrypoint.sh: there is no nvidia-driver-installer in this image, and none in ${ROOT_MOUNT_DIR}/usr/bin: build the image with deploy/driver/Dockerfile, or install the package gantry on the node" >&2
exit 1
