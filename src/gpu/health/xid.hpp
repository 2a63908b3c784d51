// SPDX-License-Identifier: Apache-2.0
// The meaning of the driver's error numbers (XIDs) for a GPU, as a table, and the settings that
// override it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::health {

// From harmless to worst.
enum class XidClass : std::uint8_t {
  Application,  // the program's fault: its owner is told, the GPU stays healthy
  Watch,        // logged, the GPU stays healthy
  Contained,    // the affected programs have ended or must end; the GPU stays healthy
  Reset,        // the GPU needs a reset
  Drain,        // no new work; reset when the last program has left
  Reboot,       // the machine needs a reboot
  Replace       // the card is broken
};
std::string_view to_string(XidClass kind);
std::optional<XidClass> xid_class_from_string(std::string_view word);

enum class XidScope : std::uint8_t {
  Card,
  Instance
};  // what an event of a MIG instance makes unhealthy

struct XidMeaning {
  XidClass kind = XidClass::Reset;
  XidScope scope = XidScope::Card;
  std::string_view meaning;  // "the GPU fell off the bus"
  std::string_view advice;   // "reboot; check power and riser"
};

// Unknown numbers count as Reset: NVIDIA's plugin also marks the GPU unhealthy for them. The
// driver's recovery action makes it healthy again if nothing is wrong.
XidMeaning xid_meaning(unsigned xid);
std::optional<XidMeaning> find_xid_meaning(unsigned xid);  // nullopt: not in the table

// Settings that override the table.
struct XidPolicy {
  bool none_count = false;      // DP_DISABLE_HEALTHCHECKS=all or xids
  bool all_count = false;       // DP_ENABLE_HEALTHCHECKS=all
  std::set<unsigned> harmless;  // DP_DISABLE_HEALTHCHECKS, configuration
  std::set<unsigned> critical;  // DP_ENABLE_HEALTHCHECKS, HealthCriticalXid: these always count
  bool operator==(const XidPolicy&) const = default;

  // Whether an event with this number makes a GPU unhealthy.
  bool counts(unsigned xid) const;
};

struct XidSettings {
  std::optional<std::string> disable;  // DP_DISABLE_HEALTHCHECKS: "all", "xids", "13,31"
  std::optional<std::string> enable;   // DP_ENABLE_HEALTHCHECKS: "all", "48,79"
  std::optional<std::string> gke;      // XID_CONFIG: "48,79"
  std::vector<unsigned> critical;      // HealthCriticalXid of gpu_config.json, configuration
  std::vector<unsigned> harmless;      // configuration
};

struct ParsedXidPolicy {
  XidPolicy policy;
  // Words that are neither a number nor "all" or "xids". They are ignored, as NVIDIA's plugin does,
  // because a typing error must not stop a node. The caller should log them.
  std::vector<std::string> ignored;
};
ParsedXidPolicy parse_xid_policy(const XidSettings& settings);

}  // namespace gantry::health
