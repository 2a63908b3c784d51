// SPDX-License-Identifier: Apache-2.0
#include "node/owner_lease/with_ownership.hpp"

#include "base/core/clock.hpp"
#include "gpu/ownership/change_lock.hpp"
#include "node/owner_lease/lease_socket.hpp"
#include "node/owner_lease/local_usage.hpp"
#include "node/owner_lease/protocol.hpp"
#include "node/owner_lease/quiet_share_daemon.hpp"

#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace gantry::owner_lease {
namespace {

using namespace std::chrono_literals;
using ownership::ActOutcome;
using ownership::GpuUsage;
using ownership::OwnerIntent;

constexpr auto kAgentAnswers = 30s;  // beyond the time that the command wants to wait
constexpr auto kSettleWithin = 15s;
constexpr auto kSettlePause = 100ms;
constexpr auto kLookAgain = 1s;

std::string socket_path(const sys::Host& host) {
  return host.outside(kOwnerSocket);
}

// Tells each reason once.
class ProgressReporter {
 public:
  explicit ProgressReporter(const LeaseOptions& options) : options_(options) {}
  void say(const std::string& text) {
    if (!options_.progress || text == said_) return;
    said_ = text;
    options_.progress(text);
  }

 private:
  const LeaseOptions& options_;
  std::string said_;
};

std::string first_holder(const GpuUsage& usage) {
  if (!usage.holders.empty()) return usage.holders.front();
  return usage.pids.empty() ? "" : fmt::format("process {}", usage.pids.front());
}

void look_again_before(Clock::time_point until) {
  std::this_thread::sleep_until(std::min(until, Clock::now() + kLookAgain));
}

// Without an agent: waits until nothing uses the GPU, or as long as allowed.
Result<GpuUsage> wait_for_users(const sys::Host& host, const ownership::OwnerChange& change,
                                const LeaseOptions& options) {
  ProgressReporter progress(options);
  for (const auto until = Clock::now() + options.wait;;) {
    GANTRY_TRY(auto usage, options.usage
                               ? options.usage()
                               : local_usage(host, change.gpu, options.yielding, change.parts));
    const auto holder = first_holder(usage);
    if (holder.empty() || Clock::now() >= until) return usage;
    progress.say(fmt::format("waiting for {}", holder));
    look_again_before(until);
  }
}

// With an agent's lease: the agent may not see every process of the machine. Without an agent: a
// process or share may have come before the intent was written. After it none is created.
Status wait_for_processes(const sys::Host& host, const ownership::OwnerChange& change,
                          const LeaseOptions& options, Clock::time_point until) {
  ProgressReporter progress(options);
  for (;;) {
    GANTRY_TRY(const auto holders,
               processes_and_shares(host, change.gpu, options.yielding, change.parts));
    if (holders.empty()) return {};
    if (Clock::now() >= until)
      return Error(Errc::Busy,
                   fmt::format("{} is held by {}", change.gpu.sysfs(), holders.front()));
    progress.say(fmt::format("waiting for {}", holders.front()));
    look_again_before(until);
  }
}

// Until the agent grants the lease.
Status wait_for_lease(int socket, const OwnerIntent& intent, const MaybeParts& parts,
                      model::GpuUuid uuid, const LeaseOptions& options) {
  GANTRY_CHECK(send(socket, to_json(OwnerRequest{.kind = OwnerRequest::Kind::Lease,
                                                 .intent = intent,
                                                 .wait = options.wait,
                                                 .yielding = options.yielding,
                                                 .uuid = std::move(uuid),
                                                 .parts = parts})));
  ProgressReporter progress(options);
  for (const auto until = Clock::now() + options.wait + kAgentAnswers;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    GANTRY_TRY(const auto text, receive(socket, left).in("asking the agent for the GPU"));
    GANTRY_TRY(auto reply, parse_reply(text));
    switch (reply.kind) {
      case OwnerReply::Kind::Granted: return {};
      case OwnerReply::Kind::Refused: return Error(reply.code, std::move(reply.text));
      default: progress.say(reply.text);
    }
  }
}

Status settle_with_agent(int socket, const OwnerIntent& intent, ActOutcome outcome) {
  GANTRY_CHECK(
      send(socket, to_json(OwnerRequest{
                       .kind = OwnerRequest::Kind::Settle, .intent = intent, .outcome = outcome})));
  GANTRY_TRY(const auto text, receive(socket, kSettleWithin));
  GANTRY_TRY(auto reply, parse_reply(text));
  if (reply.kind == OwnerReply::Kind::Settled) return {};
  return Error(reply.code, std::move(reply.text));
}

// No agent granted the lease, or that agent is gone: another one has the ledger, or none has.
Status settle_elsewhere(const sys::Host& host, const OwnerIntent& intent, ActOutcome outcome) {
  for (const auto until = Clock::now() + kSettleWithin;;) {
    auto settled = ownership::settle_change(host, intent, outcome);
    if (settled.ok() || settled.error().code() != Errc::Busy) return settled;
    if (const auto agent = connect(socket_path(host)); agent.ok()) {
      auto with_agent = settle_with_agent(agent->get(), intent, outcome);
      if (with_agent.ok() || with_agent.error().code() != Errc::NotFound) return with_agent;
    }
    if (Clock::now() >= until) return settled;
    std::this_thread::sleep_for(kSettlePause);
  }
}

Status settle_anywhere(const sys::Host& host, int agent, const OwnerIntent& intent,
                       ActOutcome outcome) {
  auto settled = settle_with_agent(agent, intent, outcome);
  if (settled.ok()) return settled;
  return settle_elsewhere(host, intent, outcome);
}

// Without a lease nothing is done. If the agent wrote the intent and died before its answer, the
// intent is removed here.
void take_back_unused(const sys::Host& host, int agent, const OwnerIntent& intent) {
  ::shutdown(agent, SHUT_RDWR);  // from here on the agent cannot grant it
  const auto ledger = ownership::OwnershipStore::peek(host);
  const auto* written = ledger.ok() ? ledger->intent(intent.gpu) : nullptr;
  if (written == nullptr || !ownership::is_same_change(*written, intent)) return;
  (void)settle_elsewhere(host, intent, ActOutcome::NotBegun);  // the first error is told
}

// Nothing was done, whatever the code of the error would say about an act.
Error not_acted(const Error& error) {
  const bool unclear = error.code() == Errc::Timeout || error.code() == Errc::Internal;
  return unclear ? Error(Errc::Busy, error.cause()).advise(error.remedy()) : error;
}

// Without any process of ours on the GPU.
Status act_quietly(const sys::Host& host, const model::PciAddress& gpu,
                   const std::function<Status()>& act) {
  GANTRY_TRY(const auto quiet, QuietShareDaemon::ask(host, gpu));
  return act();
}

Status change_with_agent(const sys::Host& host, int agent, const ownership::OwnerChange& change,
                         const LeaseOptions& options, const std::function<Status()>& act) {
  GANTRY_TRY(const auto lock, ownership::ChangeLock::take(host, change.gpu));
  const auto until = Clock::now() + options.wait;  // for the lease and the processes together
  const auto intent = ownership::intent_of(change);
  const auto leased =
      wait_for_lease(agent, intent, change.parts, known_uuid(host, change.gpu), options);
  if (!leased.ok()) {
    take_back_unused(host, agent, intent);
    return leased;
  }
  auto acted = wait_for_processes(host, change, options, until);
  acted = acted.ok() ? act_quietly(host, change.gpu, act) : not_acted(acted.error());
  const auto settled = settle_anywhere(host, agent, intent, ownership::outcome_of(acted));
  if (!acted.ok()) return acted;
  if (settled.ok()) return {};
  return Error(settled.error().code(),
               fmt::format("the change of {} is done, but it could not be recorded: {}",
                           change.gpu.sysfs(), settled.error().text()))
      .advise(fmt::format("repeat the command: {}", change.what));
}

// Leases the GPUs one inside the other. Every lease ends with the outcome of the act, also if the
// result of another one could not be recorded.
class JointLease {
 public:
  JointLease(const sys::Host& host, std::span<const ownership::OwnerChange> changes,
             const LeaseOptions& options, const std::function<JointOutcome()>& act)
      : host_(host), changes_(changes), options_(options), act_(act) {}

