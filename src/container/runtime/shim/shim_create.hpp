// SPDX-License-Identifier: Apache-2.0
// `create` and `run`: adds the requested devices to the container's config.json before the
// low-level runtime reads it.
#pragma once

#include "base/core/result.hpp"
#include "container/runtime/injection/injection.hpp"
#include "container/runtime/persona/command_line.hpp"

#include <string>
#include <vector>

namespace gantry::runtime {

// nvidia-container-runtime.mode of the settings: "legacy" is Classic, every other mode Inject.
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
  std::vector<std::string> details;   // for a verbose log: requests, decisions, deviations
};

// Either replaces config.json as a whole or leaves it unchanged.
Result<CreateResult> prepare_create(const CreateContext& context);

// The path of the bundle's config.json, where the low-level runtime will read it.
std::string config_path_of(const CommandLine& line);

}  // namespace gantry::runtime
