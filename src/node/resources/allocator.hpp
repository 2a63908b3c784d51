// SPDX-License-Identifier: Apache-2.0
// The answer to Allocate, by strategy. Everything is prepared when the offer changes; answering
// copies from memory. The kubelet keeps an answer for the life of the pod and replays it: nothing
// in it names a version of the driver.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"
#include "node/options/options.hpp"
#include "node/resources/resources.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::resources {

struct AllocatorOptions {
  // How devices reach the container. Empty: options.list_strategies, and `direct` where those are
  // empty, too.
  std::vector<options::ListStrategy> strategies;
  std::string engine_root;  // put before paths on the host: "" or a simulated machine's place
};

class Allocator {
 public:
  // NotFound where something that was required is missing (an IMEX channel). The CDI names in
  // answers are those of our own specifications: nvidia.com/gpu, gds, gdrcopy, mofed and
  // imex-channel.
  static Result<Allocator> make(const model::Inventory& machine, const options::Options& options,
                                const Offer& offer, const AllocatorOptions& setting);

  // For one container. NotFound for an id that is not offered, with those that are; Invalid for
  // more than one of a resource that allows one; NotFound where a node is missing. Two replicas of
  // one GPU give it once. Tokens give the name of a slot and nothing else: what is in it is decided
  // when the container starts.
  Result<model::ContainerAllocateResponse> answer(std::string_view resource,
                                                  std::span<const std::string> ids) const;

  // Whether an answer that was given earlier still leads to these devices. A machine that starts
  // anew may number its GPUs otherwise; an answer with /dev/nvidia3 in it would then give somebody
  // else's GPU away. Denied, with what helps. Ids that are not offered any more are passed over:
  // the kubelet refuses those itself.
  Status check_stored_answer(std::string_view resource, std::span<const std::string> ids,
                             const model::ContainerAllocateResponse& earlier) const;

  const std::vector<std::string>& notes() const { return notes_; }  // what answers will lack

 private:
  friend class AllocatorBuilder;

  struct Unit {           // a GPU or an instance
    std::string visible;  // UUID or index, as the engine's runtime is told
    std::vector<model::DeviceNodeEdit> nodes;
    std::vector<model::DeviceNodeEdit> own;  // its nodes, whether or not answers have them
    std::string missing;                     // why it cannot be given; "" when it can
    std::uint64_t memory_mib = 0;
  };
  struct Resource {
    bool only_one = false;
    bool tokens = false;
    std::map<std::string, std::size_t, std::less<>> units;  // id -> place in units_
    std::map<std::string, std::string> env;                 // of this resource alone (MPS)
    std::vector<model::MountEdit> mounts;
  };
  struct InjectionMethods {
    bool envvar = false;
    bool volume_mounts = false;
    bool annotations = false;
    bool cri = false;
  };

  Result<std::vector<std::size_t>> units_of(const Resource& resource, std::string_view name,
                                            std::span<const std::string> ids) const;
  model::ContainerAllocateResponse slot_answer(std::string_view resource,
                                               std::span<const std::string> ids) const;
  Status check_stored_slot(std::string_view resource, std::span<const std::string> ids,
                           const model::ContainerAllocateResponse& earlier) const;
  std::string unexpected_node(std::span<const std::size_t> chosen,
                              const model::ContainerAllocateResponse& earlier) const;
  void add_visible_devices(std::span<const std::size_t> chosen,
                           model::ContainerAllocateResponse& answer) const;
  void add_cdi(std::string_view resource, std::vector<std::string> names,
               model::ContainerAllocateResponse& answer) const;
  void add_gke_limits(std::size_t taken, const Unit& unit,
                      model::ContainerAllocateResponse& answer) const;

  InjectionMethods methods_;
  std::string annotation_prefix_;
  std::uint64_t mps_clients_ = 0;  // GKE's MPS; 0: none
  std::vector<Unit> units_;        // in the inventory's order
  std::map<std::string, Resource, std::less<>> resources_;
  model::ContainerAllocateResponse common_;  // in every answer
  std::vector<std::string> common_cdi_;      // CDI names beside the devices'
  std::string missing_;                      // why nothing can be given; "" when it can
  std::vector<std::string> notes_;
};

}  // namespace gantry::resources
