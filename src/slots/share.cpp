// SPDX-License-Identifier: Apache-2.0
#include "slots/share.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::slots {
namespace {

std::uint64_t units(std::uint64_t mib, const ask::NodeFacts& node) {
  return mib / std::max<std::uint64_t>(node.unit_mib, 1);
}

Result<std::string> memory_text(const ask::ContainerAsk& container,
                                const std::vector<ask::Part>& parts) {
  const auto differs = [&](const ask::Part& part) { return part.mib != parts.front().mib; };
  if (std::none_of(parts.begin(), parts.end(), differs))
    return fmt::format("{}MiB", parts.front().mib);
  if (container.memory.kind == ask::Amount::Kind::Percent)
    return fmt::format("{}%", container.memory.value);
  return Error(Errc::Unsupported, "a container has as much memory on each of its GPUs");
}

void add_gpushare(const ask::PodAsk& ask, const ask::Placement& placement,
                  const std::vector<ask::Part>& parts, const ask::NodeFacts& node,
                  std::vector<std::string>& env) {
  std::vector<std::uint32_t> indices;
  std::uint64_t own = 0;
  for (const auto& part : parts) {
    indices.push_back(part.index);
    own += part.mib;
  }
  std::uint64_t pod = 0;
  for (const auto& charge : ask::charges(ask, placement)) pod += charge.mib;
  env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_IDX={}", fmt::join(indices, ",")));
  env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_POD={}", units(pod, node)));
  env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_CONTAINER={}", units(own, node)));
  for (const auto& card : node.cards) {
    if (card.uuid == parts.front().uuid)
      env.push_back(fmt::format("ALIYUN_COM_GPU_MEM_DEV={}", units(card.mib, node)));
  }
}

void add_hami(const std::vector<ask::Part>& parts, std::vector<std::string>& env) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    env.push_back(fmt::format("CUDA_DEVICE_MEMORY_LIMIT_{}={}m", i, parts[i].mib));
  env.push_back(fmt::format("CUDA_DEVICE_SM_LIMIT={}", parts.front().cores));
}

Error still_used(const keeper::ShareState& state) {
  return {Errc::Busy,
          fmt::format("pid {} ({}) of a container that had this slot before still runs; it starts "
                      "when that has ended",
                      state.processes.front().pid, state.processes.front().command)};
}

// Over what cannot be changed: another card, another backend.
bool can_become(const share::Share& known, const share::Share& wanted) {
  return known.gpus == wanted.gpus && known.backend == wanted.backend;
}

}  // namespace

Result<share::ShareText> share_text(const std::string& name, const ask::PodAsk& ask,
                                    const ask::ContainerAsk& container,
                                    const std::vector<ask::Part>& parts) {
  if (parts.empty()) return Error(Errc::Invalid, "a share of no GPU");
  share::ShareText text{.name = name, .backend = "fence"};
  for (const auto& part : parts) text.gpus += (text.gpus.empty() ? "" : ",") + part.uuid;
  GANTRY_TRY(text.memory, memory_text(container, parts));
  // Who is alone on its card needs no turns.
  const auto cores = parts.front().cores;
  text.compute = cores == 0 || cores >= 100 ? "none" : fmt::format("{}%", cores);
  text.priority = ask.share_priority.empty() ? "normal" : ask.share_priority;
  return text;
}

Status ensure_share(keeper::Client& keeper, const share::ShareText& wanted) {
  GANTRY_TRY(const auto share, share::share_from(wanted));
  const auto known = keeper.show(wanted.name);
  if (!known.ok() && known.error().code() != Errc::NotFound) return known.error();
  if (known.ok()) {
    if (known->share == share) return {};
    if (can_become(known->share, share)) {
      share::ShareText changes{
          .memory = wanted.memory, .compute = wanted.compute, .priority = wanted.priority};
      const auto changed = keeper.set(wanted.name, changes);
      if (changed.ok()) return {};
      return Error(Errc::Busy, changed.error().text());
    }
    if (!known->processes.empty()) return still_used(*known);
    GANTRY_CHECK(keeper.remove(wanted.name));
  }
  auto made = keeper.create(share);
  if (made.ok()) return {};
  // Somebody made a share beside us, or one has not ended yet.
  return Error(Errc::Busy, made.error().text());
}

Status end_share(keeper::Client& keeper, const std::string& name) {
  const auto known = keeper.show(name);
  if (!known.ok()) return known.error().code() == Errc::NotFound ? Status() : known.error();
  if (!known->processes.empty()) return still_used(*known);
  auto removed = keeper.remove(name);
  if (!removed.ok() && removed.error().code() == Errc::NotFound) return {};
  return removed;
}

std::vector<std::string> variables(const ask::PodAsk& ask, const ask::Placement& placement,
                                   const std::vector<ask::Part>& parts,
                                   const ask::NodeFacts& node) {
  std::vector<std::string> env;
  if (parts.empty()) return env;
  if (ask.contract == ask::Contract::Gpushare) {
    add_gpushare(ask, placement, parts, node, env);
  } else {
    add_hami(parts, env);
  }
  return env;
}

}  // namespace gantry::slots
