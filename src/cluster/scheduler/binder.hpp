// SPDX-License-Identifier: Apache-2.0
// The bind verb: decide, promise, send ONE Binding that carries node and placement together, and
// learn what became of it. A crash at any point leaves the pod bound with its placement, or not at
// all; the promise dies with the process.
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

// What a Binder needs of the world; each may be called by several threads at once.
struct BindApi {
  std::function<kube::BindResult(const kube::Binding&)> bind;
  std::function<Result<json::Document>(const std::string& name_space, const std::string& pod)> read;
  // For how long a Binding that is sent now comes from the only one who may send some. Denied, with
  // who leads instead, where that is not us.
  std::function<Result<std::chrono::milliseconds>()> lead;
  std::function<void(const ExtenderBindingArgs&, const Error& why)>
      failed;  // to be told; may be none
};

struct BinderOptions {
  std::chrono::milliseconds request{4000};  // how long a Binding takes at most
  // After that long a Binding without an answer is not under way any more: the server's own limit.
  std::chrono::milliseconds lost_after = std::chrono::seconds(60);
  std::chrono::milliseconds seen = std::chrono::seconds(30);  // in which a watch shows a Binding
};

class Binder {
 public:
  Binder(ClusterCache& cache, SchedulerCounters& counters, BindApi api_calls,
         BinderOptions options = {});

  // As gpushare has it: 200 and an empty Error, or 500 and the reason.
  http::Response bind(std::string_view body);
  Status bind(const ExtenderBindingArgs& args);

  // Looks after promises that the watch should have shown by now; every few seconds.
  void reconcile(TimePoint now);

  // Takes no more, and waits for those under way; false where they take longer.
  bool stop(std::chrono::milliseconds at_most);

 private:
  Status bind_one(ExtenderBindingArgs args);
  Status check_lead() const;
  // Fills in the uid where the request has none: a promise is the pod's, whoever it is.
  Result<std::optional<podspec::PodRequest>> asked(ExtenderBindingArgs& args, bool& already) const;
  Status send(const ExtenderBindingArgs& args, const BindDecision& decision);
  void undo_assume(const ExtenderBindingArgs& args, const BindDecision& decision);
  void settle(const AssumedPod& promise, TimePoint now);
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
