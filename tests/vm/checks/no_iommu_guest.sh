# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A virtual machine whose host gave it no IOMMU.
check "list says why" grep -qF "itself a virtual machine without an IOMMU" <(gantry vfio list)
check "bind is refused" refuses "itself a virtual machine without an IOMMU" gantry vfio bind $a10
check "the remedy is for its host" refuses "intel-iommu,intremap=on,caching-mode=on" gantry vfio bind $a10
check_is "nvidia has the A10" nvidia "$(driver_of $a10)"
check "doctor knows that this is a guest" doctor_says guest.kind ok "QEMU"
check "doctor does not ask for an IOMMU in a guest" doctor_says iommu.off skip "does not need an IOMMU"
check "a GPU that is meant for a virtual machine needs one" put $devices/$t4/driver_override vfio-pci
check "doctor asks for it then" doctor_says iommu.off fail "a GPU is meant for a VM"
check "the T4 is the host's again" put $devices/$t4/driver_override ""
check "doctor does not judge copies between GPUs in a guest" doctor_says iommu.translating skip "its host decides"

# A guest with a vGPU: the driver calls it GRID.
sed 's/NVIDIA A10/GRID A10-8Q/' /run/gantry-sim/machine >/tmp/machine
check "the driver can have vGPUs of a guest" load_driver machine=/tmp/machine
check "doctor misses the licence" doctor_says guest.licence warn "this vGPU has no licence"
mkdir -p /etc/nvidia/ClientConfigToken
check "a token is installed" put /etc/nvidia/ClientConfigToken/client.tok token
check "doctor misses the licence daemon" doctor_says guest.licence warn "nvidia-gridd does not run"
check "the driver can be loaded as before" load_driver
check "a node of WSL is there" put /dev/dxg ""
check "doctor misses WSL's libraries" doctor_says guest.wsl fail "WSL has no GPU"
rm /dev/dxg
