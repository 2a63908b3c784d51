// SPDX-License-Identifier: Apache-2.0
// gantry doctor --fix: applies remedies, reports what it did, and runs the checks again.
#pragma once

#include "base/sys/kernel.hpp"
#include "doctor/engine/run_checks.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gantry::doctor {

enum class FixState : std::uint8_t {
  Done,      // every step succeeded; `after` is the verdict of the check afterwards
  Partly,    // the files are written; programs must still be run on the machine itself
  Failed,    // a step failed; the steps after it were not run
  Declined,  // the user answered no
  NotNamed,  // risky: the user must name the check
  ByHand,    // Gantry cannot or must not do this here
};
std::string_view to_string(FixState state);

struct FixStep {
  std::string what;   // as a person would type it
  std::string error;  // "" on success
};

struct FixReport {
  const Check* check = nullptr;
  FixState state = FixState::ByHand;
  std::vector<FixStep> steps;
  Verdict after = Verdict::Fail;
  std::string text;  // why nothing was done, or what is left to do
};

struct FixOptions {
  std::vector<std::string> named;  // ids or patterns of risky fixes to apply without asking
  // Asks the user about a risky fix; empty: the program is not interactive.
  std::function<bool(const CheckResult&, const std::vector<Action>&)> ask;
};

struct RepairReport {
  std::vector<FixReport> fixes;       // one for each check that warned or failed
  std::vector<CheckResult> outcomes;  // of the run after the last fix
};

// Applies fixes and runs the checks again until no fix changes the machine, at most four rounds.
// More than one round is needed because loading a module can require new nodes, and one fix can
// also do the work of another (a node that is created again has the right mode). `look` reads the
// inventory for each round. Remedies that are left to the user refer to the last round.
RepairReport repair(const sys::Host& host, const std::function<model::Inventory()>& look,
                    const FactSources& sources, const std::vector<const Check*>& checks,
                    const FixOptions& options, sys::Kernel& kernel);

}  // namespace gantry::doctor
