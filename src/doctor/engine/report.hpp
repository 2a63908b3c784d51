// SPDX-License-Identifier: Apache-2.0
// What the doctor says: to people, to programs, and in the documentation.
#pragma once

#include "doctor/engine/repair.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

struct Style {
  bool color = false;
  std::size_t width = 100;
};

// By verdict, worst first; only what is not well is expanded. Ends with the summary line.
std::string report_text(const std::vector<CheckResult>& outcomes, const Style& style);
std::string fixes_text(const std::vector<FixReport>& fixes, const Style& style);
// One line for whom root's files were closed: which checks could not be made. "" when all were.
std::string describe_unreadable(const std::vector<CheckResult>& outcomes, const sys::Host& host);
bool has_safe_fix(const std::vector<CheckResult>& outcomes);  // would plain --fix do something?
std::string summary_line(const VerdictCounts& counts);        // "47 checks: 44 ok, 1 info, ..."

constexpr int kReportSchema = 1;
std::string report_json(const std::vector<CheckResult>& outcomes,
                        const std::vector<FixReport>& fixes, const Guest& guest);

std::string_view fix_rule(const Check& check);  // "by hand only", "safe: --fix does it", ...
std::string explain_text(const Check& check, const Style& style);
std::string list_text(const std::vector<const Check*>& checks);
std::string list_json(const std::vector<const Check*>& checks);  // also what --explain --json says
std::string list_markdown(const std::vector<const Check*>& checks);  // the table in docs/doctor.md

}  // namespace gantry::doctor
