// SPDX-License-Identifier: Apache-2.0
// Runs checks and counts what they found.
#pragma once

#include "base/core/result.hpp"
#include "doctor/engine/check.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

// What `--fix` would do about a finding.
enum class Offer : std::uint8_t {
  Nothing,    // all is well, or nobody but a person may
  ByHand,     // of class A or R, but no step can be done here: the row's by_hand says why
  Elsewhere,  // only programs of the machine would help, and this tree is not the one we run on
  Automatic,  // with --fix
  OnRequest,  // with --fix=ID
};

struct Outcome {
  const Check* check = nullptr;
  Finding finding;
  Offer offer = Offer::Nothing;
  std::string fix;  // what to type, as root, for --fix to do it; "" when it would not

  // The finding's own words, or the row's.
  std::string cause() const;
  std::string remedy() const;
};

// An id ("numa.unknown"), a pattern ("node.*") or a reference number ("H15").
struct Selection {
  std::vector<std::string> only;  // empty: all
  std::vector<std::string> skip;
};

bool matches(const Check& check, std::string_view pattern);

// The checks of `all` that the selection names. Invalid, with the nearest ids, if a pattern matches
// no check.
Result<std::vector<const Check*>> select(const std::vector<const Check*>& all,
                                         const Selection& selection);

// The steps of a remedy that can be done here, and those that only the machine itself can do.
struct Plan {
  std::vector<Action> steps;
  std::vector<Action> left;
};
Plan plan_of(const Check& check, const Facts& facts);

// "gantry doctor --root DIR --fix=ID": the machine is named, because sudo keeps no environment and
// the remedy of one machine must not reach another. Without an id: all that is safe.
std::string root_flag(const sys::Host& host);  // " --root DIR"; "" for the machine we run on
std::string fix_command(const sys::Host& host, std::string_view id);

std::vector<Outcome> examine(const Facts& facts, const std::vector<const Check*>& checks);

struct Counts {
  int ok = 0;
  int info = 0;
  int warn = 0;
  int fail = 0;
  int skip = 0;
  int total() const { return ok + info + warn + fail + skip; }
  bool operator==(const Counts&) const = default;
};

Counts count(const std::vector<Outcome>& outcomes);

}  // namespace gantry::doctor
