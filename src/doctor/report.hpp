// SPDX-License-Identifier: Apache-2.0
// What the doctor says: to people, to programs, and in the documentation.
#pragma once

#include "doctor/repair.hpp"

#include <string>
#include <vector>

namespace gantry::doctor {

struct Style {
  bool color = false;
  std::size_t width = 100;
};

// By verdict, worst first; only what is not well is expanded. Ends with the summary line.
std::string report_text(const std::vector<Outcome>& outcomes, const Style& style);
std::string fixes_text(const std::vector<FixReport>& fixes, const Style& style);
std::string summary_line(const Counts& counts);  // "47 checks: 44 ok, 1 info, ..."

constexpr int kReportSchema = 1;
std::string report_json(const std::vector<Outcome>& outcomes, const std::vector<FixReport>& fixes,
                        const Guest& guest);

std::string explain_text(const Check& check, const Style& style);
std::string list_text();
std::string list_json();
std::string list_markdown();  // the table in docs/doctor.md

}  // namespace gantry::doctor
