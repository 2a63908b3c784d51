// SPDX-License-Identifier: Apache-2.0
// Changes the MIG mode and the instances of one GPU: with the intent on disk before the first act,
// taken back if a step fails, and repeatable after a crash at any moment. The same command again
// ends in the new layout, to_former() in the one before it.
//
// The caller has the GPU's lease (node/owner_lease/with_ownership.hpp), so that no program starts
// on what the change removes, and no other command changes this GPU.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/mig_change/state.hpp"
#include "gpu/mig_change/steps.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig_change {

// Everything by which a change acts. Timeout from any of them: the driver hangs, and it is unknown
// whether it still acts.
struct Actions {
  std::function<Result<mig::MigGpu>(const model::PciAddress& gpu)> read;
  // The text is why the mode is only pending; "" if it is in effect.
  std::function<Result<std::string>(const model::PciAddress& gpu, bool enable)> set_mode;
  std::function<Result<unsigned>(const model::PciAddress& gpu, unsigned profile,
                                 const mig::Placement& place)>
      create_gpu_instance;
  std::function<Result<unsigned>(const model::PciAddress& gpu, unsigned gpu_instance,
                                 unsigned profile, const mig::Placement& place)>
      create_compute_instance;
  std::function<Status(const model::PciAddress& gpu, unsigned gpu_instance,
                       unsigned compute_instance)>
      destroy_compute_instance;
  std::function<Status(const model::PciAddress& gpu, unsigned gpu_instance)> destroy_gpu_instance;
  // Resets the GPU. Empty: a mode that needs a reset stays pending.
  std::function<Status(const model::PciAddress& gpu)> reset;
  // Stores a file below the machine's root so that a crash cannot lose or tear it.
  std::function<Status(std::string_view path, std::string_view content)> save;
  // Called before each step, for people. May be empty.
  std::function<void(const Step& step)> progress;
};

// What a GPU should have, from what it has now. Called again after the mode was turned on, where
// the driver tells the profiles only then.
using Planner = std::function<Result<Layout>(const mig::MigGpu& gpu)>;

struct ChangeRequest {
  model::PciAddress gpu;
  std::string what;  // the command, as it can be typed again
  Planner planner;
  bool mode_only = false;  // the instances stay, unless the mode is turned off
};

struct ChangeReport {
  std::vector<Step> steps;  // done, or to be done
  mig::MigGpu gpu;          // afterwards
  // Why the mode is only pending; then instances were not created, and restore() does it after the
  // reset or reboot. "": it is in effect.
  std::string pending;
};

// What apply() would do.
Result<ChangeReport> preview(const sys::Host& host, const ChangeRequest& request,
                             const Actions& actions);

// Errors, as outcome_of() of gpu/ownership/owner_change.hpp takes them: Timeout if the driver hangs
// and Internal if the way back failed (the change is still stored); Busy if nothing was done; any
// other if all is as it was before.
Result<ChangeReport> apply(const sys::Host& host, const ChangeRequest& request,
                           const Actions& actions);

// The layout that should exist: after a reboot, and after a change that was interrupted, which it
// completes. Does nothing on a GPU that is not managed.
Result<ChangeReport> restore(const sys::Host& host, const model::PciAddress& gpu,
                             const std::string& what, const Actions& actions);
// The layout before the change that was interrupted. NotFound if there is none.
Result<ChangeReport> to_former(const sys::Host& host, const model::PciAddress& gpu,
                               const std::string& what, const Actions& actions);

// The planners of the two, for preview() and for the lease.
Result<Planner> restore_planner(const sys::Host& host, const model::PciAddress& gpu);
Result<Planner> former_planner(const sys::Host& host, const model::PciAddress& gpu);

}  // namespace gantry::mig_change
