// SPDX-License-Identifier: Apache-2.0
// The tables that make up all_checks(), one a file.
#pragma once

#include "doctor/check.hpp"

#include <array>
#include <span>

namespace gantry::doctor {

std::span<const Check> guest_checks();
std::span<const Check> pci_checks();
std::span<const Check> binding_checks();
std::span<const Check> iommu_checks();
std::span<const Check> numa_checks();
std::span<const Check> module_checks();
std::span<const Check> install_checks();
std::span<const Check> log_checks();
std::span<const Check> gpu_checks();
std::span<const Check> node_checks();
std::span<const Check> access_checks();

inline auto areas() {
  return std::array{guest_checks(), pci_checks(),    binding_checks(), iommu_checks(),
                    numa_checks(),  module_checks(), install_checks(), log_checks(),
                    gpu_checks(),   node_checks(),   access_checks()};
}

}  // namespace gantry::doctor
