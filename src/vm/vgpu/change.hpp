// SPDX-License-Identifier: Apache-2.0
// Changes the vGPUs of a machine: one change at a time, with its intent on disk before the first
// act, undone if a step fails, and repeatable after a crash at any moment.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "vm/vgpu/plan.hpp"
#include "vm/vgpu/state.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vgpu {

// Everything by which a change acts on the machine. Tests and simulated machines have their own.
struct Actions {
  // One write to a file of sysfs; Timeout if the kernel does not return from it.
  std::function<Status(std::string_view path, std::string_view text)> write;
  // Stores a file below the machine's root so that a crash cannot lose or tear it.
  std::function<Status(std::string_view path, std::string_view content)> save;
  std::function<Status(std::string_view path)> erase;
  // Enables all virtual functions of a GPU.
  std::function<Status(const model::PciAddress& gpu, unsigned count)> enable_vfs;
  // Lets a GPU have vGPUs of different sizes.
  std::function<Status(const model::PciAddress& gpu)> enable_mixed;
  std::function<void(std::chrono::milliseconds)> pause;
  NewUuid new_uuid;
};

struct ChangeOptions {
  std::chrono::milliseconds vfs_deadline{30'000};    // until virtual functions offer vGPUs
  std::chrono::milliseconds settle_deadline{5'000};  // until a change shows in sysfs
  bool dry_run = false;
};

struct ChangeReport {
  std::vector<Step> steps;                    // done, or with dry_run: to be done
  std::vector<VgpuSpec> vgpus;                // of the GPUs that were asked about, afterwards
  std::vector<std::string> notes;             // for people
  std::map<model::PciAddress, Error> failed;  // restore: the GPUs that could not be restored
};

// Brings the named GPUs to the wanted counts; leaves the others alone, except that it completes an
// interrupted change of theirs.
Result<ChangeReport> apply(const sys::Host& host, const std::vector<DesiredVgpus>& wanted,
                           const Actions& actions, const ChangeOptions& options = {});

// Creates again all that should exist: after a reboot or an interrupted change. Each GPU by itself,
// so that one that cannot be restored does not keep the others from it; the first error, if none
// can.
Result<ChangeReport> restore(const sys::Host& host, const Actions& actions,
                             const ChangeOptions& options = {});

// Busy while an interrupted change waits for apply or restore.
Result<ChangeReport> create(const sys::Host& host, const Addition& addition, const Actions& actions,
                            const ChangeOptions& options = {});
Result<ChangeReport> remove(const sys::Host& host, const std::vector<std::string>& ids,
                            const Actions& actions, const ChangeOptions& options = {});

}  // namespace gantry::vgpu
