// SPDX-License-Identifier: Apache-2.0
// Tells the API server about the node: labels, events, a condition. In a thread of its own, because
// the server may be slow, far or away: the agent never waits for it, and the newest labels and
// condition are told as soon as it is back.
#pragma once

#include "base/core/result.hpp"
#include "net/kube/api.hpp"
#include "node/agent/feature_owners.hpp"
#include "node/agent/gke_objects.hpp"
#include "node/agent/log.hpp"
#include "node/agent/node_objects.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace gantry::agent {

class NodeReporter {
 public:
  enum class LabelTarget : std::uint8_t { Node, NodeFeature };
  // GKE's plugin has an event for every XID and a condition of its own, and labels nothing.
  enum class ReportStyle : std::uint8_t { Ours, Gke };
  struct Options {
    std::string node;
    std::string name_space = "default";  // of the NodeFeature object and of our pod
    std::string pod;                     // ours; "" when unknown
    // NodeFeature where its kind is known to the server, else straight on the node.
    bool prefer_node_feature = true;
    ReportStyle style = ReportStyle::Ours;
    std::string boot_id;  // for GKE's condition
  };

  NodeReporter(kube::ClientConfig access, Options options, Log log);
  ~NodeReporter();  // lets a call on its way come to its end
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;

  void labels(labels::Labels labels);
  void health(const std::vector<model::DeviceHealth>& health, std::int64_t now_s);
  void event(const health::HealthNotice& notice);
  void driver_version(std::string_view version);  // as GKE's annotations
  void beat(std::int64_t now_s);                  // GKE's condition is alive

 private:
  struct PendingReport {
    std::optional<labels::Labels> labels;
    std::string condition;  // "" = nothing new
    std::string annotations;
    std::deque<std::string> events;
    bool empty() const {
      return !labels && condition.empty() && annotations.empty() && events.empty();
    }
  };

  void work();
  Status tell(PendingReport& todo);
  Status clear_previous_boot();
  void set_gke_condition(std::int64_t now_s);
  Status report_labels(const labels::Labels& labels);
  Status report_node_feature(const labels::Labels& labels);

  kube::Api api_;
  Options options_;
  Log log_;
  LabelTarget label_target_ = LabelTarget::Node;
  bool label_target_known_ = false;
  std::optional<FeatureObject> object_;  // with its owners, once they are known
  unsigned events_ = 0;
  bool healthy_ = true;
  std::int64_t changed_s_ = 0;
  std::set<unsigned> xids_;  // of GKE's condition
  bool boot_known_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  PendingReport pending_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gantry::agent
