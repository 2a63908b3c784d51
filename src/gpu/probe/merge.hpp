// SPDX-License-Identifier: Apache-2.0
// Two views of one machine become one inventory. GPUs are matched by PCI address, then by UUID;
// what both know must agree or becomes a Difference; what one knows fills what the other does not.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/probe/kernel_view.hpp"
#include "gpu/probe/pci.hpp"

namespace gantry::probe {

// Fills driver, gpus, links, functions, differences and notes. `nvml` is read_nvml_view's value;
// with driver.nvml_error set, the kernel alone is believed: PCI order, health and MIG unknown.
model::Inventory merge(const PciScan& pci, const KernelView& kernel, model::Inventory nvml);

}  // namespace gantry::probe
