// SPDX-License-Identifier: Apache-2.0
// Prepares the start of a container with a slot: reads the placement of its pod, checks it against
// the pod's request and against all grants of this node, writes a grant, and creates a share and a
// CDI device with the name of the slot. Each step can be repeated, so nothing is lost if the
// process ends between two steps: the kubelet asks again.
#pragma once

#include "base/core/object_ref.hpp"
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

// The shared GPUs of this node now.
struct NodeSnapshot {
  podspec::NodeInfo facts;
  model::Inventory inventory;
};

struct StartingContainer {
  std::string name;
  std::map<std::string, std::vector<std::string>> ids;  // by resource; only ids of slots
};

// Containers that are about to start, from the kubelet's checkpoint.
struct ContainerStart {
  PodRef pod;                                 // the checkpoint knows only its UID
  std::vector<StartingContainer> containers;  // all have exactly the same ids of a resource
};

// A change to write to a pod when the API server is reachable.
struct PodPatch {
  PodRef pod;
  std::string body;  // a merge patch
  std::string why;
};

// What happened to a share, for the log.
struct ShareNote {
  enum class Kind : std::uint8_t {
    Placed,     // the pod had no placement: this node chose its GPU
    Removed,    // container
    NotRemoved  // container, error
  };
  Kind what = Kind::Placed;
  PodRef pod;
  std::string container;
  std::string error;
  auto operator<=>(const ShareNote&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct ProvisionerContext {
  const sys::Host& host;
  std::vector<std::string> share_daemon;  // command line that starts the share daemon
  std::function<Result<publish::ShareSpecOptions>()> spec;
  // The pod as JSON. NotFound: it does not exist; Busy: unknown at the moment.
  std::function<Result<std::string>(const std::string& uid)> pod;
  std::function<std::vector<std::string>()> pods;  // all pods of this node, as JSON
  std::function<std::int64_t()> unix_ns;
  std::function<void(const ShareNote&)> note;
};

class ShareProvisioner {
 public:
  explicit ShareProvisioner(ProvisionerContext context) : context_(std::move(context)) {}

  // May take seconds, because the share daemon may have to start. Errors go to the kubelet, which
  // tries again.
  Result<std::vector<PodPatch>> provision(const NodeSnapshot& machine, const ContainerStart& start);

  // Ends the shares of pods that are not `alive`, and removes shares and devices that no grant
  // names. Skips those that processes still use. Returns true if nothing was skipped.
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
  Status end_others(daemon::Client& client, const Plan& plan,
                    const std::vector<grants::GrantFile>& granted);
  bool is_up_to_date(const ContainerStart& start,
                     const std::vector<grants::GrantFile>& granted) const;
  bool remove_orphans() const;
  Status end_container(const grants::GrantFile& written,
                       const std::vector<grants::GrantFile>& others) const;

  ProvisionerContext context_;
};

}  // namespace gantry::pod_shares
