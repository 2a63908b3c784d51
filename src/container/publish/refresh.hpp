// SPDX-License-Identifier: Apache-2.0
// Everything that containers start from, made anew: the prepared driver directory, the inventory
// and the CDI specification. After boot, after a driver upgrade, after a change of MIG.
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
  driver::DriverLocation driver;           // where its files are, when that was said
  bool take_over = false;  // another tool's file of this kind is renamed, not refused
  probe::NvmlUse nvml = probe::NvmlUse::Use;
  std::chrono::milliseconds deadline{10'000};  // for NVML
};

struct RefreshResult {
  driver_dir::PublishResult driver;
  probe::WriteResult inventory = probe::WriteResult::Replaced;
  bool spec_changed = false;
  std::size_t devices = 0;
  std::vector<std::string> moved;      // files of other tools that are out of the way now
  std::vector<std::string> collected;  // old driver directories that are gone
  std::vector<std::string> notes;
};

// In this order, each step by rename: a failure leaves the rest as it was. What is good is never
// replaced by less: without GPUs, or with instances that NVML would not name, it is an error.
Result<RefreshResult> refresh(const sys::Host& host, const RefreshOptions& options);

// The same for a machine that has been read already.
Result<RefreshResult> refresh_with_inventory(const sys::Host& host, const model::Inventory& machine,
                                             const RefreshOptions& options);

}  // namespace gantry::publish
