// SPDX-License-Identifier: Apache-2.0
// Updates everything that the start of a container needs: the prepared driver directory, the
// inventory and the CDI specification. Runs after boot, a driver upgrade, or a change of MIG.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/driver_dir/publish.hpp"
#include "container/publish/generate_spec.hpp"
#include "gpu/probe/snapshot.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::publish {

inline constexpr std::string_view kSpecPath = "/var/run/cdi/nvidia.yaml";

struct RefreshOptions {
  SpecOptions spec;
  std::string output{kSpecPath};           // inside the root of `output_host`
  const sys::Host* output_host = nullptr;  // nullptr: the machine itself
  driver::DriverLocation driver;           // the driver's directories, if the user named them
  bool take_over = false;  // rename another tool's file of this kind instead of refusing
  probe::NvmlUse nvml = probe::NvmlUse::Use;
  std::chrono::milliseconds deadline{10'000};  // for NVML
};

struct RefreshResult {
  driver_dir::PublishResult driver;
  probe::WriteResult inventory = probe::WriteResult::Replaced;
  bool spec_changed = false;
  std::size_t devices = 0;
  std::vector<std::string> moved;      // files of other tools that were renamed
  std::vector<std::string> collected;  // old driver directories that were removed
  std::vector<std::string> notes;
};

// Works in this order, each step by rename: after an error, the remaining files are unchanged.
// Never replaces good files by incomplete ones: if there are no GPUs, or NVML does not name all MIG
// instances, returns an error.
Result<RefreshResult> refresh(const sys::Host& host, const RefreshOptions& options);

// The same for an inventory that has already been read.
Result<RefreshResult> refresh_with_inventory(const sys::Host& host, const model::Inventory& machine,
                                             const RefreshOptions& options);

// The error that refresh_with_inventory() would return before it writes anything.
Status check_refresh(const sys::Host& host, const model::Inventory& machine,
                     const RefreshOptions& options);

}  // namespace gantry::publish
