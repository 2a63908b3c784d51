// SPDX-License-Identifier: Apache-2.0
// Reports, turns, heartbeats, and the memory of contexts.
#include "sharing/daemon/share_daemon.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace gantry::daemon {
void ShareDaemon::on_report(ServedShare& share, std::uint32_t slot, const FenceReport& report) {
  if (report.event == FENCE_CONTEXT) return watcher_->look();
  notice_pause();
  const auto turns = turns_.find(share.card(report.gpu).uuid);
  if (turns == turns_.end()) return;
  turns->second->report(share.id(), slot, report, now());
  arm();
}

void ShareDaemon::on_left(ServedShare& share, std::uint32_t slot) {
  for (std::uint32_t gpu = 0; gpu < share.gpu_count(); ++gpu) {
    const auto turns = turns_.find(share.card(gpu).uuid);
    if (turns != turns_.end()) turns->second->gone(share.id(), slot, now());
    auto& account = accounts_[{share.id(), gpu}];
    account.before.erase(slot);
    account.overhead.erase(slot);
    account.unquiet_readings.erase(slot);
    account.shown.erase(slot);
    show_overhead(share, gpu);
  }
  watcher_->look();
  arm();
}

void ShareDaemon::set_gate(const model::GpuUuid& gpu, policy::TenantId tenant, std::uint32_t word) {
  const auto share = by_id_.find(tenant);
  if (share == by_id_.end()) return;
  if (const auto index = share->second->index_of(gpu))
    share->second->pages().set_gate(*index, word);
}

void ShareDaemon::on_turn_timer() {
  std::uint64_t expirations = 0;
  while (::read(timer_.get(), &expirations, sizeof expirations) > 0) {
  }
  armed_ = policy::Time(0);
  notice_pause();
  for (auto& [uuid, turns] : turns_) turns->tick(now());
  arm();
}

// False if no tenant is urgent.
bool ShareDaemon::stay_alert() {
  policy::Time until{0};
  for (const auto& [uuid, turns] : turns_) until = std::max(until, turns->alert_until());
  loop_.busy_poll_until(std::chrono::steady_clock::time_point(until));
  const bool alert = until > now();
  if (alert && priority_) priority_->start_polling();
  return alert;
}

// The next time at which a gate must change, precise to the microsecond.
void ShareDaemon::arm() {
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

void ShareDaemon::on_heartbeat() {
  notice_pause();
  const auto at = now();
  for (const auto& [name, share] : shares_) {
    share->on_heartbeat(static_cast<std::uint64_t>(at.count()));
    for (std::uint32_t gpu = 0; gpu < share->gpu_count(); ++gpu) {
      const auto turns = turns_.find(share->card(gpu).uuid);
      if (turns == turns_.end()) continue;
      for (const auto& [slot, member] : share->attached_processes().by_slot())
        turns->second->look(share->id(), slot, share->pages().usage(slot, gpu), at);
      if (const auto view = turns->second->view(share->id()))
        meters_[turns->first].note(share->id(), *view, at);
    }
  }
  terminator_.on_heartbeat(ProcessTerminator::Clock::now());
  std::erase_if(removed_cgroups_, [](auto& group) { return group.remove(); });
  arm();
  if (priority_ && !stay_alert()) priority_->stop_polling();
}

void ShareDaemon::on_reading_started() {
  asked_ns_ = monotonic_ns();
  asked_boottime_ns_ = boottime_ns();
  for (const auto& [name, share] : shares_) {
    for (std::uint32_t gpu = 0; gpu < share->gpu_count(); ++gpu) {
      auto& before = accounts_[{share->id(), gpu}].before;
      before.clear();
      for (const auto& [slot, member] : share->attached_processes().by_slot())
        before[slot] = share->pages().usage(slot, gpu);
    }
  }
}

// A process that sums up at the same time must not see too little: the sum increases before the
// number of contexts that it includes, and decreases after it.
void ShareDaemon::show_overhead(ServedShare& share, std::uint32_t gpu) {
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
