// SPDX-License-Identifier: Apache-2.0
// `nvidia-container-runtime-hook prestart` (also named nvidia-container-toolkit): reads a
// container's request and executes `nvidia-container-cli configure`. It ignores its environment,
// which may be the image's.
#pragma once

#include "base/core/result.hpp"
#include "container/config/settings.hpp"
#include "container/oci/state.hpp"
#include "gpu/model/container_request.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

struct PrestartOptions {
  bool debug = false;
  bool version = false;
  bool help = false;
  std::string config;  // "": the default path
  std::string root;    // "": the root of the configuration
  std::string command;
};

// Flags in Go's style: -config FILE, --config=FILE. Invalid for anything else.
Result<PrestartOptions> parse_prestart(std::span<const std::string> arguments);

// The arguments of the command line, without the program's name.
Result<std::vector<std::string>> configure_arguments(const model::ContainerRequest& request,
                                                     const config::Settings& settings,
                                                     const std::string& machine_root,
                                                     std::uint64_t pid, const std::string& rootfs);

struct ConfigureCall {
  std::string program;
  std::vector<std::string> arguments;  // the program's name first
  std::vector<std::string> environment;
};

// nullopt: the container requests nothing. `state` is the text that the runtime wrote to our stdin.
// `warnings`: requests that are not granted.
Result<std::optional<ConfigureCall>> prestart(const PrestartOptions& options,
                                              std::string_view state,
                                              std::vector<std::string>& warnings);

}  // namespace gantry::runtime
