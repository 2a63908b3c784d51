// SPDX-License-Identifier: Apache-2.0
// Resets a GPU by the method that the kernel offers, and gives it back to its driver. The caller
// has made sure that nothing uses the GPU (node/owner_lease/with_ownership.hpp).
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/pci_address.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::reset {

// A GPU by its PCI address ("0000:3b:00.0", "3b:00.0"), its UUID or the beginning of it, or its
// index in the driver's list. NotFound, with the GPUs that there are.
Result<model::PciAddress> find_gpu(const sys::Host& host, std::string_view name);

struct ResetPlan {
  model::PciAddress gpu;
  // "nvidia", "vfio-pci"; "" if none is bound: then the kernel looks for one after the reset.
  std::string driver;
  // The first of reset_method: "flr", "bus", ...; "" where the kernel does not say (before 5.15).
  std::string method;
  // The driver is unbound before the reset and bound after it. vfio-pci can stay.
  bool rebind = false;
  std::vector<std::string> warnings;  // what the reset destroys or may not repair
  bool operator==(const ResetPlan&) const = default;
};

// Reads only. Unsupported if the kernel offers no reset for it, with what helps instead. NotFound
// if the GPU does not exist. Busy if it has vGPUs or enabled virtual functions.
Result<ResetPlan> plan_reset(const sys::Host& host, const model::PciAddress& gpu);

// What run_reset() writes, in its order: "write 0000:3b:00.0 to /sys/...".
std::vector<std::string> describe_steps(const ResetPlan& plan);

// How a file of sysfs is written; see sys::write_with_deadline.
using WriteFile = std::function<Status(const std::string& path, const std::string& text)>;
WriteFile write_to_kernel(const sys::Host& host);

struct ResetTiming {
  std::chrono::milliseconds driver_appears{10'000};  // after the bind
  std::chrono::milliseconds pause{100};
};

// Unbinds, resets, binds and checks. Busy, and nothing is done, if the GPU is not as planned any
// more. An error that is neither Timeout nor Internal means that the
// GPU is again with its driver. Timeout: a write is stuck in the kernel. Internal: the GPU did not
// come back. So it can be the act of change_owner().
Status run_reset(const sys::Host& host, const ResetPlan& plan, const WriteFile& write,
                 const ResetTiming& timing = {});

}  // namespace gantry::reset
