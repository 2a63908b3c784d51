// SPDX-License-Identifier: Apache-2.0
#include "base/core/unix_time.hpp"
#include "cluster/scheduler/forward.hpp"
#include "cluster/scheduler/scheduler_internal.hpp"

#include <fmt/format.h>

namespace gantry::scheduler {
namespace {

constexpr std::chrono::hours kForEver{24};
constexpr std::chrono::seconds kHandOn{9};  // a Binding, and reading the pod
constexpr std::chrono::seconds kAskLeader{2};

}  // namespace

void Scheduler::Impl::lead_changed(bool leading, const std::string& holder) {
  if (leading) {
    log_.info("lease", "this replica is the leader");
  } else if (holder.empty()) {
    log_.info("lease", "there is no leader");
  } else {
    log_.info("lease", "another replica is the leader", {{"leader", holder}});
  }
  reconciler_.wake();
}

Result<std::chrono::milliseconds> Scheduler::Impl::lead() const {
  if (auto why = not_ready(); !why.empty()) return Error(Errc::Denied, std::move(why));
  if (options_.election == Election::Off) return std::chrono::milliseconds(kForEver);
  const auto left = elector_->valid_for();
  if (left.count() <= 0) {
    const auto holder = elector_->holder();
    return Error(Errc::Busy,
                 fmt::format("this replica of the scheduler is not the leader{}; try again",
                             holder.empty() ? std::string() : ", " + holder + " is"));
  }
  // Not before `left`: if the lease was lost and taken again in between, this is another term.
  if (const auto now = term(); now == 0 || read_.load() != now) {
    return Error(Errc::Denied,
                 "this replica has just become the leader and is reading the Bindings of its "
                 "predecessor; try again in a second");
  }
  return left;
}

std::optional<http::Endpoint> Scheduler::Impl::other_leader(const http::Request& request) const {
  if (options_.election == Election::Off || elector_->leading() ||
      http::find(request.headers, kForwardedHeader) != nullptr)
    return std::nullopt;
  return endpoint_of_identity(elector_->holder());
}

// Only the leader makes room for a pod that fits nowhere, and knows for which pod room is kept.
http::Response Scheduler::Impl::filter(const http::Request& request) {
  bool full = false;
  auto own = extender_.filter(request.body, full);
  if (!full) return own;
  const auto leader = other_leader(request);
  if (!leader) return own;
  auto answer = forward_to_leader(*leader, request, kAskLeader);
  if (answer.ok() && answer->status == 200) return *std::move(answer);
  return own;
}

// Binds here, or forwards to the leader if that is another reachable replica.
http::Response Scheduler::Impl::bind(const http::Request& request) {
  const auto leader = other_leader(request);
  if (!leader) return binder_.bind(request.body);  // which reports the leader
  auto answer = forward_to_leader(*leader, request, kHandOn);
  if (answer.ok()) return *std::move(answer);
  log_.warning("bind", "cannot forward to the leader", {{"err", answer.error()}});
  return json_response(write_bind(answer.error().text()), 500);
}

std::uint64_t Scheduler::Impl::term() const {
  return elector_ ? elector_->term() : 0;
}

Status Scheduler::Impl::resync() {
  const auto begun = term();
  if (begun == read_.load() || !not_ready().empty()) return {};
  GANTRY_CHECK(apis_
                   .with([&](kube::Api& api) {
                     return read_bound_pods(api, cache_, std::chrono::steady_clock::now());
                   })
                   .in("reading the pods again"));
  read_.store(begun);
  return {};
}

// In its own thread, because evictions wait for the API server.
void Scheduler::Impl::preempt_lower_priority() {
  evictor_.reconcile(std::chrono::steady_clock::now(), unix_now());
}

}  // namespace gantry::scheduler
