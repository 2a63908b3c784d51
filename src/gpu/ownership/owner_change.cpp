// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/owner_change.hpp"

#include "base/core/clock.hpp"
#include "gpu/ownership/change_lock.hpp"
#include "gpu/ownership/owner_change_internal.hpp"
#include "gpu/procfs/gpus.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <thread>

namespace gantry::ownership {
namespace {

using namespace std::chrono_literals;

constexpr auto kLedgerWait = 3s;  // another command has the ledger for milliseconds
constexpr auto kLedgerPause = 20ms;

// Repeats `work` while another process has the ledger.
Status while_busy(const std::function<Status()>& work) {
  for (const auto until = Clock::now() + kLedgerWait;;) {
    auto status = work();
    if (status.ok() || status.error().code() != Errc::Busy || Clock::now() >= until) return status;
    std::this_thread::sleep_for(kLedgerPause);
  }
}

model::GpuUuid uuid_of(const sys::Host& host, const model::PciAddress& gpu) {
  const auto known = procfs::read_gpu(host, gpu);
  return known.ok() ? known->gpu.uuid : model::GpuUuid{};
}

Result<OwnershipStore> open_soon(const sys::Host& host) {
  std::optional<OwnershipStore> ledger;
  GANTRY_CHECK(while_busy([&]() -> Status {
    GANTRY_TRY(auto opened, OwnershipStore::open(host));
    ledger.emplace(std::move(opened));
    return {};
  }));
  return *std::move(ledger);
}

Status begin_change(const sys::Host& host, const OwnerIntent& intent, const GpuUsage& usage,
                    const AtStep& at) {
  GANTRY_TRY(auto ledger, open_soon(host));
  GANTRY_CHECK(ledger.adopt(intent.gpu, uuid_of(host, intent.gpu), Owner::Plugin,
                            model::AllocationMode::Whole));
  at(ChangeStep::Adopted);
  return ledger.begin(intent, usage);
}

Error not_recorded(const OwnerIntent& intent, const Error& why) {
  return Error(why.code(), fmt::format("the change of {} is done, but it could not be recorded: {}",
                                       intent.gpu.sysfs(), why.text()))
      .advise(fmt::format("repeat the command: {}", intent.what));
}

}  // namespace

ActOutcome outcome_of(const Status& act) {
  if (act.ok()) return ActOutcome::Done;
  switch (act.error().code()) {
    case Errc::Timeout:
    case Errc::Internal: return ActOutcome::Unknown;
    case Errc::Busy: return ActOutcome::NotBegun;
    default: return ActOutcome::Undone;
  }
}

OwnerIntent intent_of(const OwnerChange& change) {
  return {.gpu = change.gpu,
          .to = change.to,
          .use = change.use,
          .what = change.what,
          .pid = static_cast<std::uint32_t>(::getpid()),
          .since_unix_seconds = std::time(nullptr),
          .kept = change.parts ? change.parts->kept : std::vector<std::string>{}};
}

Status settle_change(OwnershipStore& ledger, const OwnerIntent& intent, ActOutcome outcome) {
  if (outcome == ActOutcome::Unknown) return {};  // the intent stays
  const bool done = outcome == ActOutcome::Done;
  auto settled = done                              ? ledger.finish(intent)
                 : outcome == ActOutcome::NotBegun ? ledger.drop(intent)
                                                   : ledger.cancel(intent);
  if (settled.ok() || settled.error().code() != Errc::NotFound) return settled;
  // The answer to an earlier call may have been lost.
  const auto* entry = ledger.state().find(intent.gpu);
  const bool recorded = ledger.state().intent(intent.gpu) == nullptr && entry != nullptr &&
                        (!done || (entry->owner == intent.to && entry->use == intent.use));
  return recorded ? Status{} : settled;
}

Status settle_change(const sys::Host& host, const OwnerIntent& intent, ActOutcome outcome) {
  if (outcome == ActOutcome::Unknown) return {};
  GANTRY_TRY(auto ledger, OwnershipStore::open(host));
  return settle_change(ledger, intent, outcome);
}

Status change_owner(const sys::Host& host, const OwnerChange& change, const GpuUsage& usage,
                    const std::function<Status()>& act, const SettleChange& settle,
                    const AtStep& at) {
  GANTRY_TRY(const auto lock, ChangeLock::take(host, change.gpu));
  at(ChangeStep::Locked);
  const auto intent = intent_of(change);
  GANTRY_CHECK(begin_change(host, intent, usage, at));
  at(ChangeStep::IntentWritten);
  auto acted = act();
  at(ChangeStep::Acted);
  const auto outcome = outcome_of(acted);
  const auto settled = while_busy(
      [&] { return settle ? settle(intent, outcome) : settle_change(host, intent, outcome); });
  at(ChangeStep::Settled);
  if (!acted.ok()) return acted;  // the first cause; an intent that stays is told by doctor
  if (!settled.ok()) return not_recorded(intent, settled.error());
  return {};
}

Status change_owner(const sys::Host& host, const OwnerChange& change, const GpuUsage& usage,
                    const std::function<Status()>& act, const SettleChange& settle) {
  return change_owner(host, change, usage, act, settle, [](ChangeStep) {});
}

std::vector<OwnerIntent> changes_under_way(const sys::Host& host) {
  const auto state = OwnershipStore::peek(host);
  if (!state.ok()) return {};
  auto changes = state->intents;
  std::erase_if(changes,
                [&](const OwnerIntent& intent) { return !ChangeLock::is_taken(host, intent.gpu); });
  return changes;
}

std::vector<OwnerIntent> abandoned_changes(const sys::Host& host, const OwnershipState& state) {
  std::vector<OwnerIntent> abandoned;
  for (const auto& intent : state.intents) {
    if (!ChangeLock::is_taken(host, intent.gpu)) abandoned.push_back(intent);
  }
  return abandoned;
}

}  // namespace gantry::ownership
