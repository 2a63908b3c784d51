// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/scheduler.hpp"

#include "cluster/scheduler/forward.hpp"
#include "cluster/scheduler/work_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::scheduler {
namespace {

// Shorter than kube-scheduler's own patience with an extender (5 s): it hears the reason.
constexpr std::chrono::milliseconds kRequest{4000};
constexpr std::chrono::seconds kLastBindings{10};

// A lease has to outlast a Binding twice, and that still when it was not renewed for a while.
std::chrono::milliseconds request_of(const SchedulerOptions& options) {
  if (options.election == Election::Off) return kRequest;
  return std::min(kRequest, std::chrono::milliseconds(options.lease.duration) / 4);
}

}  // namespace

Scheduler::Work::Work(SchedulerOptions options, Voice voice)
    : options_(std::move(options)),
      voice_(std::move(voice)),
      book_(options_.place),
      apis_(options_.access, request_of(options_)),
      events_(options_.access,
              [this](const Error& error) { voice_.warning("events", error.text()); }),
      extender_(book_, counters_,
                {.not_ready = [this] { return not_ready(); },
                 .bad_ask = [this](const BadAsk& bad) { tell_bad_ask(bad); },
                 .full =
                     [this](FullAsk full) {
                       evictor_.refused(std::move(full), std::chrono::steady_clock::now());
                     }}),
      binder_(book_, counters_, hands(), {.request = request_of(options_)}),
      evictor_(book_, counters_, evictor_hands(), {.request = request_of(options_)}) {}

Status Scheduler::Work::listen() {
  feed_ = std::make_unique<Feed>(options_.access, book_, voice_);
  if (options_.election == Election::On) {
    options_.lease.identity =
        identity_with(options_.lease.identity, options_.own_address, options_.address.port);
    elector_ = std::make_unique<kube::Elector>(
        options_.access, options_.lease,
        [this](bool leading, const std::string& holder) { lead_changed(leading, holder); },
        [this](const Error& error) { voice_.warning("lease", error.text()); });
  }
  GANTRY_TRY(service_, http::Service::start({.address = options_.address,
                                             .threads = options_.threads,
                                             .body_limit = kBodyLimit,
                                             .memory_limit = kMemoryLimit},
                                            routes()));
  keep_certificate();
  caretaker_ = std::jthread([this](const std::stop_token& stop) { take_care(stop); });
  room_maker_ = std::jthread([this](const std::stop_token& stop) { make_room(stop); });
  voice_.info("scheduler",
              fmt::format("listening on port {}; API server: {}", port(), options_.access.from));
  return {};
}

// The order matters: no Binding and no eviction is sent once the lease is given back.
void Scheduler::Work::stop() {
  if (stopped_) return;
  stopped_ = true;
  evictor_.stop();
  if (room_maker_.joinable()) {
    room_maker_.request_stop();
    room_maker_.join();
  }
  if (!binder_.stop(kLastBindings))
    voice_.warning("scheduler", "Bindings under way take too long; the lease runs out by itself");
  else if (elector_)
    elector_->stop();
  service_.reset();
  certificate_.reset();
  secure_.reset();
  if (caretaker_.joinable()) {
    caretaker_.request_stop();
    caretaker_.join();
  }
  if (feed_) feed_->stop();
}

Hands Scheduler::Work::hands() {
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
          .failed = [this](const BindArgs& args, const Error& why) { tell_failed(args, why); }};
}

EvictorHands Scheduler::Work::evictor_hands() {
  auto common = hands();
  return {.evict =
              [this](const kube::Eviction& eviction) {
                return apis_.with([&](kube::Api& api) { return kube::evict(api, eviction); });
              },
          .read = std::move(common.read),
          .lead = std::move(common.lead),
          .nominate =
              [this](const podspec::PodAsk& ask, const std::string& node) {
                return apis_.with([&](kube::Api& api) {
                  return kube::nominate(api, ask.name_space, ask.name, ask.uid, node);
                });
              },
          .tell = [this](kube::Event event) { events_.write(std::move(event)); },
          .warn = [this](const std::string& trouble) { voice_.warning("room", trouble); }};
}

void Scheduler::Work::tell_bad_ask(const BadAsk& bad) {
  counters_.bad_asks.fetch_add(1, std::memory_order_relaxed);
  if (bad.uid.empty()) return;  // a question about a pod that is nowhere
  events_.write({.name_space = bad.name_space,
                 .name = bad.name,
                 .uid = bad.uid,
                 .type = kube::EventType::Warning,
                 .reason = "BadGPURequest",
                 .message = bad.sentence,
                 .component = "gantry-scheduler"});
}

// kube-scheduler does not read the reason that comes with status 500: the pod's events have it.
void Scheduler::Work::tell_failed(const BindArgs& args, const Error& why) {
  voice_.warning(
      "bind", fmt::format("pod {}/{} on {}: {}", args.name_space, args.pod, args.node, why.text()));
  if (args.uid.empty() || why.code() == Errc::Denied) return;  // another replica may do it
  events_.write({.name_space = args.name_space,
                 .name = args.pod,
                 .uid = args.uid,
                 .type = kube::EventType::Warning,
                 .reason = "FailedBinding",
                 .message = why.text(),
                 .component = "gantry-scheduler"});
}

Scheduler::Scheduler(std::unique_ptr<Work> work) : work_(std::move(work)) {}
Scheduler::~Scheduler() = default;

Result<std::unique_ptr<Scheduler>> Scheduler::start(SchedulerOptions options, Voice voice) {
  auto work = std::make_unique<Work>(std::move(options), std::move(voice));
  GANTRY_CHECK(work->listen());
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(work)));
}

std::uint16_t Scheduler::port() const {
  return work_->port();
}

void Scheduler::stop() {
  work_->stop();
}

}  // namespace gantry::scheduler
