// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/run_checks.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

bool matches_any(const Check& check, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(check, pattern); });
}

Status refuse_unknown(const std::vector<const Check*>& checks,
                      const std::vector<std::string>& patterns) {
  for (const auto& pattern : patterns) {
    const bool known = std::any_of(checks.begin(), checks.end(),
                                   [&](const Check* check) { return matches(*check, pattern); });
    if (known) continue;
    std::string near;
    for (const auto* check : checks) {
      if (pattern.size() >= 3 && contains(check->id, std::string_view(pattern).substr(0, 3))) {
        near += fmt::format("{}{}", near.empty() ? "; did you mean " : ", ", check->id);
      }
    }
    return Error(Errc::Invalid,
                 fmt::format("there is no check {}{}; `gantry doctor --list` shows all checks",
                             pattern, near));
  }
  return {};
}

FixOffer fix_offer(const Check& check, const Finding& finding, const Facts& facts) {
  const bool well = finding.verdict == Verdict::Ok || finding.verdict == Verdict::Skip;
  if (well || check.fix_class == FixClass::Never) return FixOffer::Nothing;
  const auto plan = plan_fix(check, facts);
  if (plan.steps.empty()) return plan.left.empty() ? FixOffer::ByHand : FixOffer::Elsewhere;
  return check.fix_class == FixClass::Automatic ? FixOffer::Automatic : FixOffer::OnRequest;
}

std::string words_for(FixOffer offer, const Check& check, const sys::Host& host) {
  if (offer == FixOffer::Automatic) return fix_command(host, "");
  return offer == FixOffer::OnRequest ? fix_command(host, check.id) : "";
}

}  // namespace

std::string CheckResult::cause() const {
  return finding.cause.empty() ? std::string(check->cause) : finding.cause;
}

std::string CheckResult::remedy() const {
  return finding.remedy.empty() ? std::string(check->remedy) : finding.remedy;
}

bool matches(const Check& check, std::string_view pattern) {
  return check.reference == pattern || glob_match(pattern, check.id);
}

Result<std::vector<const Check*>> select(const std::vector<const Check*>& all,
                                         const CheckSelection& selection) {
  GANTRY_CHECK(refuse_unknown(all, selection.only));
  GANTRY_CHECK(refuse_unknown(all, selection.skip));
  std::vector<const Check*> chosen;
  for (const auto* check : all) {
    const bool wanted = selection.only.empty() || matches_any(*check, selection.only);
    if (wanted && !matches_any(*check, selection.skip)) chosen.push_back(check);
  }
  return chosen;
}

// In a tree that is not this machine, files may be repaired but programs are not run. The steps
// after a program are left out too, because they may need its result.
FixPlan plan_fix(const Check& check, const Facts& facts) {
  FixPlan plan;
  if (check.fix_class == FixClass::Never || check.fix == nullptr) return plan;
  for (auto& action : check.fix(facts)) {
    const bool here = plan.left.empty() && (facts.this_machine() || !runs_a_program(action));
    (here ? plan.steps : plan.left).push_back(std::move(action));
  }
  return plan;
}

std::string fix_command(const sys::Host& host, std::string_view id) {
  auto text = "gantry doctor" + sys::root_flag(host) + " --fix";
  if (!id.empty()) text += fmt::format("={}", id);
  return text;
}

namespace {

bool is_bad(const CheckResult& outcome) {
  return outcome.finding.verdict == Verdict::Warn || outcome.finding.verdict == Verdict::Fail;
}

const CheckResult* find_reason(const std::vector<CheckResult>& outcomes, const CheckResult& of) {
  for (const auto id : split(of.finding.explained_by, ' ')) {
    const auto found = std::find_if(outcomes.begin(), outcomes.end(), [&](const auto& outcome) {
      return outcome.check->id == id && outcome.finding.verdict == Verdict::Fail;
    });
    if (found != outcomes.end() && found->check != of.check) return &*found;
  }
  return nullptr;
}

// A reason can have a reason of its own: the first one is the fault to repair.
void join_consequences(std::vector<CheckResult>& outcomes) {
  constexpr int kMostSteps = 8;
  for (auto& outcome : outcomes) {
    if (!is_bad(outcome)) continue;
    const auto* reason = find_reason(outcomes, outcome);
    for (int i = 0; reason != nullptr && i < kMostSteps; ++i) {
      outcome.reason = reason->check;
      reason = find_reason(outcomes, *reason);
    }
  }
}

}  // namespace

std::vector<CheckResult> run_checks(const Facts& facts, const std::vector<const Check*>& checks) {
  std::vector<CheckResult> outcomes;
  outcomes.reserve(checks.size());
  for (const auto* check : checks) {
    auto finding = !check->closed.empty() && facts.denied(check->closed)
                       ? skip_needs_root(check->closed)
                       : check->judge(facts);
    const auto offer = fix_offer(*check, finding, facts);
    CheckResult result{check, std::move(finding), offer, words_for(offer, *check, facts.host())};
    result.finding.remedy = sys::remedy_for(facts.host(), result.remedy());
    result.finding.cause = sys::with_root(result.cause(), facts.host().root());
    outcomes.push_back(std::move(result));
  }
  join_consequences(outcomes);
  return outcomes;
}

VerdictCounts count(const std::vector<CheckResult>& outcomes) {
  VerdictCounts counts;
  for (const auto& outcome : outcomes) {
    switch (outcome.finding.verdict) {
      case Verdict::Ok: ++counts.ok; break;
      case Verdict::Info: ++counts.info; break;
      case Verdict::Warn: ++counts.warn; break;
      case Verdict::Fail: ++counts.fail; break;
      case Verdict::Skip: ++counts.skip; break;
    }
  }
  return counts;
}

}  // namespace gantry::doctor
