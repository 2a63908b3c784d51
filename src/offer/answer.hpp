// SPDX-License-Identifier: Apache-2.0
// The answer to Allocate, by strategy. Everything is prepared when the offer changes; answering
// copies from memory. The kubelet keeps an answer for the life of the pod and replays it: nothing
// in it names a version of the driver.
#pragma once

#include "base/result.hpp"
#include "model/offer.hpp"
#include "offer/options.hpp"
#include "offer/resources.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::offer {

struct AnswerSetting {
  // How devices reach the container. Empty: options.list_strategies, and `direct` where those are
  // empty, too.
  std::vector<ListStrategy> strategies;
  std::string engine_root;  // put before paths on the host: "" or a simulated machine's place
};

class Answers {
 public:
  // NotFound where something that was required is missing (an IMEX channel).
  static Result<Answers> make(const model::Inventory& machine, const Options& options,
                              const Offer& offer, const AnswerSetting& setting);

  // For one container. NotFound for an id that is not offered, with those that are; Invalid for
  // more than one of a resource that allows one; NotFound where a node is missing. Two replicas of
  // one GPU give it once.
  Result<model::AllocateAnswer> answer(std::string_view resource,
                                       std::span<const std::string> ids) const;

  const std::vector<std::string>& notes() const { return notes_; }  // what will not be in answers

 private:
  friend class AnswerMaker;
  struct Unit {           // a GPU or an instance
    std::string place;    // sorts as the inventory does
    std::string visible;  // UUID or index, as the engine's runtime is told
    std::vector<model::NodeEdit> nodes;
    std::string missing;  // why it cannot be given; "" when it can
    std::int64_t memory_mib = 0;
  };
  struct Resource {
    bool only_one = false;
    std::map<std::string, std::size_t, std::less<>> units;  // id -> units_
    std::map<std::string, std::string> env;                 // of this resource alone (MPS)
    std::vector<model::MountEdit> mounts;
  };

  Status add_devices(std::span<const std::size_t> chosen, std::string_view resource,
                     model::AllocateAnswer& answer) const;
  void add_gke_sharing(const Resource& resource, std::span<const std::string> ids,
                       std::span<const std::size_t> chosen, model::AllocateAnswer& answer) const;

  Program program_ = Program::Agent;
  bool envvar_ = false;
  bool volume_mounts_ = false;
  bool annotations_ = false;
  bool cri_ = false;
  std::string annotation_prefix_;
  std::int64_t mps_clients_ = 0;  // GKE's MPS
  std::size_t gpu_count_ = 0;
  std::vector<Unit> units_;
  std::map<std::string, Resource, std::less<>> resources_;
  model::AllocateAnswer common_;         // in every answer
  std::vector<std::string> common_cdi_;  // CDI names beside the devices'
  std::vector<std::string> notes_;
};

}  // namespace gantry::offer
