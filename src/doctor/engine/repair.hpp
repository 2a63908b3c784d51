// SPDX-License-Identifier: Apache-2.0
// gantry doctor --fix: applies remedies, says what it did, and looks again.
#pragma once

#include "base/sys/kernel.hpp"
#include "doctor/engine/run_checks.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gantry::doctor {

enum class FixState : std::uint8_t {
  Done,      // every step worked; `after` says whether that helped
  Partly,    // the files are written, programs are left to be run on the machine itself
  Failed,    // a step did not; the steps after it were not tried
  Declined,  // the person said no
  NotNamed,  // risky: needs its name
  ByHand,    // no program should, or can, do this here
};
std::string_view to_string(FixState state);

struct FixStep {
  std::string what;   // as a person would type it
  std::string error;  // "" when it worked
};

struct FixReport {
  const Check* check = nullptr;
  FixState state = FixState::ByHand;
  std::vector<FixStep> steps;
  Verdict after = Verdict::Fail;
  std::string text;  // why nothing was done, or what is left to do
};

struct FixOptions {
  std::vector<std::string> named;  // ids or patterns of risky ones to do without asking
  // Asks a person about a risky one; empty: nobody is there to answer.
  std::function<bool(const CheckResult&, const std::vector<Action>&)> ask;
};

struct RepairReport {
  std::vector<FixReport> fixes;       // one for each check that was not well
  std::vector<CheckResult> outcomes;  // after the last fix
};

// `look` reads the machine anew after changes. Loading a module can bring new work (nodes), and one
// remedy can do another's (a node made anew has its mode), so it goes round until nothing more can
// be done, at most four times; what is left to people is said of the machine as it is then.
RepairReport repair(const sys::Host& host, const std::function<model::Inventory()>& look,
                    const FactSources& sources, const std::vector<const Check*>& checks,
                    const FixOptions& options, sys::Kernel& kernel);

}  // namespace gantry::doctor
