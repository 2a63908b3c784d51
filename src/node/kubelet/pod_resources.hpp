// SPDX-License-Identifier: Apache-2.0
// The kubelet's podresources API: which container has which device, and which devices the kubelet
// can allocate. The kubelet serves 100 requests per second to all clients together, so answers are
// cached for a short time and shared.
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

// Resource to the ids of its healthy devices, free or in use.
using Allocatable = std::map<std::string, std::set<std::string>>;

// Decodes ListPodResourcesResponse: one entry for each container and resource, without the UID.
Result<std::vector<model::DeviceAllocation>> decode_pod_resources(std::string_view bytes);
Result<Allocatable> decode_allocatable(std::string_view bytes);

class PodResources {
 public:
  struct Options {
    std::string path = "/var/lib/kubelet/pod-resources/kubelet.sock";
    std::chrono::milliseconds deadline{2'000};
    std::chrono::milliseconds keep{500};  // a newer answer is used again
  };
  using OnHolders =
      std::function<void(const Result<std::vector<model::DeviceAllocation>>& holders)>;
  using OnAllocatable = std::function<void(const Result<Allocatable>& allocatable)>;

  explicit PodResources(sys::Loop& loop);
  PodResources(sys::Loop& loop, Options options);
  ~PodResources();  // pending requests are not answered
  PodResources(const PodResources&) = delete;
  PodResources& operator=(const PodResources&) = delete;

  // Answers later, from the loop. Several callers at the same time share one request. After
  // RESOURCE_EXHAUSTED the kubelet is not asked for a second, and the last answer is used.
  void holders(OnHolders callback);
  // The same, but never with an answer from before this call: with a request of its own, and with
  // an error after RESOURCE_EXHAUSTED. For decisions that an old answer would make wrong.
  void holders_now(OnHolders callback);
  void allocatable(OnAllocatable callback);
  void forget();  // drops the cached answer, because something has changed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gantry::kubelet
