// SPDX-License-Identifier: Apache-2.0
// One node made ready by hand, and that taken back: what containers start from, the engines that
// need to be told, the agent. What was done is written down before it is done, so `down` undoes
// exactly that, also after a crash; what was there before stays.
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
  bool restart = false;    // engines that were told something new
  bool take_over = false;  // another tool's specification of our kind is moved aside
  bool agent = true;
  std::string program = "/usr/bin/gantry";
  // Runs a program of the machine: its output, or an error. Empty: not ours to run, as in a tree.
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

// A step that fails is reported and does not keep the others from being tried, but the first: no
// engine and no agent can use a machine whose driver is not there. Then the error.
Result<NodeReport> node_up(const sys::Host& host, const NodeOptions& options);

// NotFound when nothing was written down. What could not be undone stays written down.
Result<NodeReport> node_down(const sys::Host& host, const NodeOptions& options);

}  // namespace gantry::setup
