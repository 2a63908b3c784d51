// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "cluster/podspec/affinity_internal.hpp"
#include "cluster/podspec/limits_internal.hpp"
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::podspec {
namespace {

constexpr std::size_t kMaxContainersPerPod = 1024;

// A container that asks for something.
struct RequestingContainer {
  std::string name;
  model::ContainerPhase phase = model::ContainerPhase::Main;
  std::uint32_t position = 0;
  GpuLimits limits;
};

struct Containers {
  std::vector<RequestingContainer> asking;
  std::uint32_t inits = 0;
  std::uint32_t mains = 0;
};

Status read_containers(const json::Value& list, bool init, Containers& out,
                       std::set<std::string>& names) {
  for (const auto container : list) {
    if (names.size() == kMaxContainersPerPod)
      return Error(Errc::Invalid, fmt::format("more than {} containers", kMaxContainersPerPod));
    const auto position = init ? out.inits++ : out.mains++;
    const auto name = container["name"].string().value_or("");
    GANTRY_TRY(auto limits,
               parse_limits(container).in(fmt::format("container \"{}\"", shorten(name))));
    if (!names.insert(name).second)
      return Error(Errc::Invalid, fmt::format("two containers are named \"{}\"", shorten(name)));
    const bool asks = limits.gpushare() || limits.hami();
    if (!asks && limits.slot.value_or(0) > 0)
      return Error(Errc::Invalid,
                   fmt::format("container \"{}\" has only {}", shorten(name), kShareSlot))
          .advise(
              fmt::format("also write {} with the amount of memory that it needs", kAliyunGpuMem));
    if (!asks) continue;
    if (name.empty()) return Error(Errc::Invalid, "a container that asks for a GPU has no name");
    const bool stays = init && container["restartPolicy"].string() == "Always";
    const auto phase = stays ? model::ContainerPhase::Sidecar
                             : (init ? model::ContainerPhase::Init : model::ContainerPhase::Main);
    out.asking.push_back({name, phase, position, limits});
  }
  return {};
}

Status one_contract(const Containers& containers) {
  const RequestingContainer* gpushare = nullptr;
  const RequestingContainer* hami = nullptr;
  for (const auto& asking : containers.asking) {
    if (asking.limits.gpushare()) gpushare = &asking;
    if (asking.limits.hami()) hami = &asking;
  }
  if (gpushare == nullptr || hami == nullptr) return {};
  const auto where = gpushare == hami ? fmt::format("container \"{}\"", shorten(hami->name))
                                      : fmt::format("containers \"{}\" and \"{}\"",
                                                    shorten(gpushare->name), shorten(hami->name));
  return Error(Errc::Invalid,
               fmt::format("{} {} for {} and for {} resources", where,
                           gpushare == hami ? "asks" : "ask", kAliyunGpuMem, kNvidiaGpu))
      .advise(fmt::format("write {} with {}, or {} alone", kNvidiaGpu, kHamiGpuMem, kAliyunGpuMem));
}

// The number of cards over which the memory of a gpushare container is spread.
Result<std::uint64_t> gpushare_gpus(const json::Value& pod, const RequestingContainer& asking) {
  GANTRY_TRY(const auto own, number_annotation(pod, kGpus, asking.name, kMaxGpusPerContainer));
  GANTRY_TRY(auto theirs,
             number_annotation(pod, kAliyunGpuCount, asking.name, kMaxGpusPerContainer));
  const auto label = pod["metadata"]["labels"][kAliyunGpuCount].string();
  if (!theirs && label) {
    theirs = parse_u64(*label);
    if (!theirs || *theirs == 0 || *theirs > kMaxGpusPerContainer)
      return Error(Errc::Invalid,
                   fmt::format("label {}: \"{}\" is not valid", kAliyunGpuCount, shorten(*label)))
          .advise(
              fmt::format("write a whole number from 1 to {}, in quotes", kMaxGpusPerContainer));
  }
  if (!theirs && asking.limits.gpu_count.value_or(0) > 0) theirs = asking.limits.gpu_count;
  if (own && theirs && *own != *theirs)
    return Error(Errc::Invalid, fmt::format("{}: {} and {}: {} contradict each other", kGpus, *own,
                                            kAliyunGpuCount, *theirs))
        .advise("keep one");
  return own ? *own : theirs.value_or(1);
}

Status fill_gpushare(const json::Value& pod, const RequestingContainer& asking,
                     ContainerRequest& ask) {
  const auto units = *asking.limits.gpu_mem;
  GANTRY_TRY(const auto gpus, gpushare_gpus(pod, asking));
  if (units % gpus != 0)
    return Error(Errc::Invalid, fmt::format("{}: {} cannot be divided evenly among {} GPUs",
                                            kAliyunGpuMem, units, gpus))
        .advise(fmt::format("write {}", (units / gpus + 1) * gpus));
  ask.gpus = static_cast<std::uint32_t>(gpus);
  ask.memory = {Amount::Kind::Units, units / gpus};
  ask.resource = asking.limits.slot.value_or(0) > 0 ? kShareSlot : kAliyunGpuMem;
  return {};
}

Status fill_hami(const json::Value& pod, const RequestingContainer& asking, ContainerRequest& ask) {
  const auto& limits = asking.limits;
  if (limits.gpu == std::uint64_t{0})
    return Error(Errc::Invalid,
                 fmt::format("{}: 0 contradicts a limit for memory or cores of a GPU", kNvidiaGpu))
        .advise(fmt::format("write {}: 1", kNvidiaGpu));
  if (limits.memory_percent == std::uint64_t{0})
    return Error(Errc::Invalid, fmt::format("{}: 0 would be no memory", kHamiGpuMemPercentage))
        .advise("write 1 to 100, or remove it to get all memory");
  GANTRY_TRY(const auto gpus, number_annotation(pod, kGpus, asking.name, kMaxGpusPerContainer));
  const auto number = limits.gpu.value_or(1);
  if (gpus && *gpus != number)
    return Error(Errc::Invalid, fmt::format("annotation {}: {} contradicts {}: {}", kGpus, *gpus,
                                            kNvidiaGpu, number))
        .advise("remove the annotation");
  ask.gpus = static_cast<std::uint32_t>(number);
  ask.resource = kNvidiaGpu;
  if (limits.memory_mib.value_or(0) > 0) {
    ask.memory = {Amount::Kind::MiB, *limits.memory_mib};
  } else {
    ask.memory = {Amount::Kind::Percent, limits.memory_percent.value_or(100)};
  }
  return {};
}

// All of the memory without a compute limit means a card without other pods.
Result<std::uint32_t> parse_cores(const json::Value& pod, const RequestingContainer& asking,
                                  const Amount& memory) {
  GANTRY_TRY(const auto own, number_annotation(pod, kCompute, asking.name, 100));
  const auto limit = asking.limits.cores;
  if (own && limit && *own != *limit)
    return Error(Errc::Invalid, fmt::format("annotation {}: {} and {}: {} contradict each other",
                                            kCompute, *own, kHamiGpuCores, *limit))
        .advise("keep one");
  const std::uint64_t unsaid = memory == Amount{} ? 100 : 0;
  return static_cast<std::uint32_t>(own ? *own : limit.value_or(unsaid));
}

Result<ContainerRequest> container_ask(const json::Value& pod, const RequestingContainer& asking) {
  ContainerRequest ask;
  ask.container = asking.name;
  ask.phase = asking.phase;
  ask.position = asking.position;
  const auto& limits = asking.limits;
  GANTRY_CHECK(limits.gpushare() ? fill_gpushare(pod, asking, ask) : fill_hami(pod, asking, ask));
  GANTRY_TRY(ask.cores, parse_cores(pod, asking, ask.memory));
  return ask;
}

// Annotations such as gantry.dev/compute.CONTAINER must name a container that asks for GPUs.
Status check_names(const json::Value& pod, const Containers& containers) {
  for (const auto member : pod["metadata"]["annotations"]) {
    const auto key = member.key();
    for (const auto prefix : {kCompute, kGpus}) {
      if (!key.starts_with(fmt::format("{}.", prefix))) continue;
      const auto name = std::string_view(key).substr(prefix.size() + 1);
      const auto named = [&](const RequestingContainer& asking) { return asking.name == name; };
      if (std::any_of(containers.asking.begin(), containers.asking.end(), named)) continue;
      return Error(
                 Errc::Invalid,
                 fmt::format("annotation {} names no container that asks for a GPU", shorten(key)))
          .advise(fmt::format("write {}.{}", prefix, shorten(containers.asking.front().name)));
    }
  }
  return {};
}

// HAMi's number for each container and our value for the pod must agree.
Result<std::string> share_priority(const json::Value& pod, const Containers& containers) {
  GANTRY_TRY(auto priority, parse_share_priority(pod));
  for (const auto& asking : containers.asking) {
    if (!asking.limits.priority) continue;
    const std::string theirs = *asking.limits.priority == 0 ? "high" : "low";
    if (!priority.empty() && priority != theirs)
      return Error(Errc::Invalid,
                   fmt::format("container \"{}\": {}: {} ({}), but the pod already has {}",
                               shorten(asking.name), kHamiPriority, *asking.limits.priority, theirs,
                               priority))
          .advise("a pod has one priority");
    priority = theirs;
  }
  return priority;
}

void read_names(const json::Value& pod, PodRequest& ask) {
  const auto metadata = pod["metadata"];
  ask.pod.uid = metadata["uid"].string().value_or("");
  ask.pod.name_space = metadata["namespace"].string().value_or("");
  ask.pod.name = metadata["name"].string().value_or("");
  ask.priority = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(pod["spec"]["priority"].i64().value_or(0), INT32_MIN, INT32_MAX));
}

enum class Reading : std::uint8_t { All, Amounts };

Result<std::optional<PodRequest>> read_ask(const json::Value& pod, Reading reading) {
  if (!pod.is(json::Kind::Object))
    return Error(Errc::Invalid, fmt::format("{} is not a pod", json::to_string(pod.kind())));
  Containers containers;
  std::set<std::string> names;
  const auto spec = pod["spec"];
  GANTRY_CHECK(read_containers(spec["initContainers"], true, containers, names));
  GANTRY_CHECK(read_containers(spec["containers"], false, containers, names));
  if (containers.asking.empty()) return std::optional<PodRequest>();
  GANTRY_CHECK(one_contract(containers));
  if (reading == Reading::All) GANTRY_CHECK(check_names(pod, containers));

  PodRequest ask;
  read_names(pod, ask);
  ask.contract = containers.asking.front().limits.gpushare() ? Contract::Gpushare : Contract::Hami;
  ask.init_containers = containers.inits;
  ask.main_containers = containers.mains;
  if (reading == Reading::All) {
    GANTRY_TRY(ask.affinity, parse_affinity(pod));
    GANTRY_TRY(ask.share_priority, share_priority(pod, containers));
  }
  for (const auto& asking : containers.asking) {
    GANTRY_TRY(
        auto container,
        container_ask(pod, asking).in(fmt::format("container \"{}\"", shorten(asking.name))));
    ask.containers.push_back(std::move(container));
  }
  return std::optional<PodRequest>(std::move(ask));
}

}  // namespace

Result<std::optional<PodRequest>> parse_request(const json::Value& pod) {
  return read_ask(pod, Reading::All);
}

Result<std::optional<PodRequest>> parse_amounts(const json::Value& pod) {
  return read_ask(pod, Reading::Amounts);
}

bool is_finished(const json::Value& pod) {
  const auto phase = pod["status"]["phase"].string_or_empty();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace gantry::podspec
