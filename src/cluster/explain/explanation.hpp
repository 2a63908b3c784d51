// SPDX-License-Identifier: Apache-2.0
// The steps from a pod's manifest to a GPU in its container. Each step says what was read and
// whether it is in order; the first one that failed answers "why does my pod have no GPU?". This
// module is pure: objects in, steps out. src/node/why reads them and adds the steps of a node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::explain {

enum class StepStatus : std::uint8_t {
  Ok,
  Failed,
  Warning,  // works, or may work; worth a look
  Unknown   // cannot be checked from here
};
std::string_view to_string(StepStatus verdict);  // "ok", "BROKEN", "look", "?"

struct Step {
  std::string id;    // "spec.limits"
  std::string what;  // "The pod asks for GPUs"
  StepStatus verdict = StepStatus::Ok;
  std::string read;    // what was seen
  std::string cause;   // one sentence, if the step failed
  std::string remedy;  // a command, or a line to write
  bool operator==(const Step&) const = default;
};

struct Explanation {
  std::string subject;  // "pod default/train"
  std::vector<Step> steps;

  const Step* first(StepStatus verdict) const;  // nullptr: none
  // nullptr: nothing was found that keeps GPUs from the pod.
  const Step* first_failed() const;
};

std::string to_string(const Explanation& explanation, bool color);
// For steps that do not build upon each other: the verdict, every step with its reason, then all
// commands that help.
std::string findings_text(const Explanation& explanation, bool color);
std::string to_json(const Explanation& explanation);

}  // namespace gantry::explain
