// SPDX-License-Identifier: Apache-2.0
// From a pod's text to a GPU in its container is a chain. Each link says what was read and whether
// it holds; the first one that does not is the answer to "why has my pod no GPU?".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

enum class StepStatus : std::uint8_t {
  Ok,
  Failed,
  Warning,  // works, or may; worth a look
  Unknown   // could not be looked at from here
};
std::string_view to_string(StepStatus verdict);  // "ok", "BROKEN", "look", "?"

struct Step {
  std::string id;    // "spec.limits"
  std::string what;  // "The pod asks for GPUs"
  StepStatus verdict = StepStatus::Ok;
  std::string read;    // what was seen
  std::string cause;   // one sentence, when it does not hold
  std::string remedy;  // a command, or a line to write
  bool operator==(const Step&) const = default;
};

struct Explanation {
  std::string subject;  // "pod default/train"
  std::vector<Step> steps;

  const Step* first(StepStatus verdict) const;  // nullptr: none
  // nullptr: nothing found that would keep GPUs from it.
  const Step* first_failed() const;
};

std::string to_string(const Explanation& explanation, bool color);
std::string to_json(const Explanation& explanation);

}  // namespace gantry::why
