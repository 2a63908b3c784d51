// SPDX-License-Identifier: Apache-2.0
// What happens before a container with a slot starts: its pod's placement is read, checked against
// what the pod asks for and against everything this node has given away, written down as a grant,
// and made true: a share, and a CDI device of the slot's name. Each step can be done again, so that
// an end between any two of them loses nothing: the kubelet asks once more.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "base/sys/host.hpp"
#include "cluster/podspec/node.hpp"
#include "container/publish/share_spec.hpp"
#include "gpu/model/inventory.hpp"
#include "node/pod_shares/placing.hpp"
#include "sharing/daemon/client.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gantry::pod_shares {

// What this node has in shares now.
struct Machine {
  podspec::NodeFacts facts;
  model::Inventory inventory;
};

struct Container {
  std::string name;
  std::map<std::string, std::vector<std::string>> ids;  // by resource, those of slots alone
};

// Somebody is about to start; by the kubelet's checkpoint.
struct Start {
  std::string pod_uid;
  std::vector<Container> containers;  // which have exactly the same ids of a resource
};

// What the API server shall be told, whenever it listens.
struct PodPatch {
  std::string name_space;
  std::string name;
  std::string body;  // a merge patch
  std::string why;
};

struct Around {
  const sys::Host& host;
  std::vector<std::string> keeper;  // the program that becomes one
  std::function<Result<publish::ShareSpecOptions>()> spec;
  // The pod as JSON. NotFound: there is none; Busy: nobody knows.
  std::function<Result<std::string>(const std::string& uid)> pod;
  std::function<std::vector<std::string>()> pods;  // of this node, JSON
  std::function<std::int64_t()> unix_ns;
  std::function<void(std::string_view what)> note;  // for the log
};

class Filler {
 public:
  explicit Filler(Around around) : around_(std::move(around)) {}

  // May take seconds: the keeper may have to start. Errors are for the kubelet, which tries again.
  Result<std::vector<PodPatch>> fill(const Machine& machine, const Start& start);

  // Ends what pods have that are not `alive`, and shares and devices that no grant names. What
  // processes still use stays until the next time. True: nothing is left over.
  bool end_all_but(const std::function<bool(const grants::Written&)>& alive);

 private:
  struct Plan;
  Result<Plan> plan_for(const Machine& machine, const Start& start,
                        const std::vector<grants::Written>& granted);
  Result<podspec::Placement> placement_for(const Machine& machine, const json::Document& pod,
                                           const podspec::PodAsk& ask,
                                           const std::vector<grants::Written>& granted, Plan& plan);
  std::vector<Promised> promised(const Machine& machine) const;
  Status give(const Machine& machine, const Plan& plan,
              const std::vector<grants::Written>& granted);
  Status make_true(const Machine& machine, const Plan& plan,
                   const std::vector<grants::Written>& granted);
  Result<std::vector<grants::Written>> end_former(const Start& start) const;
  Status end_others(daemon::Client& keeper, const Plan& plan,
                    const std::vector<grants::Written>& granted);
  bool is_as_given(const Start& start, const std::vector<grants::Written>& granted) const;
  bool end_ownerless() const;
  Status end_container(const grants::Written& written,
                       const std::vector<grants::Written>& others) const;

  Around around_;
};

}  // namespace gantry::pod_shares
