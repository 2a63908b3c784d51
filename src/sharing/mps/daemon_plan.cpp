// SPDX-License-Identifier: Apache-2.0
#include "sharing/mps/daemon_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gantry::mps {
namespace {

constexpr std::uint64_t kClients = 48;
constexpr std::uint64_t kClientsBefore75 = 16;

std::uint64_t most_clients(const model::Gpu& gpu) {
  const auto capability = gpu.compute_capability.value_or(model::ComputeCapability{});
  const bool new_enough = capability.major > 7 || (capability.major == 7 && capability.minor >= 5);
  return new_enough ? kClients : kClientsBefore75;
}

Result<DaemonPlan> plan_for(const model::Inventory& machine,
                            const model::AdvertisedResource& resource) {
  DaemonPlan plan{.resource = resource.name};
  std::map<std::string, std::uint64_t> replicas;
  for (const auto& device : resource.devices) ++replicas[device.gpu.text];
  std::uint64_t most = 1;
  for (const auto& gpu : machine.gpus) {
    const auto found = replicas.find(gpu.uuid.text);
    if (found == replicas.end()) continue;
    if (found->second > most_clients(gpu)) {
      return Error(
          Errc::Invalid,
          fmt::format("{}: GPU {} would have {} replicas, but MPS supports only {} clients on it",
                      resource.name, gpu.index, found->second, most_clients(gpu)));
    }
    most = std::max(most, found->second);
    const auto memory = gpu.memory_bytes.value_or(0) / found->second >> 20U;
    plan.gpus.push_back({.uuid = gpu.uuid, .memory_mib = memory});
  }
  // A daemon has one percentage for all its GPUs: the one for the GPU with the most replicas.
  plan.thread_percentage = static_cast<int>(100 / most);
  return plan;
}

}  // namespace

Result<std::vector<DaemonPlan>> plan_daemons(const model::Inventory& machine,
                                             std::span<const model::AdvertisedResource> offered) {
  std::vector<DaemonPlan> plans;
  for (const auto& resource : offered) {
    if (resource.use != model::AllocationMode::Shares || resource.tokens ||
        resource.devices.empty())
      continue;
    GANTRY_TRY(auto plan, plan_for(machine, resource));
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace gantry::mps
