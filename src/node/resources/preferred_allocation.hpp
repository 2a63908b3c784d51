// SPDX-License-Identifier: Apache-2.0
// Which of the free devices a container should get. Whole GPUs: the set with the most NVLinks among
// them, then the nearest by PCIe, then by NUMA node; among equals the set that leaves the best
// connected rest, so that a request for one does not split a pair. Exact for 16 GPUs and any
// request, in less than a millisecond. Replicas and MIG instances: spread over the GPUs, or packed.
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

// NVLinks count before PCIe, PCIe before NUMA, however many pairs are added up.
LinkScore pair_score(const model::Link& link, const model::Gpu& a, const model::Gpu& b);

class PreferredAllocation {
 public:
  PreferredAllocation(const model::Inventory& machine, const model::AdvertisedResource& resource,
                      options::SharedPolicy policy);

  // At most `size` ids of `available`, must_include among them; ids that are not ours are passed
  // over: the kubelet fills up a short answer, and an error here would end the pod.
  std::vector<std::string> prefer(std::span<const std::string> available,
                                  std::span<const std::string> must_include, int size) const;

 private:
  struct Device {
    int gpu = 0;   // place among the machine's GPUs
    int unit = 0;  // the GPU or instance that replicas have in common
    int order = 0;
  };
  struct KnownDevice {
    const std::string* id = nullptr;
    const Device* device = nullptr;
  };
  std::vector<KnownDevice> known(std::span<const std::string> ids) const;  // in the offer's order
  std::vector<std::string> linked(const std::vector<KnownDevice>& available,
                                  const std::vector<KnownDevice>& required, int size) const;
  std::vector<std::string> spread(const std::vector<KnownDevice>& available,
                                  const std::vector<KnownDevice>& required, int size) const;

  bool shared_ = false;  // replicas or instances: links do not matter
  options::SharedPolicy policy_;
  std::map<std::string, Device, std::less<>> devices_;
  LinkScores scores_;             // between the machine's GPUs
  std::vector<int> gpu_totals_;   // devices of this resource on each GPU
  std::vector<int> unit_totals_;  // and of each unit
};

}  // namespace gantry::resources
