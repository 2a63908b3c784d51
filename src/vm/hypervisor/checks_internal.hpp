// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vm/hypervisor/check.hpp"
#include "vm/hypervisor/vm_description.hpp"
#include "vm/hypervisor/vmx.hpp"

namespace gantry::hypervisor {

CheckedFile check_description(const VmDescription& vm, std::span<const GuestGpu> machine);
CheckedFile check_vmx(const VmxFile& file);

// Passthrough and vGPU in one virtual machine.
Finding mixed_finding(int line);

constexpr std::string_view kNumaWhy =
    "the guest has no ACPI _PXM for the GPU and shows NUMA node -1: TensorFlow says \"successful "
    "NUMA node read from SysFS had negative value (-1)\", and on a guest with several nodes memory "
    "may be placed on the far one";

}  // namespace gantry::hypervisor
