// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/cluster.hpp"
#include "cluster/placement/pod_demand_internal.hpp"
#include "cluster/podspec/unhealthy_gpus.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::placement {
namespace {

std::string size_text(std::uint64_t mib) {
  if (mib >= 1024 && mib % 1024 == 0) return fmt::format("{} GiB", mib / 1024);
  return fmt::format("{} MiB", mib);
}

std::string memory_text(const podspec::Amount& memory, std::uint64_t unit_mib) {
  switch (memory.kind) {
    case podspec::Amount::Kind::Units:
      return size_text(std::min(memory.value, kMaxMib) * unit_mib) + " of memory";
    case podspec::Amount::Kind::MiB: return size_text(memory.value) + " of memory";
    case podspec::Amount::Kind::Percent: return fmt::format("{} % of its memory", memory.value);
  }
  return {};
}

// The container that is hardest to place, for the sentence.
const podspec::ContainerRequest* largest_container(const podspec::PodRequest& ask) {
  const auto size = [](const podspec::ContainerRequest& asked) {
    return std::pair(asked.cores >= kWholeCardCores, asked.memory.value);
  };
  const auto found =
      std::max_element(ask.containers.begin(), ask.containers.end(),
                       [&](const podspec::ContainerRequest& a, const podspec::ContainerRequest& b) {
                         return size(a) < size(b);
                       });
  return found == ask.containers.end() ? nullptr : &*found;
}

}  // namespace

bool resolvable(Refusal refusal) {
  switch (refusal) {
    case Refusal::None:
    case Refusal::NoSharedGpus:
    case Refusal::TooBig:
    case Refusal::NoMatch:
    case Refusal::Unhealthy:
    case Refusal::Quota: return false;
    case Refusal::Memory:
    case Refusal::Cores:
    case Refusal::Slots:
    case Refusal::Exclusive: return true;
  }
  return false;
}

std::string describe(Refusal refusal, const podspec::PodRequest& ask, std::uint64_t unit_mib) {
  const auto* asked = largest_container(ask);
  if (asked == nullptr) return "the pod asks for no GPU";
  const auto amount = memory_text(asked->memory, unit_mib);
  const bool one = asked->gpus == 1;
  const auto gpus =
      one ? std::string("no GPU here") : fmt::format("fewer than {} GPUs here", asked->gpus);
  const auto has = one ? "has" : "have";
  switch (refusal) {
    case Refusal::None: return "it fits";
    case Refusal::NoSharedGpus: return "no shared GPUs here";
    case Refusal::TooBig: return fmt::format("{} {} {}, even when empty", gpus, has, amount);
    case Refusal::NoMatch:
      return fmt::format("{} {} the pod's annotations", gpus, one ? "matches" : "match");
    case Refusal::Unhealthy:
      return fmt::format("{} with {} {} healthy", gpus, amount, one ? "is" : "are");
    case Refusal::Memory: return fmt::format("{} {} {} free", gpus, has, amount);
    case Refusal::Cores:
      return asked->cores == 0 ? fmt::format("{} with {} free {} time left", gpus, amount, has)
                               : fmt::format("{} with {} free {} {} % of its time left", gpus,
                                             amount, has, asked->cores);
    case Refusal::Slots: return fmt::format("{} {} room for one more pod", gpus, has);
    case Refusal::Exclusive:
      return fmt::format("{} {} free of other pods", gpus, one ? "is" : "are");
    case Refusal::Quota:
      return fmt::format("the GPU quota of namespace {} is used up", ask.pod.name_space);
  }
  return {};
}

std::string describe(const Fit& fit, const podspec::PodRequest& ask, std::string_view node) {
  auto text = describe(fit.refusal, ask, fit.unit_mib);
  if (fit.marked_unhealthy && (fit.refusal == Refusal::Unhealthy || resolvable(fit.refusal)))
    text +=
        fmt::format(" (some are marked unhealthy by {})", podspec::unhealthy_config_map_name(node));
  return text;
}

}  // namespace gantry::placement
