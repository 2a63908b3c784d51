// SPDX-License-Identifier: Apache-2.0
// Chooses which of the free devices a container should get. For whole GPUs: the set with the most
// NVLinks, then the nearest by PCIe, then by NUMA node; among equal sets, the one that leaves the
// best connected GPUs free, so that a request for one GPU does not split a pair. Exact for 16 GPUs
// and any request, in less than a millisecond. For replicas and MIG instances: spread over the
// GPUs, or packed.
#pragma once

#include "gpu/model/advertised.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/topology/best_set.hpp"
#include "node/options/options.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::resources {

using topology::best_set;
using topology::BestSet;
using topology::LinkScore;
using topology::LinkScores;

// NVLinks count more than PCIe and PCIe more than NUMA, for any number of pairs.
LinkScore pair_score(const model::Link& link, const model::Gpu& a, const model::Gpu& b);

class PreferredAllocation {
 public:
  PreferredAllocation(const model::Inventory& machine, const model::AdvertisedResource& resource,
                      options::SharedPolicy policy);

  // Returns at most `size` ids of `available`, including must_include. Unknown ids are ignored: the
  // kubelet completes a short answer, but an error would fail the pod.
  std::vector<std::string> prefer(std::span<const std::string> available,
                                  std::span<const std::string> must_include, int size) const;

 private:
  struct Device {
    int gpu = 0;   // index among the machine's GPUs
    int unit = 0;  // the GPU or instance of a replica
    int order = 0;
  };
  struct KnownDevice {
    const std::string* id = nullptr;
    const Device* device = nullptr;
  };
  // In the order of the offer.
  std::vector<KnownDevice> known(std::span<const std::string> ids) const;
  std::vector<std::string> linked(const std::vector<KnownDevice>& available,
                                  const std::vector<KnownDevice>& required, int size) const;
  std::vector<std::string> spread(const std::vector<KnownDevice>& available,
                                  const std::vector<KnownDevice>& required, int size) const;

  bool shared_ = false;  // replicas or instances: links do not matter
  options::SharedPolicy policy_;
  std::map<std::string, Device, std::less<>> devices_;
  LinkScores scores_;             // between the machine's GPUs
  std::vector<int> gpu_totals_;   // devices of this resource on each GPU
  std::vector<int> unit_totals_;  // devices of this resource on each unit
};

}  // namespace gantry::resources
