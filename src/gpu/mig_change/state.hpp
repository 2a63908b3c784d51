// SPDX-License-Identifier: Apache-2.0
// What is kept of each GPU in /var/lib/gantry/mig: the layout that it should have (instances are
// lost at a reboot), and the change that is under way, with the layout before it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/mig_change/steps.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig_change {

inline constexpr std::string_view kStateDirectory = "/var/lib/gantry/mig";

// It is removed when the change is complete or undone, so one that is there means that a program
// was killed, or that the driver hung.
struct StoredChange {
  std::string what;  // the command: "gantry mig apply --gpu 0000:3b:00.0 3g.71gb"
  Layout former;
  Layout wanted;
  bool operator==(const StoredChange&) const = default;
};

struct GpuState {
  model::PciAddress gpu;
  model::GpuUuid uuid;           // another card in the slot gets nothing of it
  std::optional<Layout> stored;  // what should exist; nullopt: it is not managed
  std::optional<StoredChange> change;
  bool operator==(const GpuState&) const = default;
};

std::string state_path(const model::PciAddress& gpu);

// A GPU without a file is not managed. Corrupt, with the file and what helps, if it is damaged;
// Unsupported if a later version wrote it.
Result<GpuState> read_state(const sys::Host& host, const model::PciAddress& gpu);

// Of every GPU that has a file. A file that cannot be read is in `problems`.
struct StoredStates {
  std::vector<GpuState> states;
  std::vector<Error> problems;
};
StoredStates read_states(const sys::Host& host);

std::string to_json(const GpuState& state);
Result<GpuState> parse_state(std::string_view text);

}  // namespace gantry::mig_change
