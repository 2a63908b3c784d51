// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/repair.hpp"

#include "base/sys/shell_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::doctor {
namespace {

constexpr int kRounds = 4;

bool named(const Check& check, const FixOptions& options) {
  return std::any_of(options.named.begin(), options.named.end(),
                     [&](const std::string& pattern) { return matches(check, pattern); });
}

// Warnings and failures are fixed; an info only if the user names the check.
bool wanted(const CheckResult& outcome, const FixOptions& options) {
  const auto verdict = outcome.finding.verdict;
  if (verdict == Verdict::Warn || verdict == Verdict::Fail) return true;
  return verdict == Verdict::Info && named(*outcome.check, options);
}

void apply_all(const std::vector<Action>& actions, const CheckResult& outcome, const Facts& facts,
               sys::Kernel& kernel, FixReport& report) {
  report.state = FixState::Done;
  for (const auto& action : actions) {
    const auto status = apply(action, facts.host(), kernel);
    report.steps.push_back({describe(action), status.ok() ? "" : status.error().text()});
    if (status.ok()) continue;
    report.state = FixState::Failed;
    report.text = "the steps after the failed step were not run";
    if (status.error().code() == Errc::Denied && facts.caller().uid != 0) {
      report.text += "; as root: sudo " + outcome.fix;
    }
    return;
  }
}

std::string commands_of(const std::vector<Action>& actions) {
  std::string text;
  for (const auto& action : actions) {
    text += fmt::format("{}sudo {}", text.empty() ? "" : " && ", describe(action));
  }
  return text;
}

std::string by_hand_text(const CheckResult& outcome, const Facts& facts) {
  if (outcome.offer == FixOffer::Elsewhere) {
    return fmt::format("{} is not this machine, so its programs cannot be run here; {}",
                       facts.host().root(), outcome.remedy());
  }
  if (outcome.offer != FixOffer::ByHand || outcome.check->by_hand.empty()) return outcome.remedy();
  return fmt::format("{}: {}", outcome.check->by_hand, outcome.remedy());
}

FixReport apply_fix(const CheckResult& outcome, const FixPlan& plan, const Facts& facts,
                    const FixOptions& options, sys::Kernel& kernel) {
  const Check& check = *outcome.check;
  FixReport report{.check = &check,
                   .state = FixState::ByHand,
                   .steps = {},
                   .after = outcome.finding.verdict,
                   .text = ""};
  if (plan.steps.empty()) {
    report.text = by_hand_text(outcome, facts);
    return report;
  }
  if (check.fix_class == FixClass::OnRequest && !named(check, options)) {
    if (!options.ask) {
      report.state = FixState::NotNamed;
      report.text = "risky: sudo " + outcome.fix;
      return report;
    }
    if (!options.ask(outcome, plan.steps)) {
      report.state = FixState::Declined;
      report.text = "left alone";
      return report;
    }
  }
  apply_all(plan.steps, outcome, facts, kernel, report);
  if (report.state != FixState::Done) return report;
  report.text = sys::with_root(check.afterwards, facts.host().root());
  if (!plan.left.empty()) {
    report.state = FixState::Partly;
    report.text = "still to do: " + sys::on_machine(facts.host(), commands_of(plan.left));
  }
  return report;
}

// Returns true if an earlier fix of this round changed the same file: the checks must run again
// first.
bool overlaps(const FixPlan& plan, const std::set<std::string>& touched) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const Action& action) { return touched.contains(target_of(action)); });
}

// One run of the checks and the fixes that follow from it.
class RepairRound {
 public:
  RepairRound(const Facts& facts, const FixOptions& options, sys::Kernel& kernel)
      : facts_(facts), options_(options), kernel_(kernel) {}

  void take(const CheckResult& outcome, std::vector<FixReport>& fixes) {
    const auto known = std::find_if(fixes.begin(), fixes.end(), [&](const FixReport& fix) {
      return fix.check == outcome.check;
    });
    if (known != fixes.end()) {
      known->after = outcome.finding.verdict;
      return;
    }
    if (!wanted(outcome, options_)) return;
    const auto plan = plan_fix(*outcome.check, facts_);
    if (overlaps(plan, touched_)) return;
    auto report = apply_fix(outcome, plan, facts_, options_, kernel_);
    if (report.steps.empty() && report.state != FixState::Declined) {
      waiting_.push_back(std::move(report));
      return;
    }
    changed_ = changed_ || !report.steps.empty();
    for (const auto& action : plan.steps) {
      if (auto target = target_of(action); !target.empty()) touched_.insert(std::move(target));
    }
    fixes.push_back(std::move(report));
  }

  bool changed() const { return changed_; }
  // Reports of checks for which nothing was done; valid only if no other fix changed the machine.
  std::vector<FixReport>& waiting() { return waiting_; }

 private:
  const Facts& facts_;
  const FixOptions& options_;
  sys::Kernel& kernel_;
  std::set<std::string> touched_;
  std::vector<FixReport> waiting_;
  bool changed_ = false;
};

// Sorts by the order in which the checks run.
void sort_by_check(std::vector<FixReport>& fixes, const std::vector<const Check*>& checks) {
  const auto place = [&](const FixReport& fix) {
    return std::find(checks.begin(), checks.end(), fix.check);
  };
  std::stable_sort(fixes.begin(), fixes.end(),
                   [&](const FixReport& a, const FixReport& b) { return place(a) < place(b); });
}

}  // namespace

std::string_view to_string(FixState state) {
  switch (state) {
    case FixState::Done: return "done";
    case FixState::Partly: return "partly done";
    case FixState::Failed: return "failed";
    case FixState::Declined: return "declined";
    case FixState::NotNamed: return "needs its name";
    case FixState::ByHand: return "by hand";
  }
  return "?";
}

RepairReport repair(const sys::Host& host, const std::function<model::Inventory()>& look,
                    const FactSources& sources, const std::vector<const Check*>& checks,
                    const FixOptions& options, sys::Kernel& kernel) {
  RepairReport result;
  for (int round = 0; round <= kRounds; ++round) {
    const auto inventory = look();
    const Facts facts(host, inventory, sources);
    result.outcomes = run_checks(facts, checks);
    RepairRound now(facts, options, kernel);
    for (const auto& outcome : result.outcomes) now.take(outcome, result.fixes);
    if (now.changed() && round < kRounds) continue;
    for (auto& report : now.waiting()) result.fixes.push_back(std::move(report));
    break;
  }
  sort_by_check(result.fixes, checks);
  return result;
}

}  // namespace gantry::doctor
