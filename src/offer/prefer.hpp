// SPDX-License-Identifier: Apache-2.0
// Which of the free devices a container should get. Whole GPUs: the set with the most NVLinks among
// them, then the nearest by PCIe, then by NUMA node; among equals the set that leaves the best
// connected rest, so that a request for one does not split a pair. Exact for up to 16 GPUs and any
// request, in less than a millisecond. Replicas and MIG instances: spread over the GPUs, or packed.
#pragma once

#include "model/inventory.hpp"
#include "model/offer.hpp"
#include "offer/options.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::offer {

// How well two GPUs reach each other: NVLinks count before PCIe, PCIe before NUMA, however many
// pairs are added up.
using Score = std::int64_t;
inline constexpr Score kNvlinkScore = 1'000'000;
inline constexpr Score kPcieScore = 1'000;
Score pair_score(const model::Link& link, const model::Gpu& a, const model::Gpu& b);

// The best `size` of `available` (indexes into `scores`), with all of `required` among them:
// greatest sum of pairs inside, then greatest sum inside what is left, then lowest indexes.
std::vector<int> best_set(const std::vector<std::vector<Score>>& scores,
                          std::span<const int> available, std::span<const int> required, int size);

class Preferences {
 public:
  Preferences(const model::Inventory& machine, const model::OfferedResource& resource,
              SharedPolicy policy);

  // At most `size` ids of `available`, must_include first; ids that are not ours are passed over:
  // the kubelet fills up a short answer, and an error here would end the pod.
  std::vector<std::string> prefer(std::span<const std::string> available,
                                  std::span<const std::string> must_include, int size) const;

 private:
  struct Device {
    int gpu = 0;   // place among the machine's GPUs
    int unit = 0;  // the GPU or instance that replicas have in common
  };
  std::vector<std::string> prefer_linked(std::vector<std::string> chosen,
                                         std::span<const std::string> available, int size) const;
  std::vector<std::string> prefer_shared(std::vector<std::string> chosen,
                                         std::span<const std::string> available, int size) const;

  bool shared_ = false;  // replicas or instances: links do not matter
  SharedPolicy policy_;
  std::map<std::string, Device, std::less<>> devices_;
  std::vector<std::vector<Score>> scores_;  // between the machine's GPUs
  std::vector<int> gpu_totals_;             // devices of this resource on each GPU
  std::vector<int> unit_totals_;
};

}  // namespace gantry::offer
