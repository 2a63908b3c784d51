// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/share.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::pod_shares {
namespace {

constexpr std::uint64_t kMaxShareMib = std::uint64_t{1}
                                       << 30;  // a thousand times today's largest GPU

std::uint64_t units(std::uint64_t mib, const podspec::NodeInfo& node) {
  return mib / std::max<std::uint64_t>(node.unit_mib, 1);
}

Result<policy::MemoryLimit> memory_of(const podspec::ContainerRequest& container,
                                      const std::vector<model::GpuShare>& parts) {
  const auto mib = parts.front().mib;
  const auto differs = [&](const model::GpuShare& part) { return part.mib != mib; };
  if (std::none_of(parts.begin(), parts.end(), differs)) {
    if (mib == 0 || mib > kMaxShareMib)
      return Error(Errc::Invalid, fmt::format("a share cannot have {} MiB of memory", mib));
    return policy::MemoryLimit{.bytes = mib << 20U};
  }
  const auto& asked = container.memory;
  if (asked.kind == podspec::Amount::Kind::Percent && asked.value >= 1 && asked.value <= 100)
    return policy::MemoryLimit{.percent = static_cast<std::uint32_t>(asked.value)};
  return Error(Errc::Unsupported,
               "a container must have the same amount of memory on each of its GPUs");
}

void add_gpushare(const podspec::PodRequest& ask, const podspec::Placement& placement,
                  const std::vector<model::GpuShare>& parts, const podspec::NodeInfo& node,
                  std::vector<std::string>& env) {
  std::vector<std::uint32_t> indices;
  std::uint64_t own = 0;
  for (const auto& part : parts) {
    indices.push_back(part.index);
    own += part.mib;
  }
  std::uint64_t pod = 0;
  for (const auto& charge : podspec::charges(ask, placement)) pod += charge.mib;
  env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_IDX={}", fmt::join(indices, ",")));
  env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_POD={}", units(pod, node)));
  env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_CONTAINER={}", units(own, node)));
  for (const auto& card : node.cards) {
    if (card.uuid == parts.front().uuid)
      env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_DEV={}", units(card.mib, node)));
  }
}

void add_hami(const std::vector<model::GpuShare>& parts, std::vector<std::string>& env) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    env.push_back(fmt::format("CUDA_DEVICE_MEMORY_LIMIT_{}={}m", i, parts[i].mib));
  env.push_back(fmt::format("CUDA_DEVICE_SM_LIMIT={}", parts.front().cores));
}

Error still_used(const daemon::ShareState& state) {
  return {Errc::Busy,
          fmt::format("process {} ({}) of the container that used this slot before is still "
                      "running; the new container starts when that process has ended",
                      state.processes.front().pid, state.processes.front().command)};
}

// The kubelet tries again.
Error busy(const Error& refused) {
  return Error(Errc::Busy, refused.cause()).advise(refused.remedy());
}

// False if the difference cannot be changed in place: another card or another backend.
bool can_become(const policy::Share& known, const policy::Share& wanted) {
  return known.gpus == wanted.gpus && known.backend == wanted.backend;
}

}  // namespace

Result<policy::Share> share_for(const std::string& name, const podspec::PodRequest& ask,
                                const podspec::ContainerRequest& container,
                                const std::vector<model::GpuShare>& parts) {
  if (parts.empty()) return Error(Errc::Invalid, "the share has no GPU");
  policy::Share share{.name = name, .backend = policy::Backend::Fence};
  for (const auto& part : parts) share.gpus.push_back(part.uuid);
  policy::ShareChanges limits;
  GANTRY_TRY(limits.memory, memory_of(container, parts));
  // A share that has its card alone needs no turns.
  const auto cores = parts.front().cores;
  limits.percent = cores >= 100 ? 0 : cores;
  if (!ask.share_priority.empty()) {
    GANTRY_TRY(limits.priority, policy::parse_priority(ask.share_priority));
  }
  return policy::apply_changes(std::move(share), limits);
}

Status ensure_share(daemon::Client& client, const policy::Share& wanted) {
  const auto known = client.show(wanted.name);
  if (!known.ok() && known.error().code() != Errc::NotFound) return known.error();
  if (known.ok()) {
    if (known->share == wanted) return {};
    if (can_become(known->share, wanted)) {
      const auto changed =
          client.set(wanted.name, {.memory = wanted.memory.value_or(policy::MemoryLimit{}),
                                   .percent = wanted.time_policy.percent,
                                   .priority = wanted.time_policy.priority});
      if (changed.ok()) return {};
      return busy(changed.error());
    }
    if (!known->processes.empty()) return still_used(*known);
    GANTRY_CHECK(client.remove(wanted.name));
  }
  const auto made = client.create(wanted);
  if (made.ok()) return {};
  // Another program created a share at the same time, or an old share has not ended yet.
  return busy(made.error());
}

Status end_share(daemon::Client& client, const std::string& name) {
  const auto known = client.show(name);
  if (!known.ok()) return known.error().code() == Errc::NotFound ? Status() : known.error();
  if (!known->processes.empty()) return still_used(*known);
  auto removed = client.remove(name);
  if (!removed.ok() && removed.error().code() == Errc::NotFound) return {};
  return removed;
}

std::vector<std::string> environment_of(const podspec::PodRequest& ask,
                                        const podspec::Placement& placement,
                                        const std::vector<model::GpuShare>& parts,
                                        const podspec::NodeInfo& node) {
  std::vector<std::string> env;
  if (parts.empty()) return env;
  if (ask.contract == podspec::Contract::Gpushare) {
    add_gpushare(ask, placement, parts, node, env);
  } else {
    add_hami(parts, env);
  }
  return env;
}

}  // namespace gantry::pod_shares
