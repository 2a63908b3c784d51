// SPDX-License-Identifier: Apache-2.0
// `nvidia-container-runtime-hook prestart` (also by the name nvidia-container-toolkit): reads what
// a container asks for and becomes `nvidia-container-cli configure`. Its environment is not looked
// at: it may be the image's.
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
  std::string config;  // "" means where it usually is
  std::string root;    // "" means what the configuration says
  std::string command;
};

// Flags in Go's manner: -config FILE, --config=FILE. Invalid for anything else.
Result<PrestartOptions> parse_prestart(std::span<const std::string> arguments);

// The word for word command line, without the program's name.
Result<std::vector<std::string>> configure_arguments(const model::ContainerRequest& request,
                                                     const config::Settings& settings,
                                                     const std::string& machine_root,
                                                     std::uint64_t pid, const std::string& rootfs);

struct ConfigureCall {
  std::string program;
  std::vector<std::string> arguments;  // the program's name first
  std::vector<std::string> environment;
};

// nullopt: the container asks for nothing. `state` is what the runtime wrote to our stdin.
// `warnings`: what was asked and is not given.
Result<std::optional<ConfigureCall>> prestart(const PrestartOptions& options,
                                              std::string_view state,
                                              std::vector<std::string>& warnings);

}  // namespace gantry::runtime
