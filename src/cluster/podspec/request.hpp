// SPDX-License-Identifier: Apache-2.0
// What a pod asks of shared GPUs, read once from its manifest whatever contract it is written in
// (gpushare's, HAMi's, ours), so that the webhook, the scheduler, the node and `gantry why` cannot
// disagree about it. Pure.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::podspec {

inline constexpr std::string_view kAliyunGpuMem = "aliyun.com/gpu-mem";
inline constexpr std::string_view kAliyunGpuCount = "aliyun.com/gpu-count";
inline constexpr std::string_view kNvidiaGpu = "nvidia.com/gpu";
inline constexpr std::string_view kHamiGpuMem = "nvidia.com/gpumem";
inline constexpr std::string_view kHamiGpuMemPercentage = "nvidia.com/gpumem-percentage";
inline constexpr std::string_view kHamiGpuCores = "nvidia.com/gpucores";
inline constexpr std::string_view kHamiPriority = "nvidia.com/priority";
inline constexpr std::string_view kShareSlot = "gantry.dev/share";  // added beside gpu-mem in MiB
inline constexpr std::string_view kAlphaNvidiaGpu = "alpha.kubernetes.io/nvidia-gpu";

enum class Contract : std::uint8_t {
  Gpushare,  // aliyun.com/gpu-mem
  Hami       // nvidia.com/gpu with gpumem, gpumem-percentage, gpucores; or nvidia.com/gpu alone
};

// How much memory of each GPU. A unit is what the node says it is: a GiB or a MiB.
struct Amount {
  enum class Kind : std::uint8_t { Units, MiB, Percent };
  Kind kind = Kind::Percent;
  std::uint64_t value = 100;
  bool operator==(const Amount&) const = default;

  // Whole MiB, rounded down for a per cent; of `card_mib` in all.
  std::uint64_t on(std::uint64_t card_mib, std::uint64_t unit_mib) const;
};

enum class Phase : std::uint8_t {
  Init,     // runs alone, before the others, and hands on what it had
  Sidecar,  // an init container with restartPolicy Always: stays
  Main
};

// One container's part of it. Containers that ask for nothing are not listed.
struct ContainerRequest {
  std::string container;
  Phase phase = Phase::Main;
  std::uint32_t position = 0;  // in spec.containers, or in spec.initContainers
  std::uint32_t gpus = 1;      // different cards, each with the amount below
  Amount memory;               // of each
  std::uint32_t cores = 0;     // per cent of each one's time; 0: no limit; 100: nobody else on it
  std::string resource;        // whose ids the kubelet hands out: kGpuMem, kSlot or kGpu
  bool operator==(const ContainerRequest&) const = default;
};

enum class PlacementPolicy : std::uint8_t { Pack, Spread };
enum class TopologyPolicy : std::uint8_t {
  Any,
  Numa,
  Links
};  // NUMA node in common; best connected set

// Annotations of the pod.
struct Affinity {
  std::vector<std::string> types;  // substrings of the model, without case; any of them
  std::vector<std::string> excluded_types;
  std::vector<std::string> uuids;
  std::vector<std::string> excluded_uuids;
  std::optional<PlacementPolicy> nodes;  // none: as the scheduler is told
  std::optional<PlacementPolicy> gpus;
  TopologyPolicy topology = TopologyPolicy::Any;
  bool operator==(const Affinity&) const = default;
};

struct PodRequest {
  std::string uid;
  std::string name_space;
  std::string name;
  std::int32_t priority = 0;  // spec.priority
  Contract contract = Contract::Gpushare;
  std::vector<ContainerRequest>
      containers;                     // init containers first, then the others, as in the pod
  std::uint32_t init_containers = 0;  // of the pod, whether they ask or not
  std::uint32_t main_containers = 0;
  Affinity affinity;
  std::string share_priority;  // "low", "normal", "high": at the gate of the GPU; "": normal
  bool shared() const;         // more than `nvidia.com/gpu: N` alone, which a whole card satisfies
  bool operator==(const PodRequest&) const = default;
};

// nullopt: the pod asks for no shared GPU and no nvidia.com/gpu. Invalid, in one sentence with what
// to write instead, for what contradicts itself: both contracts in one pod, fractions, per cents
// beyond 100, gpumem without a number, annotations that are none.
Result<std::optional<PodRequest>> parse_request(const json::Value& pod);

// The same without wishes and priority at the gate: of a pod that is on a node, where another
// scheduler may have put it that knew wishes which we refuse. What it holds counts all the same.
Result<std::optional<PodRequest>> parse_amounts(const json::Value& pod);

// Annotations of pods in our own name, for those who mistype one.
std::vector<std::string> known_annotations();

}  // namespace gantry::podspec
