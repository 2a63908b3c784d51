// SPDX-License-Identifier: Apache-2.0
// What the driver's error numbers (XIDs) mean for a GPU, as data, and who may change it.
#pragma once

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
std::optional<XidClass> xid_class_from_string(std::string_view word);

enum class XidScope : std::uint8_t {
  Card,
  Instance
};  // what an event of a MIG instance takes with it

struct XidMeaning {
  XidClass kind = XidClass::Reset;
  XidScope scope = XidScope::Card;
  std::string_view meaning;  // "the GPU fell off the bus"
  std::string_view advice;   // "reboot; check power and riser"
};

// Numbers that are in no table count as Reset: NVIDIA's own plugin withdraws a GPU for all of them,
// and here the driver's recovery action brings it back where it was nothing.
XidMeaning xid_meaning(unsigned xid);
std::optional<XidMeaning> find_xid_meaning(unsigned xid);  // nullopt: in no table

// Deviations from the table.
struct XidPolicy {
  bool none_count = false;      // DP_DISABLE_HEALTHCHECKS=all or xids
  bool all_count = false;       // DP_ENABLE_HEALTHCHECKS=all
  std::set<unsigned> harmless;  // DP_DISABLE_HEALTHCHECKS, configuration
  std::set<unsigned> critical;  // DP_ENABLE_HEALTHCHECKS, HealthCriticalXid: these always count
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

struct ParsedXidPolicy {
  XidPolicy policy;
  // Words that are neither a number nor "all" or "xids". NVIDIA's plugin goes on without them, and
  // so do we, for a typing error must not stop a node; say it to somebody.
  std::vector<std::string> ignored;
};
ParsedXidPolicy parse_xid_policy(const XidSettings& settings);

}  // namespace gantry::health
