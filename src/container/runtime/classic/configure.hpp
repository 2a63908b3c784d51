// SPDX-License-Identifier: Apache-2.0
// `nvidia-container-cli configure`: a GPU for a container that its runtime has set up without one.
// The one way that has to change the device rules of a cgroup; it says so in its log.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/runtime/classic/configure_options.hpp"
#include "container/runtime/injection/machine.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <string_view>

namespace gantry::runtime {

// The file of --debug, one line at a time. A log that cannot be written stops nothing.
class DebugLog {
 public:
  explicit DebugLog(std::string file) : file_(std::move(file)) {}
  void write(std::string_view text) const;

 private:
  std::string file_;
};

// What the container gets, with what its loader needs in either case.
struct ConfigurePlan {
  model::ContainerEdits edits;
  std::vector<model::MountEdit> loader_mounts;  // should its cache not be changeable
  model::Driver driver;
};

// Errors begin with upstream's stage: initialization, device, requirement, detection.
Result<ConfigurePlan> plan_configure(const sys::Host& host, const ConfigureOptions& options,
                                     const RefreshFunction& refresh, const DebugLog& log);

Status configure(const ConfigureOptions& options, const DebugLog& log);

}  // namespace gantry::runtime
