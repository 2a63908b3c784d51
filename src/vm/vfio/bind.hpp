// SPDX-License-Identifier: Apache-2.0
// Gives GPUs to virtual machines and takes them back. These functions do not decide who owns a GPU:
// the caller asks the ledger first.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "vm/vfio/effects.hpp"
#include "vm/vfio/plan.hpp"
#include "vm/vfio/rebind.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace gantry::vfio {

struct BindOptions {
  bool drain = false;  // wait for the processes that have the GPU open
  std::chrono::seconds drain_deadline{60};
};

struct BindResult {
  std::vector<model::PciAddress> targets;
  std::vector<std::string> done;  // the steps, as sentences; empty if there was nothing to do
  std::vector<std::string> notes;
  bool taken_back = false;  // recover: the GPUs have their old drivers again
  bool changed() const { return !done.empty(); }
};

// Binds all functions of the GPUs to vfio drivers. Everything is checked before the first write.
// Returns Busy if a process has a GPU open or another Gantry is at work, Unsupported if it cannot
// be passed through, Timeout if the kernel never returned. After Timeout and Internal the GPUs may
// be in between, and `recover` goes on; after any other error they are as before.
Result<BindResult> bind(const sys::Host& host, const PassthroughRequest& request,
                        const BindOptions& options, const Effects& effects);

// Gives the GPUs back to the drivers that they had before bind, or to the drivers that the kernel
// chooses if Gantry did not bind them.
Result<BindResult> release(const sys::Host& host, const std::vector<model::PciAddress>& targets,
                           const BindOptions& options, const Effects& effects);

// After a crash: goes on with the work that had begun if every function has left its old driver,
// takes it back otherwise. Does nothing if no work is unfinished.
Result<BindResult> recover(const sys::Host& host, const Effects& effects);
// The same for the work that began with this GPU. NotFound if there is none.
Result<BindResult> recover(const sys::Host& host, const model::PciAddress& first,
                           const Effects& effects);
// Busy while a write of this work is still in the kernel: nothing can be recovered before.
Status check_recoverable(const sys::Host& host, const Journal& journal);

// The error that says why a plan cannot be carried out; success if it can.
Status check_plan(const sys::Host& host, const Plan& plan);

// The journal that bind or release would write, to show its steps.
Journal bind_journal(const sys::Host& host, const Plan& plan);
Result<Journal> release_journal(const sys::Host& host, const MachineState& state,
                                const std::vector<model::PciAddress>& targets);

}  // namespace gantry::vfio
