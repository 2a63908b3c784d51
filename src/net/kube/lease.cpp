// SPDX-License-Identifier: Apache-2.0
#include "net/kube/lease.hpp"

#include "base/json/patch.hpp"
#include "base/json/writer.hpp"

#include <time.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

namespace gantry::kube {
namespace {

using std::chrono::milliseconds;

std::string micro_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(micros / 1'000'000)), micros % 1'000'000);
}

std::string holder_of(const json::Document& lease) {
  return lease["spec"]["holderIdentity"].string().value_or("");
}

std::string first_lease(const LeaseOptions& options) {
  const auto now = micro_time();
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "coordination.k8s.io/v1");
    out.member("kind", "Lease");
    out.object("metadata", [&] {
      out.member("name", options.name);
      out.member("namespace", options.name_space);
    });
    out.object("spec", [&] {
      out.member("holderIdentity", options.identity);
      out.member("leaseDurationSeconds", options.duration.count());
      out.member("acquireTime", now);
      out.member("renewTime", now);
      out.member("leaseTransitions", 0);
    });
  });
  return std::move(out).text();
}

// The lease with us as the holder.
Result<std::string> taken(const json::Document& lease, const LeaseOptions& options) {
  const auto now = micro_time();
  json::Patch patch;
  if (holder_of(lease) != options.identity) {
    const auto before = lease["spec"]["leaseTransitions"].u64().value_or(0);
    patch.set({"spec", "holderIdentity"}, json::quote(options.identity));
    patch.set({"spec", "acquireTime"}, json::quote(now));
    patch.set({"spec", "leaseTransitions"}, fmt::to_string(before + 1));
  }
  patch.set({"spec", "leaseDurationSeconds"}, fmt::to_string(options.duration.count()));
  patch.set({"spec", "renewTime"}, json::quote(now));
  return patch.apply(lease);
}

Result<std::string> given_up(const json::Document& lease) {
  const auto now = json::quote(micro_time());
  json::Patch patch;
  patch.set({"spec", "holderIdentity"}, R"("")");
  patch.set({"spec", "leaseDurationSeconds"}, "1");
  patch.set({"spec", "acquireTime"}, now);
  patch.set({"spec", "renewTime"}, now);
  return patch.apply(lease);
}

}  // namespace

LeaseTime lease_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

struct LeaseCandidate::State {
  State(LeaseOptions chosen, LeaseStore& where, Clock time)
      : options(std::move(chosen)), store(where), clock(std::move(time)) {}

  const LeaseOptions options;
  LeaseStore& store;
  const Clock clock;

  // Used only by the thread that calls step().
  std::optional<json::Document> lease;  // as last seen
  std::string seen;                     // its spec
  LeaseTime seen_at{};                  // when this spec was first seen

  mutable std::mutex mutex;
  bool held = false;
  LeaseTime renewed{};  // the time before the renewing request was sent
  std::uint64_t term = 0;
  std::string holder;

  void see(json::Document now) {
    std::string spec(now["spec"].raw());
    if (spec != seen) {
      seen = std::move(spec);
      seen_at = clock();
    }
    const std::lock_guard lock(mutex);
    holder = holder_of(now);
    held = held && holder == options.identity;
    lease = std::move(now);
  }

  // `sent`: the moment before the request.
  Status won(LeaseTime sent, Result<json::Document> answer) {
    if (!answer.ok()) return std::move(answer).error();
    see(*std::move(answer));
    const std::lock_guard lock(mutex);
    const bool ours = holder == options.identity;
    if (ours && !held) ++term;
    held = ours;
    renewed = sent;
    return {};
  }

  Status take() {
    GANTRY_TRY(const auto text, taken(*lease, options));
    const auto sent = clock();
    return won(sent, store.replace(text));
  }

  bool has_ended() const {
    const auto seconds = (*lease)["spec"]["leaseDurationSeconds"].u64();
    const auto duration = seconds && *seconds > 0 && *seconds < 86'400
                              ? std::chrono::seconds(*seconds)
                              : options.duration;
    return clock() >= seen_at + duration;
  }

  bool is_held() const {
    const std::lock_guard lock(mutex);
    return held;
  }

  void lose() {
    const std::lock_guard lock(mutex);
    held = false;
  }
};

LeaseCandidate::LeaseCandidate(LeaseOptions options, LeaseStore& store, Clock clock)
    : state_(std::make_unique<State>(std::move(options), store, std::move(clock))) {}
LeaseCandidate::~LeaseCandidate() = default;

Status LeaseCandidate::step() {
  auto& state = *state_;
  // If our version is still the newest, no other replica can have held the lease in between.
  if (state.is_held()) {
    auto renewed = state.take();
    if (renewed.ok()) return renewed;
    const auto why = renewed.error().code();
    if (why != Errc::Exists && why != Errc::NotFound) return renewed;
  }
  auto read = state.store.read();
  if (!read.ok() && read.error().code() != Errc::NotFound) return std::move(read).error();
  if (!read.ok()) {
    // Deleted by a person: the former holder does not know it yet.
    const bool known = state.lease && !holder().empty() && holder() != state.options.identity;
    if (known && !state.has_ended()) return {};
    const auto sent = state.clock();
    auto made = state.won(sent, state.store.create(first_lease(state.options)));
    return !made.ok() && made.error().code() == Errc::Exists ? Status{} : std::move(made);
  }
  state.see(*std::move(read));
  const auto now_holds = holder();
  const bool others = !now_holds.empty() && now_holds != state.options.identity;
  if (others && !state.has_ended()) return {};
  auto took = state.take();
  return !took.ok() && took.error().code() == Errc::Exists ? Status{} : std::move(took);
}

Status LeaseCandidate::release() {
  auto& state = *state_;
  state.lose();
  if (!state.lease || holder_of(*state.lease) != state.options.identity) return {};
  GANTRY_TRY(const auto text, given_up(*state.lease));
  auto done = state.store.replace(text);
  if (!done.ok() && done.error().code() == Errc::Exists) {  // a renewal whose answer was lost
    GANTRY_TRY(const auto now, state.store.read());
    if (holder_of(now) != state.options.identity) return {};
    GANTRY_TRY(const auto again, given_up(now));
    done = state.store.replace(again);
  }
  if (!done.ok()) return std::move(done).error();
  state.see(*std::move(done));
  return {};
}

milliseconds LeaseCandidate::valid_for() const {
  const auto now = state_->clock();
  const std::lock_guard lock(state_->mutex);
  if (!state_->held || now >= state_->renewed + state_->options.renew) return milliseconds(0);
  return std::chrono::duration_cast<milliseconds>(state_->renewed + state_->options.duration - now);
}

std::string LeaseCandidate::holder() const {
  const std::lock_guard lock(state_->mutex);
  return state_->holder;
}

std::uint64_t LeaseCandidate::term() const {
  const std::lock_guard lock(state_->mutex);
  return state_->term;
}

}  // namespace gantry::kube
