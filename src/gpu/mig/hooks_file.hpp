// SPDX-License-Identifier: Apache-2.0
// The hooks file of NVIDIA's mig-parted, version v1: commands to run before, between and after the
// steps of a change. It is only read here.
#pragma once

#include "base/core/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

struct HookCommand {
  std::string workdir;  // "": where the caller is
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> envs;
  bool operator==(const HookCommand&) const = default;
};

// Each list runs in its order; the first failure ends it.
struct MigHooks {
  std::vector<HookCommand> apply_start;
  std::vector<HookCommand> pre_apply_mode;
  std::vector<HookCommand> pre_apply_config;
  std::vector<HookCommand> apply_exit;  // also after a failure
  bool operator==(const MigHooks&) const = default;
};

// Unknown hooks and fields are errors with file and line.
Result<MigHooks> parse_hooks(std::string_view text, std::string_view file);

}  // namespace gantry::mig
