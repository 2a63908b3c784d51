// SPDX-License-Identifier: Apache-2.0
// Merges two views of one machine into one inventory. GPUs are matched by PCI address, then by
// UUID. Values that both views have must agree, otherwise a Discrepancy is added; each view fills
// the gaps of the other.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/probe/kernel_view.hpp"
#include "gpu/probe/pci.hpp"

namespace gantry::probe {

// Fills driver, gpus, links, functions, differences and notes. `nvml` is read_nvml_view's value; if
// driver.nvml_error is set, only the kernel's view is used: PCI order, health and MIG unknown.
model::Inventory merge(const PciScan& pci, const KernelView& kernel, model::Inventory nvml);

}  // namespace gantry::probe
