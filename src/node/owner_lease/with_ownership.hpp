// SPDX-License-Identifier: Apache-2.0
// For commands that change the owner of a GPU or need it for themselves for a while (`gantry vfio`,
// `gantry vgpu`, `gantry gpu reset`): one call, with or without an agent.
//
//   GANTRY_CHECK(with_ownership(host,
//       {.gpu = address, .to = Owner::Vm, .use = AllocationMode::Vm,
//        .what = "gantry vfio bind 0000:3b:00.0"},
//       {.wait = 60s, .progress = [&](const std::string& text) { print_note(text, context); }},
//       [&]() -> Status { ... unbind, bind, check ... }));
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/ownership/owner_change.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::owner_lease {

inline constexpr std::string_view kAnyProgram = "*";

struct LeaseOptions {
  // How long to wait until pods, shares and processes have let go of the GPU (`--drain`). 0: refuse
  // at once if one has it. They are never stopped.
  std::chrono::milliseconds wait{0};
  // Called while it waits, when the reason changes: "waiting for pod default/train".
  std::function<void(const std::string& text)> progress = {};
  // Programs, by the name in /proc/PID/comm, that let go of the GPU when `act` tells them to, or
  // that do not mind it: nvidia-persistenced, the engine of DCGM. Their processes do not count as
  // users, unless they are in a pod. kAnyProgram: no process outside a pod counts.
  std::vector<std::string> yielding = {};
  // Who uses the GPU, if no agent runs. Unless set: local_usage() of local_usage.hpp.
  std::function<Result<ownership::GpuUsage>()> usage = {};
  int cancel = -1;  // a descriptor that becomes readable to end the wait; nothing is done then
};

// Runs `act` while the GPU is not offered and nothing holds it, and then records the owner,
// as change_owner() of gpu/ownership/owner_change.hpp describes; the rules for `act` are there.
//
// If an agent runs, it withdraws the GPU from the kubelet, waits until the kubelet, shares and
// descriptors hold nothing, lets go of the GPU itself (its NVML process has the device nodes open),
// writes the intent and grants a lease. It offers the GPU again, if it is then the plugin's, when
// the act has ended. If this process dies, the GPU stays withdrawn until the change is repeated or
// taken back. If the agent dies or is replaced, the act continues, and the result is recorded with
// the next agent or in the ledger itself.
//
// Busy, with holders and commands, if the GPU is in use or another command changes its owner.
// Errors of `act` come back unchanged.
Status with_ownership(const sys::Host& host, const ownership::OwnerChange& change,
                      const LeaseOptions& options, const std::function<Status()>& act);

// How one act for several GPUs ended. A failure need not concern all of them: `of` has those for
// which it ended otherwise than `status` says, such as a GPU that is as it was (Denied) while a
// write to another one never returned (Timeout). Their changes end, so that they can be used.
struct JointOutcome {
  Status status;
  std::map<model::PciAddress, Status> of = {};
};

// One act for several GPUs: takes them one after the other, and none of them if one cannot be had.
// `options.wait` is for all of them together.
Status with_ownership(const sys::Host& host, std::span<const ownership::OwnerChange> changes,
                      const LeaseOptions& options, const std::function<JointOutcome()>& act);

}  // namespace gantry::owner_lease
