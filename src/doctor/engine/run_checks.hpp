// SPDX-License-Identifier: Apache-2.0
// Runs checks and counts what they found.
#pragma once

#include "base/core/result.hpp"
#include "doctor/engine/check.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

// What `--fix` would do about a finding.
enum class FixOffer : std::uint8_t {
  Nothing,    // all is well, or nobody but a person may
  ByHand,     // of class A or R, but no step can be done here: the row's by_hand says why
  Elsewhere,  // only programs of the machine would help, and this tree is not the one we run on
  Automatic,  // with --fix
  OnRequest,  // with --fix=ID
};

struct CheckResult {
  const Check* check = nullptr;
  Finding finding;
  FixOffer offer = FixOffer::Nothing;
  std::string fix;  // what to type, as root, for --fix to do it; "" when it would not

  // The finding's own words, or the row's.
  std::string cause() const;
  std::string remedy() const;
};

// An id ("numa.unknown"), a pattern ("node.*") or a reference number ("H15").
struct CheckSelection {
  std::vector<std::string> only;  // empty: all
  std::vector<std::string> skip;
};

bool matches(const Check& check, std::string_view pattern);

// The checks of `all` that the selection names. Invalid, with the nearest ids, if a pattern matches
// no check.
Result<std::vector<const Check*>> select(const std::vector<const Check*>& all,
                                         const CheckSelection& selection);

// The steps of a remedy that can be done here, and those that only the machine itself can do.
struct FixPlan {
  std::vector<Action> steps;
  std::vector<Action> left;
};
FixPlan plan_fix(const Check& check, const Facts& facts);

// "gantry doctor --root DIR --fix=ID": the machine is named, because sudo keeps no environment and
// the remedy of one machine must not reach another. Without an id: all that is safe.
std::string root_flag(const sys::Host& host);  // " --root DIR"; "" for the machine we run on
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
