// SPDX-License-Identifier: Apache-2.0
#include "sharing/backend/mps_share.hpp"

#include "container/driver_dir/current.hpp"
#include "container/plan/device_selection.hpp"
#include "sharing/mps/control_daemon.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::backend {
namespace {

constexpr const char* kRoot = "/run/gantry/mps";
constexpr const char* kClientPipe = "/tmp/nvidia-mps";  // CUDA's own default
constexpr const char* kClientMemory = "/dev/shm";

bool shares_a_gpu(const policy::Share& a, const policy::Share& b) {
  return std::any_of(a.gpus.begin(), a.gpus.end(), [&](const model::GpuUuid& gpu) {
    return std::find(b.gpus.begin(), b.gpus.end(), gpu) != b.gpus.end();
  });
}

Result<mps::ControlDaemon> control_of(const sys::Host& host) {
  const bool simulated = !driver_dir::simulated_engine_root(host).empty();
  return mps::ControlDaemon::find(host, kRoot,
                                  simulated ? mps::RunMode::Direct : mps::RunMode::Chroot);
}

}  // namespace

Result<mps::DaemonPlan> mps_plan(const policy::Share& share, const model::Inventory& machine,
                                 std::span<const policy::Share> others) {
  for (const auto& other : others) {
    if (other.name == share.name || other.backend != policy::Backend::Mps) continue;
    if (!shares_a_gpu(share, other)) continue;
    return Error(Errc::Unsupported,
                 fmt::format("the MPS share {} already uses this GPU, and a GPU has only one MPS "
                             "server with one set of limits; use another --gpu or --backend fence",
                             other.name));
  }
  mps::DaemonPlan plan{.resource = share.name};
  for (const auto& uuid : share.gpus) {
    GANTRY_TRY(const auto device, plan::select_one(machine, uuid.text));
    const auto bytes = share.memory ? share.memory->on(device.gpu->memory_bytes.value_or(0)) : 0;
    plan.gpus.push_back({.uuid = uuid.text, .memory_mib = bytes >> 20U});
  }
  if (share.time_policy.percent != 0)
    plan.thread_percentage = static_cast<int>(share.time_policy.percent);
  return plan;
}

Status start_mps(const sys::Host& host, const mps::DaemonPlan& plan) {
  GANTRY_TRY(const auto control, control_of(host));
  auto started = control.start(plan);
  if (!started.ok()) control.clear(plan);
  return started;
}

Status stop_mps(const sys::Host& host, const mps::DaemonPlan& plan) {
  GANTRY_TRY(const auto control, control_of(host));
  return control.stop(plan);
}

std::vector<fence_mount::BindMount> mps_bind_mounts(const sys::Host& host,
                                                    const std::string& share) {
  return {{host.outside(fmt::format("{}/{}/pipe", kRoot, share)), kClientPipe},
          {host.outside(fmt::format("{}/shm", kRoot)), kClientMemory}};
}

model::ContainerEdits mps_edits(const sys::Host& host, const std::string& share) {
  model::ContainerEdits edits;
  for (const auto& [source, place] : mps_bind_mounts(host, share)) {
    edits.mounts.push_back({.host_path = source,
                            .container_path = place,
                            .options = {"nosuid", "nodev", "rbind", "rprivate"},
                            .why = "the MPS daemon of the share"});
  }
  return edits;
}

}  // namespace gantry::backend
