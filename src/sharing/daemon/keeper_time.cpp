// SPDX-License-Identifier: Apache-2.0
// Reports, turns, beats, and what contexts take.
#include "sharing/daemon/keeper.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace gantry::daemon {
void Keeper::on_report(ServedShare& share, std::uint32_t slot, const FenceReport& report) {
  if (report.event == FENCE_CONTEXT) return watcher_->look();
  const auto turns = turns_.find(share.card(report.gpu).uuid);
  if (turns == turns_.end()) return;
  turns->second->report(share.id(), slot, report, now());
  arm();
}

void Keeper::on_left(ServedShare& share, std::uint32_t slot) {
  for (std::uint32_t gpu = 0; gpu < share.gpu_count(); ++gpu) {
    const auto turns = turns_.find(share.card(gpu).uuid);
    if (turns != turns_.end()) turns->second->gone(share.id(), slot, now());
    auto& account = accounts_[{share.id(), gpu}];
    account.before.erase(slot);
    account.overhead.erase(slot);
    account.restless.erase(slot);
    account.shown.erase(slot);
    show_overhead(share, gpu);
  }
  watcher_->look();
  arm();
}

void Keeper::set_gate(const model::GpuUuid& gpu, policy::TenantId tenant, std::uint32_t word) {
  const auto share = by_id_.find(tenant);
  if (share == by_id_.end()) return;
  if (const auto index = share->second->index_of(gpu))
    share->second->pages().set_gate(*index, word);
}

void Keeper::on_turn_timer() {
  std::uint64_t expirations = 0;
  while (::read(timer_.get(), &expirations, sizeof expirations) > 0) {
  }
  armed_ = policy::Time(0);
  for (auto& [uuid, turns] : turns_) turns->tick(now());
  arm();
}

// False: nobody is in such a hurry.
bool Keeper::stay_alert() {
  policy::Time until{0};
  for (const auto& [uuid, turns] : turns_) until = std::max(until, turns->alert_until());
  loop_.stay_awake(std::chrono::steady_clock::time_point(until));
  const bool alert = until > now();
  if (alert && precedence_) precedence_->look_on();
  return alert;
}

// The nearest moment at which a gate must change, to the microsecond.
void Keeper::arm() {
  stay_alert();
  policy::Time next{0};
  for (const auto& [uuid, turns] : turns_) {
    const auto due = turns->deadline();
    if (due && (next == policy::Time(0) || *due < next)) next = std::max(*due, policy::Time(1));
  }
  if (next == armed_) return;
  armed_ = next;
  itimerspec when{};  // all zero: not at all
  when.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(next).count();
  when.it_value.tv_nsec = (next % std::chrono::seconds(1)).count();
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Keeper::on_beat() {
  const auto at = now();
  for (const auto& [name, share] : shares_) {
    share->on_beat(static_cast<std::uint64_t>(at.count()));
    for (std::uint32_t gpu = 0; gpu < share->gpu_count(); ++gpu) {
      const auto turns = turns_.find(share->card(gpu).uuid);
      if (turns == turns_.end()) continue;
      for (const auto& [slot, member] : share->members().by_slot())
        turns->second->look(share->id(), slot, share->pages().usage(slot, gpu), at);
      if (const auto view = turns->second->view(share->id()))
        meters_[turns->first].note(share->id(), *view, at);
    }
  }
  stopper_.on_beat(Stopper::Clock::now());
  std::erase_if(leaving_, [](auto& group) { return group.remove(); });
  arm();
  if (precedence_ && !stay_alert()) precedence_->sleep_between();
}

void Keeper::on_asking() {
  asked_ns_ = monotonic_ns();
  for (const auto& [name, share] : shares_) {
    for (std::uint32_t gpu = 0; gpu < share->gpu_count(); ++gpu) {
      auto& before = accounts_[{share->id(), gpu}].before;
      before.clear();
      for (const auto& [slot, member] : share->members().by_slot())
        before[slot] = share->pages().usage(slot, gpu);
    }
  }
}

// Whoever sums up at the same time must not find less than there is: the sum goes up before the
// contexts that it includes, and down after them.
void Keeper::show_overhead(ServedShare& share, std::uint32_t gpu) {
  const auto& account = accounts_[{share.id(), gpu}];
  std::uint64_t sum = 0;
  for (const auto& [slot, overhead] : account.overhead) sum += overhead.bytes;
  sum += account.unfenced;
  auto& pages = share.pages();
  if (sum > pages.overhead(gpu)) pages.set_overhead(gpu, sum);
  for (const auto& [slot, overhead] : account.overhead)
    pages.set_seen_contexts(slot, gpu, overhead.contexts);
  pages.set_overhead(gpu, sum);
}

}  // namespace gantry::daemon
