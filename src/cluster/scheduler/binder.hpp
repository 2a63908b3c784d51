// SPDX-License-Identifier: Apache-2.0
// The bind verb: decides, assumes the pod, sends ONE Binding with node and placement together, and
// learns its result. After a crash at any point, the pod is either bound with its placement or not
// bound; the assumed pod exists only in this process.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/counters.hpp"
#include "cluster/scheduler/extender_wire.hpp"
#include "net/http/message.hpp"
#include "net/kube/binding.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace gantry::scheduler {

// The functions that a Binder needs; several threads may call each of them at once.
struct BindApi {
  std::function<kube::BindResult(const kube::Binding&)> bind;
  std::function<Result<json::Document>(const std::string& name_space, const std::string& pod)> read;
  // For how long this replica is surely the leader, so that it may send a Binding now. Denied, with
  // the name of the leader, if this replica is not the leader.
  std::function<Result<std::chrono::milliseconds>()> lead;
  std::function<void(const ExtenderBindingArgs&, const Error& why)>
      failed;  // called on failure; may be empty
};

struct BinderOptions {
  std::chrono::milliseconds request{4000};  // timeout of a Binding
  // After this time a Binding without an answer cannot succeed any more: the server's own limit.
  std::chrono::milliseconds lost_after = std::chrono::seconds(60);
  // Within which the watch shows a Binding.
  std::chrono::milliseconds seen = std::chrono::seconds(30);
};

class Binder {
 public:
  Binder(ClusterCache& cache, SchedulerCounters& counters, BindApi api_calls,
         BinderOptions options = {});

  // As in gpushare: 200 with an empty Error, or 500 with the reason.
  http::Response bind(std::string_view body);
  Status bind(const ExtenderBindingArgs& args);

  // Checks assumed pods that the watch should have shown by now; call it every few seconds.
  void reconcile(TimePoint now);

  // Accepts no more requests and waits for those in progress; false if they take longer.
  bool stop(std::chrono::milliseconds at_most);

 private:
  Status bind_one(ExtenderBindingArgs args);
  Status check_lead() const;
  // Fills in the uid if the request has none, because an assumed pod is identified by its uid.
  Result<std::optional<podspec::PodRequest>> asked(ExtenderBindingArgs& args, bool& already) const;
  Status send(const ExtenderBindingArgs& args, const BindDecision& decision);
  void undo_assume(const ExtenderBindingArgs& args, const BindDecision& decision);
  void settle(const AssumedPod& assumed, TimePoint now);
  bool enter();
  void leave();

  ClusterCache& cache_;
  SchedulerCounters& counters_;
  BindApi api_;
  BinderOptions options_;
  std::mutex mutex_;
  std::condition_variable all_done_;
  int in_flight_ = 0;
  bool stopped_ = false;
};

}  // namespace gantry::scheduler
