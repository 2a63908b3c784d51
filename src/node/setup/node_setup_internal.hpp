// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node/setup/node_setup.hpp"

#include <cstdint>

namespace gantry::setup {

std::string_view agent_unit_template();
inline constexpr std::string_view kAgentUnitName = "gantry-agent.service";
inline constexpr std::string_view kAgentUnitPath = "/etc/systemd/system/gantry-agent.service";

// The systemd unit with the path of the program.
std::string agent_unit(const std::string& program);

// The actions of a setup, in their order.
enum class SetupAction : std::uint8_t {
  Driver,
  Inventory,
  Spec,
  Moved,
  Engine,
  UnitFile,
  UnitEnabled
};

struct JournalEntry {
  SetupAction action = SetupAction::Driver;
  std::string subject;  // a path, or the name of an engine or a unit
  bool operator==(const JournalEntry&) const = default;
};

class NodeJournal {
 public:
  // Empty if there is no journal. Corrupt if it cannot be read: nothing is undone by guessing.
  static Result<NodeJournal> open(const sys::Host& host);

  const std::vector<JournalEntry>& records() const { return records_; }
  // The entry is on disk when this returns. An entry that exists already is not added again.
  Status add(const JournalEntry& record);
  Status drop(const JournalEntry& record);  // dropping the last entry removes the file

 private:
  explicit NodeJournal(std::string path) : path_(std::move(path)) {}
  Status write() const;
  std::string path_;  // outside the host's root
  std::vector<JournalEntry> records_;
};

struct SetupContext {
  const sys::Host& host;
  const NodeOptions& options;
  NodeJournal& journal;
  NodeReport& report;
  void say(std::string step, std::string where, std::string outcome, bool failed = false) const {
    report.steps.push_back({std::move(step), std::move(where), std::move(outcome), failed});
  }
};

Status refresh_step(const SetupContext& work);
void engine_steps(const SetupContext& work);
void agent_step(const SetupContext& work);

bool has_kubelet(const sys::Host& host);
bool has_systemd(const sys::Host& host);

}  // namespace gantry::setup
