// SPDX-License-Identifier: Apache-2.0
// What a pod asks of shared GPUs. It is read in one place, for all contracts (gpushare's, HAMi's,
// ours), so that the webhook, the scheduler, the node and `gantry why` cannot disagree about it.
// Pure.
#pragma once

#include "base/core/object_ref.hpp"
#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "gpu/model/container_phase.hpp"
#include "gpu/model/gpu_uuid.hpp"

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
inline constexpr std::string_view kShareSlot = "gantry.dev/share";  // added to gpu-mem in MiB
inline constexpr std::string_view kAlphaNvidiaGpu = "alpha.kubernetes.io/nvidia-gpu";

enum class Contract : std::uint8_t {
  Gpushare,  // aliyun.com/gpu-mem
  Hami       // nvidia.com/gpu with gpumem, gpumem-percentage, gpucores; or nvidia.com/gpu alone
};

// Memory of each GPU. The node defines whether a unit is a GiB or a MiB.
struct Amount {
  enum class Kind : std::uint8_t { Units, MiB, Percent };
  Kind kind = Kind::Percent;
  std::uint64_t value = 100;
  bool operator==(const Amount&) const = default;

  // In whole MiB, for a card with `card_mib`. A percentage is rounded down.
  std::uint64_t on(std::uint64_t card_mib, std::uint64_t unit_mib) const;
};

// The request of one container. Containers that ask for nothing are not listed.
struct ContainerRequest {
  std::string container;
  model::ContainerPhase phase = model::ContainerPhase::Main;
  std::uint32_t position = 0;  // in spec.containers, or in spec.initContainers
  std::uint32_t gpus = 1;      // number of different cards, each with the amount below
  Amount memory;               // of each card
  // Percent of each card's time; 0: no limit; 100: no other pod on the card.
  std::uint32_t cores = 0;
  std::string resource;  // whose ids the kubelet allocates: kAliyunGpuMem, kShareSlot or kNvidiaGpu
  bool operator==(const ContainerRequest&) const = default;
};

enum class PlacementPolicy : std::uint8_t { Pack, Spread };
// Numa: all GPUs on one NUMA node; Links: the best connected set of GPUs.
enum class TopologyPolicy : std::uint8_t { Any, Numa, Links };

// From annotations of the pod.
struct Affinity {
  std::vector<std::string> types;  // substrings of the model, ignoring case; one must match
  std::vector<std::string> excluded_types;
  std::vector<model::GpuUuid> uuids;
  std::vector<model::GpuUuid> excluded_uuids;
  std::optional<PlacementPolicy> nodes;  // nullopt: the scheduler's default
  std::optional<PlacementPolicy> gpus;
  TopologyPolicy topology = TopologyPolicy::Any;
  bool operator==(const Affinity&) const = default;
};

struct PodRequest {
  PodRef pod;
  std::int32_t priority = 0;  // spec.priority
  Contract contract = Contract::Gpushare;
  std::vector<ContainerRequest>
      containers;                     // init containers first, then the others, in the pod's order
  std::uint32_t init_containers = 0;  // of the pod, also those that ask for nothing
  std::uint32_t main_containers = 0;
  Affinity affinity;
  std::string share_priority;  // "low", "normal", "high": for turns on the GPU; "": normal
  bool shared() const;         // more than only `nvidia.com/gpu: N`, which a whole card satisfies
  bool operator==(const PodRequest&) const = default;
};

// nullopt: the pod asks for no shared GPU and no nvidia.com/gpu. Invalid, in one sentence with what
// to write instead, for a request that is not valid: both contracts in one pod, fractions,
// percentages above 100, gpumem without a number, annotations with invalid values.
Result<std::optional<PodRequest>> parse_request(const json::Value& pod);

// The same without affinity and share priority, for a pod that is already on a node. Another
// scheduler may have accepted values that we refuse; what the pod holds still counts.
Result<std::optional<PodRequest>> parse_amounts(const json::Value& pod);

// Its phase is Succeeded or Failed, so it holds nothing. A pod that is being deleted holds its GPUs
// until it is gone.
bool is_finished(const json::Value& pod);

// Our own annotations of pods, for suggestions when one is misspelled.
std::vector<std::string> known_annotations();

}  // namespace gantry::podspec
