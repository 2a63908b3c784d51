// SPDX-License-Identifier: Apache-2.0
// Judges the health of a GPU from the values of NVML and the kernel, with reasons. It contains only
// rules and reads nothing.
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
  std::string lost;                   // why it counts as lost; "" if it answers
  bool reset_required = false;        // NVML_ERROR_RESET_REQUIRED
  std::vector<std::string> failures;  // failed calls that should have succeeded, one sentence each
  std::optional<std::uint64_t> ecc_uncorrected_volatile;
  std::optional<bool> page_retirement_pending;
  std::optional<bool> row_remap_pending;
  std::optional<bool> row_remap_failure;
  std::optional<RecoveryAction> recovery_action;
  bool thermal_slowdown = false;
  bool power_brake = false;
  std::string fabric_clique;  // "CLUSTER-UUID.CLIQUE" if it has joined one; not part of the verdict
  std::string fabric;         // why the NVLink fabric is not ready; "" when it is or there is none
};

// Lost has priority over Degraded, and Degraded over Ok. Every rule that applies adds its reason.
model::Health assess_health(const HealthFacts& facts);

}  // namespace gantry::probe