  Status run() {
    auto done = lease(0);
    if (!acted_) return done;
    if (!acted_->status.ok()) return acted_->status;
    note_unrecorded(0, done);
    return unrecorded_ ? Status(*unrecorded_) : Status{};
  }

 private:
  Status lease(std::size_t index) {
    if (index == changes_.size()) {
      acted_ = act_();
      return acted_->status;
    }
    auto left = options_;
    left.wait = std::max(std::chrono::milliseconds(0),
                         std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now()));
    return with_ownership(host_, changes_[index], left, [&] { return lease_rest(index + 1); });
  }

  Status lease_rest(std::size_t index) {
    auto rest = lease(index);
    if (!acted_) return not_acted(rest.error());
    note_unrecorded(index, rest);
    return status_for(changes_[index - 1].gpu);
  }

  // An error after an act that did not fail for this GPU: its result could not be recorded.
  void note_unrecorded(std::size_t index, const Status& leased) {
    if (index == changes_.size() || leased.ok() || unrecorded_) return;
    if (status_for(changes_[index].gpu).ok()) unrecorded_ = leased.error();
  }

  Status status_for(const model::PciAddress& gpu) const {
    const auto own = acted_->of.find(gpu);
    return own == acted_->of.end() ? acted_->status : own->second;
  }

  const sys::Host& host_;
  std::span<const ownership::OwnerChange> changes_;
  const LeaseOptions& options_;
  const std::function<JointOutcome()>& act_;
  const Clock::time_point until_ = Clock::now() + options_.wait;
  std::optional<JointOutcome> acted_;
  std::optional<Error> unrecorded_;
};

}  // namespace

Status with_ownership(const sys::Host& host, std::span<const ownership::OwnerChange> changes,
                      const LeaseOptions& options, const std::function<JointOutcome()>& act) {
  return JointLease(host, changes, options, act).run();
}

Status with_ownership(const sys::Host& host, const ownership::OwnerChange& change,
                      const LeaseOptions& options, const std::function<Status()>& act) {
  const auto agent = connect(socket_path(host));
  if (agent.ok()) return change_with_agent(host, agent->get(), change, options, act);
  if (agent.error().code() != Errc::NotFound)
    return Error(agent.error()).in("asking the agent for the GPU");
  GANTRY_TRY(const auto usage, wait_for_users(host, change, options));
  const auto act_if_unused = [&]() -> Status {
    const auto unused = wait_for_processes(host, change, options, Clock::now());
    return unused.ok() ? act_quietly(host, change.gpu, act) : not_acted(unused.error());
  };
  // An agent that started meanwhile has the ledger.
  return ownership::change_owner(host, change, usage, act_if_unused,
                                 [&](const OwnerIntent& intent, ActOutcome outcome) {
                                   return settle_elsewhere(host, intent, outcome);
                                 });
}

}  // namespace gantry::owner_lease
