// SPDX-License-Identifier: Apache-2.0
// Answers kube-scheduler's requests to an extender, except bind (binder.hpp), from the scheduler
// cache. Takes and returns bodies, without sockets; several threads may call it at once.
#pragma once

#include "base/core/object_ref.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/counters.hpp"
#include "cluster/scheduler/extender_wire.hpp"
#include "net/http/message.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::scheduler {

// A pod whose request is not valid.
struct InvalidRequest {
  PodRef pod;
  std::string sentence;
};

// A pod that could run on these nodes, but their cards have no room for it.
struct UnschedulablePod {
  podspec::PodRequest ask;
  std::vector<std::string> nodes;
};

class Extender {
 public:
  struct Callbacks {
    std::function<std::string()> not_ready;                      // why not; "" or empty: ready
    std::function<void(const InvalidRequest&)> invalid_request;  // called for each such request
    std::function<void(UnschedulablePod)> full;                  // called for each such request
  };
  Extender(const ClusterCache& cache, SchedulerCounters& counters, Callbacks callbacks);

  // Always 200; errors are in the Error field.
  http::Response filter(std::string_view body);
  // The same; also says whether `full` was called.
  http::Response filter(std::string_view body, bool& full);
  http::Response prioritize(std::string_view body);
  http::Response preempt(std::string_view body);

  // All nodes, or one; 404 with the error for an unknown node.
  http::Response inspect() const;
  http::Response inspect(std::string_view node) const;

 private:
  // The request and answer of a filter, for the prioritize that follows it.
  struct CachedFilter {
    std::string body;
    ExtenderArgs args;
    std::optional<podspec::PodRequest> ask;
    std::uint64_t generation = 0;
    std::vector<placement::Fit> fits;
  };

  std::string not_ready() const;
  Result<std::string> filtered(std::string_view body, bool& full);
  bool report_unschedulable(const CachedFilter& asked) const;
  std::string refuse_all(const ExtenderArgs& args, std::string_view sentence) const;
  std::string answer_of(CachedFilter& asked) const;
  bool remembered(const ExtenderArgs& args, std::vector<placement::Fit>& fits) const;

  const ClusterCache& cache_;
  SchedulerCounters& counters_;
  Callbacks callbacks_;
  mutable std::mutex mutex_;
  std::shared_ptr<const CachedFilter> last_;
};

// The pod of a request. Invalid as in podspec::parse_request; Corrupt if the text is not a pod.
Result<std::optional<podspec::PodRequest>> parse_pod_request(std::string_view pod);

http::Response json_response(std::string body, int status = 200);
http::Response text_response(std::string body, int status = 200);

}  // namespace gantry::scheduler
