// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/xid.hpp"

#include "base/core/text.hpp"

#include <array>
#include <limits>

namespace gantry::health {
namespace {

struct Row {
  unsigned first = 0;
  unsigned last = 0;
  XidMeaning meaning;
};

constexpr std::string_view kProgram = "look at the program";
constexpr std::string_view kReset = "reset the GPU";
constexpr std::string_view kDrain = "drain and reset the GPU";

using C = XidClass;
constexpr auto kCard = XidScope::Card;
constexpr auto kInstance = XidScope::Instance;

// One row for each known number; sorted.
constexpr std::array kRows{
    Row{8, 8, {C::Application, kInstance, "a program's kernel ran too long", kProgram}},
    Row{13, 13, {C::Application, kInstance, "graphics engine exception", kProgram}},
    Row{31, 31, {C::Application, kInstance, "MMU fault: bad address in a kernel", kProgram}},
    Row{32, 32, {C::Application, kInstance, "invalid or corrupted push buffer", kProgram}},
    Row{37, 37, {C::Application, kInstance, "a program met an error in the driver", kProgram}},
    Row{43, 43, {C::Application, kInstance, "a channel was stopped", kProgram}},
    Row{44, 44, {C::Application, kInstance, "graphics engine fault on context switch", kProgram}},
    Row{45, 45, {C::Application, kInstance, "cleanup after an earlier error", kProgram}},
    Row{48, 48, {C::Drain, kCard, "uncorrectable ECC error", kDrain}},
    Row{61, 61, {C::Reset, kCard, "microcontroller breakpoint", kReset}},
    Row{62, 62, {C::Reset, kCard, "microcontroller halt", kReset}},
    Row{63, 63, {C::Watch, kCard, "row remap or page retirement recorded", "reset when idle"}},
    Row{64,
        64,
        {C::Replace, kCard, "row remap or page retirement failed", "drain; replace the card"}},
    Row{68, 68, {C::Application, kInstance, "video engine exception", kProgram}},
    Row{69, 69, {C::Application, kInstance, "graphics engine class error", kProgram}},
    Row{74, 74, {C::Reset, kCard, "NVLink error", "check the fabric; reset the GPU"}},
    Row{79, 79, {C::Reboot, kCard, "the GPU fell off the bus", "reboot; check power and riser"}},
    Row{92, 92, {C::Watch, kCard, "high rate of corrected errors", "watch it; reset when idle"}},
    Row{93, 93, {C::Watch, kCard, "the information ROM was written too often", "watch it"}},
    Row{94, 94, {C::Contained, kInstance, "contained ECC error", "restart the program it hit"}},
    Row{95, 95, {C::Drain, kCard, "uncontained ECC error", kDrain}},
    Row{109, 109, {C::Application, kInstance, "context switch timeout", kProgram}},
    Row{119, 119, {C::Reset, kCard, "GSP firmware did not answer", "reset; update the driver"}},
    Row{120, 120, {C::Reset, kCard, "GSP firmware error", "reset; update the driver"}},
    Row{121, 121, {C::Watch, kCard, "chip-to-chip link error, corrected", "reset when idle"}},
    Row{122, 122, {C::Reset, kCard, "SPI communication failed", kReset}},
    Row{123, 123, {C::Reset, kCard, "power management unit does not answer", kReset}},
    Row{140, 140, {C::Drain, kCard, "unrecovered ECC error", kDrain}},
    Row{143, 143, {C::Reset, kCard, "the GPU did not start", kReset}},
    Row{144,
        150,
        {C::Watch, kCard, "NVLink error of a newer kind", "see Xid 154, which follows it"}},
    Row{151, 153, {C::Reset, kCard, "an error of a newer kind", kReset}},
    Row{154, 154, {C::Watch, kCard, "the driver wants another recovery action", "do what it says"}},
};

constexpr XidMeaning kUnknown{C::Reset, kCard, "an error of the driver or the GPU",
                              "look at the lines around it"};

constexpr std::array<std::string_view, 7> kWords{"application", "watch",  "contained", "reset",
                                                 "drain",       "reboot", "replace"};

// Fills `numbers`; returns true if the list contains "all".
bool read_list(const std::optional<std::string>& text, std::set<unsigned>& numbers,
               std::vector<std::string>& ignored) {
  if (!text) return false;
  std::set<unsigned> found;
  for (const auto device : split(*text, ',')) {
    const auto word = to_lower(trim(device));
    if (word.empty()) continue;
    if (word == "all" || word == "xids") return true;
    const auto number = parse_u64(word);
    if (number && *number <= std::numeric_limits<unsigned>::max()) {
      found.insert(static_cast<unsigned>(*number));
    } else {
      ignored.push_back(word);
    }
  }
  numbers.merge(found);
  return false;
}

}  // namespace

std::string_view to_string(XidClass kind) {
  return kWords[static_cast<std::size_t>(kind)];
}

std::optional<XidClass> xid_class_from_string(std::string_view word) {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i] == word) return static_cast<XidClass>(i);
  }
  return std::nullopt;
}

std::optional<XidMeaning> find_xid_meaning(unsigned xid) {
  for (const auto& row : kRows) {
    if (row.first <= xid && xid <= row.last) return row.meaning;
  }
  return std::nullopt;
}

XidMeaning xid_meaning(unsigned xid) {
  return find_xid_meaning(xid).value_or(kUnknown);
}

bool XidPolicy::counts(unsigned xid) const {
  if (all_count || critical.contains(xid)) return true;
  if (none_count || harmless.contains(xid)) return false;
  return xid_meaning(xid).kind >= XidClass::Reset;
}

ParsedXidPolicy parse_xid_policy(const XidSettings& settings) {
  ParsedXidPolicy read;
  auto& policy = read.policy;
  policy.harmless.insert(settings.harmless.begin(), settings.harmless.end());
  policy.critical.insert(settings.critical.begin(), settings.critical.end());
  policy.none_count = read_list(settings.disable, policy.harmless, read.ignored);
  policy.all_count = read_list(settings.enable, policy.critical, read.ignored);
  if (read_list(settings.gke, policy.critical, read.ignored)) read.ignored.emplace_back("all");
  return read;
}

}  // namespace gantry::health
