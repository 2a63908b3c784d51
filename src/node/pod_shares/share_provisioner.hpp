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
#include "node/pod_shares/node_placement.hpp"
#include "sharing/daemon/client.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gantry::pod_shares {

// What this node has in shares now.
struct NodeSnapshot {
  podspec::NodeInfo facts;
  model::Inventory inventory;
};

struct StartingContainer {
  std::string name;
  std::map<std::string, std::vector<std::string>> ids;  // by resource, those of slots alone
};

// Somebody is about to start; by the kubelet's checkpoint.
struct ContainerStart {
  std::string pod_uid;
  std::vector<StartingContainer> containers;  // which have exactly the same ids of a resource
};

// What the API server shall be told, whenever it listens.
struct PodPatch {
  std::string name_space;
  std::string name;
  std::string body;  // a merge patch
  std::string why;
};

struct ProvisionerContext {
  const sys::Host& host;
  std::vector<std::string> keeper;  // the program that becomes one
  std::function<Result<publish::ShareSpecOptions>()> spec;
  // The pod as JSON. NotFound: there is none; Busy: nobody knows.
  std::function<Result<std::string>(const std::string& uid)> pod;
  std::function<std::vector<std::string>()> pods;  // of this node, JSON
  std::function<std::int64_t()> unix_ns;
  std::function<void(std::string_view what)> note;  // for the log
};

class ShareProvisioner {
 public:
  explicit ShareProvisioner(ProvisionerContext context) : context_(std::move(context)) {}

  // May take seconds: the keeper may have to start. Errors are for the kubelet, which tries again.
  Result<std::vector<PodPatch>> provision(const NodeSnapshot& machine, const ContainerStart& start);

  // Ends what pods have that are not `alive`, and shares and devices that no grant names. What
  // processes still use stays until the next time. True: nothing is left over.
  bool remove_all_except(const std::function<bool(const grants::GrantFile&)>& alive);

 private:
  struct Plan;
  Result<Plan> plan_for(const NodeSnapshot& machine, const ContainerStart& start,
                        const std::vector<grants::GrantFile>& granted);
  Result<podspec::Placement> placement_for(const NodeSnapshot& machine, const json::Document& pod,
                                           const podspec::PodRequest& ask,
                                           const std::vector<grants::GrantFile>& granted,
                                           Plan& plan);
  std::vector<PlacedPod> placed_pods(const NodeSnapshot& machine) const;
  Status give(const NodeSnapshot& machine, const Plan& plan,
              const std::vector<grants::GrantFile>& granted);
  Status apply_plan(const NodeSnapshot& machine, const Plan& plan,
                    const std::vector<grants::GrantFile>& granted);
  Result<std::vector<grants::GrantFile>> end_previous(const ContainerStart& start) const;
  Status end_others(daemon::Client& keeper, const Plan& plan,
                    const std::vector<grants::GrantFile>& granted);
  bool is_up_to_date(const ContainerStart& start,
                     const std::vector<grants::GrantFile>& granted) const;
  bool remove_orphans() const;
  Status end_container(const grants::GrantFile& written,
                       const std::vector<grants::GrantFile>& others) const;

  ProvisionerContext context_;
};

}  // namespace gantry::pod_shares
