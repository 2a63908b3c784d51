// SPDX-License-Identifier: Apache-2.0
// The doctor's reports: text for people, JSON for programs, and the table in the documentation.
#pragma once

#include "doctor/engine/repair.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::doctor {

enum class Detail : std::uint8_t {
  Findings,  // what is wrong; one line for each info; nothing of checks that passed or were skipped
  All
};

struct Style {
  bool color = false;
  std::size_t width = 100;
  Detail detail = Detail::Findings;
};

// Grouped by verdict, the worst first. A finding that another one explains is a line below it. Ends
// with the summary line.
std::string report_text(const std::vector<CheckResult>& outcomes, const Style& style);
std::string fixes_text(const std::vector<FixReport>& fixes, const Style& style);
// One line that names the checks that were skipped because only root may read their files; "" if
// there are none.
std::string describe_unreadable(const std::vector<CheckResult>& outcomes, const sys::Host& host);
bool has_safe_fix(
    const std::vector<CheckResult>& outcomes);          // would a plain --fix change anything?
std::string summary_line(const VerdictCounts& counts);  // "47 checks: 44 ok, 1 info, ..."

constexpr int kReportSchema = 1;
std::string report_json(const std::vector<CheckResult>& outcomes,
                        const std::vector<FixReport>& fixes, const Guest& guest);

std::string_view fix_rule(const Check& check);  // "by hand only", "safe: --fix does it", ...
std::string explain_text(const Check& check, const Style& style);
std::string list_text(const std::vector<const Check*>& checks);
std::string list_json(const std::vector<const Check*>& checks);      // also for --explain --json
std::string list_markdown(const std::vector<const Check*>& checks);  // the table in docs/doctor.md

}  // namespace gantry::doctor
