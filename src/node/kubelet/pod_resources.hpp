// SPDX-License-Identifier: Apache-2.0
// The kubelet's podresources API: who has which device, and what it would hand out. It serves 100
// questions a second to everybody together, so answers are kept for a while and shared.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "gpu/model/advertised.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kubelet {

inline constexpr std::string_view kListPods = "/v1.PodResourcesLister/List";
inline constexpr std::string_view kGetAllocatable =
    "/v1.PodResourcesLister/GetAllocatableResources";

// Resource to the ids of its healthy devices, free or not.
using Allocatable = std::map<std::string, std::set<std::string>>;

// Of ListPodResourcesResponse; one holder for each container and resource, pod_uid is unknown here.
Result<std::vector<model::DeviceAllocation>> decode_pod_resources(std::string_view bytes);
std::string encode_pod_resources(const std::vector<model::DeviceAllocation>& holders);
Result<Allocatable> decode_allocatable(std::string_view bytes);
std::string encode_allocatable(const Allocatable& allocatable);

class PodResources {
 public:
  struct Options {
    std::string path = "/var/lib/kubelet/pod-resources/kubelet.sock";
    std::chrono::milliseconds deadline{2'000};
    std::chrono::milliseconds keep{500};  // an answer younger than this is given again
  };
  using OnHolders =
      std::function<void(const Result<std::vector<model::DeviceAllocation>>& holders)>;
  using OnAllocatable = std::function<void(const Result<Allocatable>& allocatable)>;

  explicit PodResources(sys::Loop& loop);
  PodResources(sys::Loop& loop, Options options);
  ~PodResources();  // what was asked is not answered any more
  PodResources(const PodResources&) = delete;
  PodResources& operator=(const PodResources&) = delete;

  // Answered from the loop, later. Several who ask at once share one question; after
  // RESOURCE_EXHAUSTED the kubelet is left alone for a second, and the last answer serves.
  void holders(OnHolders callback);
  void allocatable(OnAllocatable callback);
  void forget();  // what was kept: something has changed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gantry::kubelet
