// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/share.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::pod_shares {
namespace {

std::uint64_t units(std::uint64_t mib, const podspec::NodeInfo& node) {
  return mib / std::max<std::uint64_t>(node.unit_mib, 1);
}

Result<std::string> memory_text(const podspec::ContainerRequest& container,
                                const std::vector<podspec::GpuAllocation>& parts) {
  const auto differs = [&](const podspec::GpuAllocation& part) {
    return part.mib != parts.front().mib;
  };
  if (std::none_of(parts.begin(), parts.end(), differs))
    return fmt::format("{}MiB", parts.front().mib);
  if (container.memory.kind == podspec::Amount::Kind::Percent)
    return fmt::format("{}%", container.memory.value);
  return Error(Errc::Unsupported,
               "a container must have the same amount of memory on each of its GPUs");
}

void add_gpushare(const podspec::PodRequest& ask, const podspec::Placement& placement,
                  const std::vector<podspec::GpuAllocation>& parts, const podspec::NodeInfo& node,
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

void add_hami(const std::vector<podspec::GpuAllocation>& parts, std::vector<std::string>& env) {
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

// False if the difference cannot be changed in place: another card or another backend.
bool can_become(const policy::Share& known, const policy::Share& wanted) {
  return known.gpus == wanted.gpus && known.backend == wanted.backend;
}

}  // namespace

Result<policy::ShareText> share_text(const std::string& name, const podspec::PodRequest& ask,
                                     const podspec::ContainerRequest& container,
                                     const std::vector<podspec::GpuAllocation>& parts) {
  if (parts.empty()) return Error(Errc::Invalid, "the share has no GPU");
  policy::ShareText text{.name = name, .backend = "fence"};
  for (const auto& part : parts) text.gpus += (text.gpus.empty() ? "" : ",") + part.uuid.text;
  GANTRY_TRY(text.memory, memory_text(container, parts));
  // A share that has its card alone needs no turns.
  const auto cores = parts.front().cores;
  text.compute = cores == 0 || cores >= 100 ? "none" : fmt::format("{}%", cores);
  text.priority = ask.share_priority.empty() ? "normal" : ask.share_priority;
  return text;
}

Status ensure_share(daemon::Client& client, const policy::ShareText& wanted) {
  GANTRY_TRY(const auto share, policy::parse_share(wanted));
  const auto known = client.show(wanted.name);
  if (!known.ok() && known.error().code() != Errc::NotFound) return known.error();
  if (known.ok()) {
    if (known->share == share) return {};
    if (can_become(known->share, share)) {
      policy::ShareText changes{
          .memory = wanted.memory, .compute = wanted.compute, .priority = wanted.priority};
      const auto changed = client.set(wanted.name, changes);
      if (changed.ok()) return {};
      return Error(Errc::Busy, changed.error().text());
    }
    if (!known->processes.empty()) return still_used(*known);
    GANTRY_CHECK(client.remove(wanted.name));
  }
  auto made = client.create(share);
  if (made.ok()) return {};
  // Another program created a share at the same time, or an old share has not ended yet.
  return Error(Errc::Busy, made.error().text());
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
                                        const std::vector<podspec::GpuAllocation>& parts,
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
