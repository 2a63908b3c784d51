// SPDX-License-Identifier: Apache-2.0
// Selects and runs checks, and counts their verdicts.
#pragma once

#include "base/core/result.hpp"
#include "doctor/engine/check.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

// What `--fix` would do about a finding.
enum class FixOffer : std::uint8_t {
  Nothing,    // the check passed, or only a person may fix it
  ByHand,     // class A or R, but no step is possible here: Check::by_hand says why
  Elsewhere,  // needs programs of the machine, and this tree is not the machine we run on
  Automatic,  // fixed by --fix
  OnRequest,  // fixed by --fix=ID
};

struct CheckResult {
  const Check* check = nullptr;
  Finding finding;
  FixOffer offer = FixOffer::Nothing;
  std::string fix;                // the command, for root, that fixes it; "" if --fix cannot
  const Check* reason = nullptr;  // the failed check whose consequence this is

  // The text of the finding, or of the check if the finding has none.
  std::string cause() const;
  std::string remedy() const;
};

// An id ("numa.unknown"), a pattern ("node.*") or a reference number ("H15").
struct CheckSelection {
  std::vector<std::string> only;  // empty: all
  std::vector<std::string> skip;
};

bool matches(const Check& check, std::string_view pattern);

// The checks of `all` that the selection names. Returns Invalid, with similar ids, if a pattern
// matches no check.
Result<std::vector<const Check*>> select(const std::vector<const Check*>& all,
                                         const CheckSelection& selection);

// The steps of a remedy that can be done here, and those that only the machine itself can do.
struct FixPlan {
  std::vector<Action> steps;
  std::vector<Action> left;
};
FixPlan plan_fix(const Check& check, const Facts& facts);

// "gantry doctor --root DIR --fix=ID". It names the root, because sudo drops the environment and a
// remedy for one machine must not be applied to another. Without an id: all safe fixes.
std::string fix_command(const sys::Host& host, std::string_view id);

std::vector<CheckResult> run_checks(const Facts& facts, const std::vector<const Check*>& checks);

struct VerdictCounts {
  int ok = 0;
  int info = 0;
  int warn = 0;
  int fail = 0;
  int skip = 0;
  int total() const { return ok + info + warn + fail + skip; }
  bool operator==(const VerdictCounts&) const = default;
};

VerdictCounts count(const std::vector<CheckResult>& outcomes);

}  // namespace gantry::doctor
