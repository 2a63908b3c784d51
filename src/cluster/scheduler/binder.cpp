// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/binder.hpp"

#include "base/core/unix_time.hpp"
#include "cluster/scheduler/extender.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::scheduler {
namespace {}  // namespace

Binder::Binder(ClusterCache& cache, SchedulerCounters& counters, BindApi api_calls,
               BinderOptions options)
    : cache_(cache), counters_(counters), api_(std::move(api_calls)), options_(options) {}

http::Response Binder::bind(std::string_view body) {
  auto args = read_bind_args(body);
  const auto done = args.ok() ? bind(*args) : Status(args.error());
  if (done.ok()) return json_response(write_bind(""));
  return json_response(write_bind(done.error().text()), 500);
}

Status Binder::bind(const ExtenderBindingArgs& args) {
  const Stopwatch watch(counters_.bind);
  if (!enter()) {
    counters_.bind.failed();
    return Error(Errc::Denied,
                 "this scheduler is shutting down; try again, another replica takes over");
  }
  auto done = bind_one(args);
  leave();
  if (done.ok()) {
    counters_.bound.fetch_add(1, std::memory_order_relaxed);
    return done;
  }
  counters_.bind.failed();
  if (api_.failed) api_.failed(args, done.error());
  return done;
}

Status Binder::bind_one(ExtenderBindingArgs args) {
  GANTRY_CHECK(check_lead());
  bool already = false;
  GANTRY_TRY(const auto ask, asked(args, already));
  if (already) return {};
  if (!ask) return send(args, {});  // asks for no GPU: nothing to decide
  BindDecision decision;
  {
    const Stopwatch watch(counters_.decision);
    auto decided = cache_.assumed(*ask, args.node, unix_ns(), now_steady());
    if (!decided.ok()) {
      return std::move(decided).error().in(
          fmt::format("pod {} on node {}", to_string(args.pod), args.node));
    }
    decision = *std::move(decided);
  }
  return send(args, decision);
}

// A request may need its full timeout to reach the server, which may then work on it for as long
// again.
Status Binder::check_lead() const {
  GANTRY_TRY(const auto left, api_.lead());
  if (left > 2 * options_.request) return {};
  return Error(Errc::Denied,
               "the lease of this scheduler could not be renewed and expires too soon for a "
               "Binding; try again in a few seconds");
}

// From the watch, or from the API server if the watch has not shown the pod yet.
Result<std::optional<podspec::PodRequest>> Binder::asked(ExtenderBindingArgs& args,
                                                         bool& already) const {
  if (!args.pod.uid.empty()) {
    if (auto known = cache_.pending(args.pod.uid)) return known;
  }
  GANTRY_TRY(const auto pod, api_.read(args.pod.name_space, args.pod.name));
  const auto uid = pod["metadata"]["uid"].string().value_or("");
  if (!args.pod.uid.empty() && uid != args.pod.uid) {
    return Error(Errc::NotFound,
                 fmt::format("the pod {} with uid {} is gone; another pod has its name now",
                             to_string(args.pod), args.pod.uid));
  }
  args.pod.uid = uid;
  const auto node = pod["spec"]["nodeName"].string().value_or("");
  already = node == args.node;
  if (!already && !node.empty()) {
    return Error(Errc::Exists,
                 fmt::format("the pod {} is already on node {}", to_string(args.pod), node));
  }
  return podspec::parse_request(pod.root());
}

Status Binder::send(const ExtenderBindingArgs& args, const BindDecision& decision) {
  // Deciding is fast, but waiting for a thread may take long: nothing is sent with a lease that
  // expires.
  if (auto lead = check_lead(); !lead.ok()) {
    undo_assume(args, decision);
    return lead;
  }
  auto answer =
      api_.bind({.pod = args.pod, .node = args.node, .annotations = decision.annotations});
  switch (answer.bound) {
    case kube::BindOutcome::Done:
      cache_.mark(args.pod.uid, AssumedPod::State::Bound, now_steady());
      return {};
    case kube::BindOutcome::Unknown:
      counters_.unknown.fetch_add(1, std::memory_order_relaxed);
      cache_.mark(args.pod.uid, AssumedPod::State::Unknown, now_steady());
      return Error(Errc::Timeout, std::move(answer.text));
    case kube::BindOutcome::Elsewhere:
    case kube::BindOutcome::Gone:
    case kube::BindOutcome::Replaced:
    case kube::BindOutcome::Deleting:
    case kube::BindOutcome::Refused: break;
  }
  undo_assume(args, decision);
  return Error(Errc::Busy, std::move(answer.text));
}

void Binder::undo_assume(const ExtenderBindingArgs& args, const BindDecision& decision) {
  if (decision.again) {
    // The state of the earlier Binding.
    cache_.mark(args.pod.uid, AssumedPod::State::Unknown, now_steady());
  } else {
    cache_.release(args.pod.uid);
  }
}

void Binder::reconcile(TimePoint now) {
  for (const auto& assumed : cache_.assumed_pods()) {
    const auto age = now - assumed.since;
    const bool due = assumed.state == AssumedPod::State::Unknown
                         ? age > options_.request
                         : assumed.state == AssumedPod::State::Bound && age > options_.seen;
    if (due) settle(assumed, now);
  }
}

void Binder::settle(const AssumedPod& assumed, TimePoint now) {
  const auto pod = api_.read(assumed.pod.name_space, assumed.pod.name);
  if (!pod.ok()) {
    if (pod.error().code() == Errc::NotFound) cache_.release(assumed);
    return;  // try again later
  }
  if ((*pod)["metadata"]["uid"].string().value_or("") != assumed.pod.uid) {
    cache_.release(assumed);
    return;
  }
  if (!(*pod)["spec"]["nodeName"].string().value_or("").empty()) {
    (void)cache_.set_pod(pod->root(), now);  // like an update from the watch
    return;
  }
  if (now - assumed.since > options_.lost_after) cache_.release(assumed);
}

bool Binder::enter() {
  const std::lock_guard hold(mutex_);
  if (stopped_) return false;
  ++in_flight_;
  return true;
}

void Binder::leave() {
  const std::lock_guard hold(mutex_);
  if (--in_flight_ == 0) all_done_.notify_all();
}

bool Binder::stop(std::chrono::milliseconds at_most) {
  std::unique_lock hold(mutex_);
  stopped_ = true;
  return all_done_.wait_for(hold, at_most, [this] { return in_flight_ == 0; });
}

}  // namespace gantry::scheduler
