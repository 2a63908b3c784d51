// SPDX-License-Identifier: Apache-2.0
// Asks the engine's own program whether it reads the files as intended.
#pragma once

#include "container/engines/change_plan.hpp"

namespace gantry::engines {

struct ConfigCheck {
  enum class Verdict : std::uint8_t { Passed, NotAsked, Failed };
  Verdict verdict = Verdict::NotAsked;
  std::string text;  // the program and its answer, or why no program was asked
};

ConfigCheck check(const ChangePlan& plan, const RunProgram& run);

}  // namespace gantry::engines
