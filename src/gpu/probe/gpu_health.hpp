// SPDX-License-Identifier: Apache-2.0
// From what NVML and the kernel say about a GPU to a verdict with reasons. Rules only, no reading.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/model/readings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::probe {

using RecoveryAction = model::RecoveryAction;

struct HealthFacts {
  std::string lost;             // why it counts as lost; "" when it answers
  bool reset_required = false;  // NVML_ERROR_RESET_REQUIRED
  std::vector<std::string>
      failures;  // calls that should have worked and did not, one sentence each
  std::optional<std::uint64_t> ecc_uncorrected_volatile;
  std::optional<bool> page_retirement_pending;
  std::optional<bool> row_remap_pending;
  std::optional<bool> row_remap_failure;
  std::optional<RecoveryAction> recovery_action;
  bool thermal_slowdown = false;
  bool power_brake = false;
  std::string fabric_clique;  // "CLUSTER-UUID.CLIQUE" where it has joined one; not judged
  std::string fabric;         // why the NVLink fabric is not ready; "" when it is or there is none
};

// Lost beats Degraded beats Ok; every rule that fires adds its reason.
model::Health assess_health(const HealthFacts& facts);

}  // namespace gantry::probe
