// SPDX-License-Identifier: Apache-2.0
// `create` and `run`: the container's config.json gets what the container asked for, just before
// the low-level runtime reads it.
#pragma once

#include "base/core/result.hpp"
#include "container/runtime/injection/injection.hpp"
#include "container/runtime/persona/command_line.hpp"

#include <string>
#include <vector>

namespace gantry::runtime {

// How the runtime was called, beyond its arguments.
enum class ShimMode : std::uint8_t { Inject, Classic };  // Classic: leave it to the prestart hook

struct CreateContext {
  const CommandLine& line;
  InjectionContext surroundings;
  ShimMode mode = ShimMode::Inject;
  std::string low_level;  // path of runc or crun
};

struct CreateResult {
  bool changed = false;
  std::vector<std::string> warnings;  // for the log
  std::vector<std::string> details;   // for a log that wants more: asked, decided, done otherwise
};

// Nothing is half done: either config.json is replaced as a whole, or it is as it was.
Result<CreateResult> prepare_create(const CreateContext& context);

// Where the bundle's config.json is, as the low-level runtime will look for it.
std::string config_path_of(const CommandLine& line);

}  // namespace gantry::runtime
