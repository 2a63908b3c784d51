// SPDX-License-Identifier: Apache-2.0
// Answers Allocate, for each strategy. Everything is prepared when the offer changes; an answer is
// only copied from memory. The kubelet stores an answer for the life of the pod and reuses it, so
// an answer never names a driver version.
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
  // How containers get their devices. If empty: options.list_strategies, or `direct` if that is
  // empty too.
  std::vector<options::ListStrategy> strategies;
  // Prefix for paths on the host: "" or the directory of a simulated machine.
  std::string engine_root;
};

class Allocator {
 public:
  // NotFound if something required is missing, for example an IMEX channel. The CDI names in
  // answers are those of our own specifications: nvidia.com/gpu, gds, gdrcopy, mofed and
  // imex-channel.
  static Result<Allocator> make(const model::Inventory& machine, const options::Options& options,
                                const Offer& offer, const AllocatorOptions& setting);

  // The answer for one container. NotFound, with the offered ids, for an id that is not offered, or
  // if a device node is missing; Invalid for more than one device of a resource that allows one.
  // Two replicas of one GPU give the GPU once. Tokens give only the name of a slot; its contents
  // are decided when the container starts.
  Result<model::ContainerAllocateResponse> answer(std::string_view resource,
                                                  std::span<const std::string> ids) const;

  // Checks that an earlier answer still leads to these devices. After a reboot GPUs can have other
  // numbers, and an answer with /dev/nvidia3 would then give away the GPU of another pod. Denied,
  // with a remedy, if so. Ids that are no longer offered are ignored, because the kubelet rejects
  // them itself.
  Status check_stored_answer(std::string_view resource, std::span<const std::string> ids,
                             const model::ContainerAllocateResponse& earlier) const;

  // The values that are missing in the answers.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class AllocatorBuilder;

  struct Unit {           // a GPU or a MIG instance
    std::string visible;  // UUID or index, for the engine's runtime
    std::vector<model::DeviceNodeEdit> nodes;
    // Its device nodes, also if answers do not contain them.
    std::vector<model::DeviceNodeEdit> own;
    std::string missing;  // why it cannot be given; "": it can
    std::uint64_t memory_mib = 0;
  };
  struct Resource {
    bool only_one = false;
    bool tokens = false;
    std::map<std::string, std::size_t, std::less<>> units;  // id -> index in units_
    std::map<std::string, std::string> env;                 // only for this resource (MPS)
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
  std::uint64_t mps_clients_ = 0;  // GKE's MPS; 0: off
  std::vector<Unit> units_;        // in the inventory's order
  std::map<std::string, Resource, std::less<>> resources_;
  model::ContainerAllocateResponse common_;  // part of every answer
  std::vector<std::string> common_cdi_;      // CDI names in addition to the devices
  std::string missing_;                      // why nothing can be given; "": it can
  std::vector<std::string> notes_;
};

}  // namespace gantry::resources
