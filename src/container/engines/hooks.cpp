// SPDX-License-Identifier: Apache-2.0
// The classic hook in hooks.d, for podman and CRI-O.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "container/engines/change_plan_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::engines {
namespace {

std::string hook_text(const std::string& program) {
  return fmt::format(
      R"({{
    "version": "1.0.0",
    "hook": {{
        "path": {},
        "args": [{}, "prestart"],
        "env": [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        ]
    }},
    "when": {{
        "always": true,
        "commands": [".*"]
    }},
    "stages": ["prestart"]
}}
)",
      json::quote(program), json::quote(base_name(program)));
}

bool reads(const std::vector<std::string>& directories, std::string_view directory) {
  return std::any_of(directories.begin(), directories.end(), [&](std::string_view known) {
    while (known.size() > 1 && known.ends_with('/')) known.remove_suffix(1);
    return known == directory;
  });
}

Result<std::string> hook_place(const EngineOptions& options,
                               const std::vector<std::string>& directories, ChangePlan& plan) {
  if (options.drop_in && !options.drop_in->empty()) {
    const auto directory = parent_directory(*options.drop_in);
    if (!reads(directories, directory)) {
      plan.notes.push_back(fmt::format("{} reads no hooks in {}; it reads them in: {}",
                                       to_string(plan.engine), directory,
                                       fmt::join(directories, ", ")));
    }
    return *options.drop_in;
  }
  if (directories.empty()) {
    return Error(Errc::Unsupported,
                 fmt::format("{} reads no hooks: its hooks_dir is empty", to_string(plan.engine)))
        .advise(fmt::format("add \"{}\" to hooks_dir, or use CDI, which needs no hook",
                            parent_directory(kHookFile)));
  }
  if (reads(directories, parent_directory(kHookFile))) return std::string(kHookFile);
  return join_path(directories.front(), base_name(kHookFile));
}

}  // namespace

Status add_hook(const sys::Host& host, const EngineOptions& options,
                const std::vector<std::string>& directories, ChangePlan& plan) {
  GANTRY_TRY(auto path, hook_place(options, directories, plan));
  const std::string program =
      options.hook_path.empty() ? std::string(kHookPath) : options.hook_path;
  if (!host.exists(program)) {
    plan.notes.push_back(
        fmt::format("the hook's program {} does not exist, and {} ignores the hook without it; "
                    "--nvidia-runtime-hook-path=FILE names another",
                    program, to_string(plan.engine)));
  }
  GANTRY_TRY(auto before, read_optional(host, path));
  plan.files.push_back(
      {.path = std::move(path), .before = std::move(before), .after = hook_text(program)});
  return {};
}

}  // namespace gantry::engines
