// SPDX-License-Identifier: Apache-2.0
// `nvidia-container-cli configure`: adds a GPU to a container that its runtime set up without one.
// Only this way has to change the device rules of a cgroup; it reports that in its log.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "container/runtime/classic/configure_options.hpp"
#include "container/runtime/injection/machine.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <string_view>

namespace gantry::runtime {

// The component of its lines in the file of --debug.
inline constexpr std::string_view kConfigureComponent = "configure";

// The edits for the container, and the mounts that its loader needs in either case.
struct ConfigurePlan {
  model::ContainerEdits edits;
  std::vector<model::MountEdit> loader_mounts;  // for when its cache cannot be changed
  model::Driver driver;
};

// Errors start with upstream's stage: initialization, device, requirement, detection.
Result<ConfigurePlan> plan_configure(const sys::Host& host, const ConfigureOptions& options,
                                     const RefreshFunction& refresh, const Log& log);

Status configure(const ConfigureOptions& options, const Log& log);

// The lines for stderr. An error without its own remedy points to `gantry doctor`.
std::string describe_failure(const Error& error);

}  // namespace gantry::runtime
