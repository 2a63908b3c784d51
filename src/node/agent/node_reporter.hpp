// SPDX-License-Identifier: Apache-2.0
// Reports labels, events and a condition of the node to the API server. Works in its own thread, so
// the agent never waits for a slow or unreachable server. When the server is reachable again, the
// newest labels and the newest condition are sent.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/background_task.hpp"
#include "net/kube/api.hpp"
#include "node/agent/feature_owners.hpp"
#include "node/agent/gke_objects.hpp"
#include "node/agent/node_objects.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace gantry::agent {

class NodeReporter {
 public:
  enum class LabelTarget : std::uint8_t { Node, NodeFeature };
  // GKE's plugin writes an event for every XID and its own condition, and no labels.
  enum class ReportStyle : std::uint8_t { Ours, Gke };
  struct Options {
    std::string node;
    std::string name_space = "default";  // of the NodeFeature object and of our pod
    std::string pod;                     // our pod; "" if unknown
    // Use a NodeFeature object if the server knows that kind, otherwise label the node directly.
    bool prefer_node_feature = true;
    ReportStyle style = ReportStyle::Ours;
    std::string boot_id;  // for GKE's condition
  };

  NodeReporter(kube::ClientConfig access, Options options, Log log);
  ~NodeReporter() = default;  // waits until a call in progress has ended
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;

  void labels(labels::Labels labels);
  void health(const std::vector<model::DeviceHealth>& health, std::int64_t now_s);
  void event(const health::HealthNotice& notice);
  void driver_version(std::string_view version);  // written as GKE's annotations
  void beat(std::int64_t now_s);                  // refreshes the time of GKE's condition

 private:
  struct PendingReport {
    std::optional<labels::Labels> labels;
    std::string condition;  // "": nothing new
    std::string annotations;
    std::deque<std::string> events;
    bool empty() const {
      return !labels && condition.empty() && annotations.empty() && events.empty();
    }
  };

  Status work();
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
  std::set<unsigned> xids_;  // in GKE's condition
  bool boot_known_ = false;

  std::mutex mutex_;
  PendingReport pending_;
  sys::BackgroundTask task_;  // last, because it uses everything above
};

}  // namespace gantry::agent
