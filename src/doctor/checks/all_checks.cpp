// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/all_checks.hpp"

#include "doctor/checks/check_tables_internal.hpp"

namespace gantry::doctor {

std::vector<const Check*> all_checks() {
  std::vector<const Check*> checks;
  for (const auto area : areas()) {
    for (const auto& check : area) checks.push_back(&check);
  }
  return checks;
}

const Check* find_check(std::string_view id) {
  for (const auto* check : all_checks()) {
    if (check->id == id) return check;
  }
  return nullptr;
}

}  // namespace gantry::doctor
