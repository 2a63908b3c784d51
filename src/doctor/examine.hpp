// SPDX-License-Identifier: Apache-2.0
// Runs checks and counts what they found.
#pragma once

#include "base/result.hpp"
#include "doctor/check.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

struct Outcome {
  const Check* check = nullptr;
  Finding finding;

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

// Invalid, with the nearest ids, when a pattern names nothing.
Result<std::vector<const Check*>> select(const Selection& selection);

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
