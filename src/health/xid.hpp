// SPDX-License-Identifier: Apache-2.0
// What the driver's error numbers (XIDs) mean for a GPU, as data, and who may change it.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::health {

// From harmless to hopeless.
enum class XidClass : std::uint8_t {
  Application,  // a program's own fault: its owner is told, the GPU stays
  Watch,        // worth a line, the GPU stays
  Contained,    // the programs it hit are gone, or must go; the GPU stays
  Reset,        // the GPU needs a reset
  Drain,        // no new work; reset when the last program has left
  Reboot,       // the machine needs a reboot
  Replace       // the card is broken
};
std::string_view to_string(XidClass kind);

struct XidMeaning {
  XidClass kind = XidClass::Watch;
  std::string_view meaning;  // "the GPU fell off the bus"
  std::string_view advice;   // "reboot; check power and riser"
  bool whole_card = true;    // an instance's event takes the whole card with it
};

// Numbers that are in no table give Reset: NVIDIA's own plugin withdraws a GPU for all of them.
XidMeaning meaning_of(unsigned xid);
bool is_known(unsigned xid);

// Deviations from the table.
struct XidPolicy {
  bool none_count = false;      // DP_DISABLE_HEALTHCHECKS=all or xids
  std::set<unsigned> harmless;  // DP_DISABLE_HEALTHCHECKS, configuration
  std::set<unsigned> critical;  // DP_ENABLE_HEALTHCHECKS, HealthCriticalXid: count whatever else
  bool operator==(const XidPolicy&) const = default;

  // Whether an event with this number takes a GPU away.
  bool counts(unsigned xid) const;
};

struct XidSettings {
  std::optional<std::string> disable;  // DP_DISABLE_HEALTHCHECKS: "all", "xids", "13,31"
  std::optional<std::string> enable;   // DP_ENABLE_HEALTHCHECKS: "all", "48,79"
  std::optional<std::string> gke;      // XID_CONFIG: "48,79"
  std::vector<unsigned> critical;      // HealthCriticalXid of gpu_config.json, configuration
  std::vector<unsigned> harmless;      // configuration
};
// Words that are neither a number nor "all" or "xids" are left alone and returned in `ignored`, as
// NVIDIA's plugin does: a typing error there must not stop a node.
XidPolicy policy_from(const XidSettings& settings, std::vector<std::string>* ignored = nullptr);

}  // namespace gantry::health
