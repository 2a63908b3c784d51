// SPDX-License-Identifier: Apache-2.0
// Sets up one node by hand, and undoes it: the files that containers start from, the engines that
// need a configuration, and the agent. Each action is written to a journal before it is done, so
// `down` undoes exactly these actions, also after a crash. Files that were there before are kept.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/engines/change_plan.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::setup {

inline constexpr std::string_view kNodeJournal = "/var/lib/gantry/node.json";

struct NodeOptions {
  bool dry_run = false;
  bool restart = false;    // restart engines whose configuration changed
  bool take_over = false;  // move another tool's specification of our kind aside
  bool agent = true;
  std::string program = "/usr/bin/gantry";
  // Runs a program of the machine and returns its output or an error. Empty: do not run programs,
  // as in a file tree.
  engines::RunProgram run;
  std::chrono::milliseconds deadline{10'000};  // for NVML
};

struct NodeStep {
  std::string step;     // "docker"
  std::string where;    // "/etc/docker/daemon.json"
  std::string outcome;  // a sentence
  bool failed = false;
};

struct NodeReport {
  std::vector<NodeStep> steps;
  std::vector<std::string> notes;
  bool failed() const;
};

// A step that fails is reported, and the other steps are still tried. Only the first step returns
// an error, because no engine and no agent can use a machine without its driver.
Result<NodeReport> node_up(const sys::Host& host, const NodeOptions& options);

// NotFound if the journal is empty. Actions that could not be undone stay in the journal.
Result<NodeReport> node_down(const sys::Host& host, const NodeOptions& options);

}  // namespace gantry::setup
