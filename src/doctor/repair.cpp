// SPDX-License-Identifier: Apache-2.0
#include "doctor/repair.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr int kRounds = 4;

bool named(const Check& check, const FixOptions& options) {
  return std::any_of(options.named.begin(), options.named.end(),
                     [&](const std::string& pattern) { return matches(check, pattern); });
}

// Warnings and failures; information only when somebody asks for it by name.
bool wanted(const Outcome& outcome, const FixOptions& options) {
  const auto verdict = outcome.finding.verdict;
  if (verdict == Verdict::Warn || verdict == Verdict::Fail) return true;
  return verdict == Verdict::Info && named(*outcome.check, options);
}

void apply_all(const std::vector<Action>& actions, const sys::Host& host, sys::Kernel& kernel,
               FixReport& report) {
  report.state = FixState::Done;
  for (const auto& action : actions) {
    const auto status = apply(action, host, kernel);
    report.steps.push_back({describe(action), status.ok() ? "" : status.error().text()});
    if (status.ok()) continue;
    report.state = FixState::Failed;
    report.text = "the steps after the failed one were not tried";
    return;
  }
}

FixReport treat(const Outcome& outcome, const Facts& facts, const FixOptions& options,
                sys::Kernel& kernel) {
  const Check& check = *outcome.check;
  FixReport report{.check = &check,
                   .state = FixState::ByHand,
                   .steps = {},
                   .after = outcome.finding.verdict,
                   .text = outcome.remedy()};
  if (check.fix_class == FixClass::Never || check.fix == nullptr) return report;
  const auto actions = check.fix(facts);
  if (actions.empty()) return report;
  if (std::any_of(actions.begin(), actions.end(), runs_a_program) &&
      !kernel.is_this_machine(facts.host())) {
    report.text = fmt::format("{} is not this machine, and its programs are not run; on it: {}",
                              facts.host().root(), outcome.remedy());
    return report;
  }
  if (check.fix_class == FixClass::OnRequest && !named(check, options)) {
    if (!options.ask) {
      report.state = FixState::NotNamed;
      report.text = fmt::format("risky: sudo gantry doctor --fix={}", check.id);
      return report;
    }
    if (!options.ask(outcome, actions)) {
      report.state = FixState::Declined;
      report.text = "left alone";
      return report;
    }
  }
  report.text.clear();
  apply_all(actions, facts.host(), kernel, report);
  return report;
}

}  // namespace

std::string_view to_string(FixState state) {
  switch (state) {
    case FixState::Done: return "done";
    case FixState::Failed: return "failed";
    case FixState::Declined: return "declined";
    case FixState::NotNamed: return "needs its name";
    case FixState::ByHand: return "by hand";
  }
  return "?";
}

Repair repair(const sys::Host& host, const std::function<model::Inventory()>& look,
              const Sources& sources, const std::vector<const Check*>& checks,
              const FixOptions& options, sys::Kernel& kernel) {
  Repair result;
  for (int round = 0; round < kRounds; ++round) {
    const auto inventory = look();
    const Facts facts(host, inventory, sources);
    result.outcomes = examine(facts, checks);
    bool changed = false;
    for (const auto& outcome : result.outcomes) {
      const auto known =
          std::find_if(result.fixes.begin(), result.fixes.end(),
                       [&](const FixReport& fix) { return fix.check == outcome.check; });
      if (known != result.fixes.end()) {
        known->after = outcome.finding.verdict;
        continue;
      }
      if (!wanted(outcome, options)) continue;
      result.fixes.push_back(treat(outcome, facts, options, kernel));
      changed = changed || !result.fixes.back().steps.empty();
    }
    if (!changed) break;
  }
  return result;
}

}  // namespace gantry::doctor
