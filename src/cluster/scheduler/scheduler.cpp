// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/scheduler.hpp"

#include "cluster/scheduler/forward.hpp"
#include "cluster/scheduler/scheduler_internal.hpp"

#include <algorithm>

namespace gantry::scheduler {
namespace {

// Shorter than kube-scheduler's timeout for an extender (5 s), so that it gets the reason.
constexpr std::chrono::milliseconds kRequest{4000};
constexpr std::chrono::seconds kLastBindings{10};
constexpr std::chrono::seconds kReconcilePeriod{1};

// A lease must last for two Bindings, even if it was not renewed for a while.
std::chrono::milliseconds request_of(const SchedulerOptions& options) {
  if (options.election == Election::Off) return kRequest;
  return std::min(kRequest, std::chrono::milliseconds(options.lease.duration) / 4);
}

}  // namespace

Scheduler::Impl::Impl(SchedulerOptions options, Log log)
    : options_(std::move(options)),
      log_(std::move(log)),
      cache_(options_.place),
      apis_(options_.access, request_of(options_)),
      events_(options_.access,
              [this](const Error& error) {
                log_.warning("events", "cannot write an event", {{"err", error}});
              }),
      extender_(
          cache_, counters_,
          {.not_ready = [this] { return not_ready(); },
           .invalid_request = [this](const InvalidRequest& bad) { report_invalid_request(bad); },
           .full =
               [this](UnschedulablePod full) {
                 evictor_.refused(std::move(full), std::chrono::steady_clock::now());
               }}),
      binder_(cache_, counters_, api_calls(), {.request = request_of(options_)}),
      evictor_(cache_, counters_, evict_api(), {.request = request_of(options_)}),
      reconciler_({.name = "reconciler",
                   .period = kReconcilePeriod,
                   .retry = {.first = kReconcilePeriod, .max = kReconcilePeriod},
                   .on_error =
                       [this](const Error& error, auto) {
                         log_.warning("lease", "cannot read the Bindings of the last leader",
                                      {{"err", error}});
                       }},
                  [this](const std::stop_token&) {
                    auto read = resync();
                    binder_.reconcile(std::chrono::steady_clock::now());
                    return read;
                  }),
      preemptor_({.name = "preemptor", .period = kReconcilePeriod},
                 [this](const std::stop_token&) -> Status {
                   preempt_lower_priority();
                   return {};
                 }) {}

Status Scheduler::Impl::listen() {
  feed_ = std::make_unique<ClusterWatcher>(options_.access, cache_, log_);
  if (options_.election == Election::On) {
    options_.lease.identity =
        lease_identity(options_.lease.identity, options_.own_address, options_.address.port);
    elector_ = std::make_unique<kube::LeaderElector>(
        options_.access, options_.lease,
        [this](bool leading, const std::string& holder) { lead_changed(leading, holder); },
        [this](const Error& error) {
          log_.warning("lease", "cannot get or renew the lease", {{"err", error}});
        });
  }
  GANTRY_TRY(server_, http::Server::start({.address = options_.address,
                                           .workers = options_.threads,
                                           .body_limit = kBodyLimit,
                                           .memory_limit = kMemoryLimit,
                                           .memory_per_address = kMemoryPerAddress},
                                          routes()));
  start_certificate_rotation();
  reconciler_.start();
  preemptor_.start();
  log_.info("scheduler", "listening", {{"port", port()}, {"config", options_.access.from}});
  return {};
}

// The order matters: no Binding and no eviction is sent after the lease is released.
void Scheduler::Impl::stop() {
  if (stopped_) return;
  stopped_ = true;
  evictor_.stop();
  preemptor_.stop();
  if (!binder_.stop(kLastBindings))
    log_.warning("scheduler",
                 "Bindings in progress take too long, not waiting for them; the lease will expire");
  else if (elector_)
    elector_->stop();
  server_.reset();
  certificate_.reset();
  tls_server_.reset();
  reconciler_.stop();
  if (feed_) feed_->stop();
}

BindApi Scheduler::Impl::api_calls() {
  return {.bind =
              [this](const kube::Binding& binding) {
                return apis_.with([&](kube::Api& api) { return kube::bind(api, binding); });
              },
          .read =
              [this](const std::string& name_space, const std::string& pod) {
                return apis_.with(
                    [&](kube::Api& api) { return api.get(kube::pod_path(name_space, pod)); });
              },
          .lead = [this] { return lead(); },
          .failed = [this](const ExtenderBindingArgs& args,
                           const Error& why) { report_bind_failure(args, why); }};
}

EvictApi Scheduler::Impl::evict_api() {
  auto common = api_calls();
  return {
      .evict =
          [this](const kube::Eviction& eviction) {
            return apis_.with([&](kube::Api& api) { return kube::evict(api, eviction); });
          },
      .read = std::move(common.read),
      .lead = std::move(common.lead),
      .nominate =
          [this](const podspec::PodRequest& ask, const std::string& node) {
            return apis_.with([&](kube::Api& api) { return kube::nominate(api, ask.pod, node); });
          },
      .tell = [this](kube::Event event) { events_.write(std::move(event)); },
      .warn =
          [this](LogText text, const PodRef& pod, const Error& error) {
            log_.warning("room", text, {{"pod", to_string(pod)}, {"err", error}});
          }};
}

void Scheduler::Impl::report_invalid_request(const InvalidRequest& bad) {
  counters_.invalid_requests.fetch_add(1, std::memory_order_relaxed);
  if (bad.pod.uid.empty()) return;  // a request for a pod without a uid
  events_.write({.object = bad.pod,
                 .type = kube::EventType::Warning,
                 .reason = "BadGPURequest",
                 .message = bad.sentence,
                 .component = "gantry-scheduler"});
}

// kube-scheduler ignores the reason of status 500, so it is written to the pod's events.
void Scheduler::Impl::report_bind_failure(const ExtenderBindingArgs& args, const Error& why) {
  log_.warning("bind", "cannot bind a pod",
               {{"pod", to_string(args.pod)}, {"node", args.node}, {"err", why}});
  if (args.pod.uid.empty() || why.code() == Errc::Denied) return;  // another replica may bind it
  events_.write({.object = args.pod,
                 .type = kube::EventType::Warning,
                 .reason = "FailedBinding",
                 .message = why.text(),
                 .component = "gantry-scheduler"});
}

Scheduler::Scheduler(std::unique_ptr<Impl> work) : impl_(std::move(work)) {}
Scheduler::~Scheduler() = default;

Result<std::unique_ptr<Scheduler>> Scheduler::start(SchedulerOptions options, Log log) {
  auto work = std::make_unique<Impl>(std::move(options), std::move(log));
  GANTRY_CHECK(work->listen());
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(work)));
}

std::uint16_t Scheduler::port() const {
  return impl_->port();
}

void Scheduler::stop() {
  impl_->stop();
}

}  // namespace gantry::scheduler
