// SPDX-License-Identifier: Apache-2.0
// Uses NVML's data about the shares' processes: memory that their ledgers do not count, and time
// that they do not report.
#include "base/core/unix_time.hpp"
#include "sharing/daemon/peer_identity.hpp"
#include "sharing/daemon/share_daemon.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace gantry::daemon {
namespace {

// The age of a utilisation sample: the latest samples are up to a second old.
constexpr policy::Time kSampleWindow = std::chrono::seconds(1);
// The first samples of a new process are useless: an H200 reports 80 % for a process that does
// nothing.
constexpr policy::Time kWarmup = std::chrono::seconds(2);

// A process that never rests is read as often as the others.
constexpr int kMaxExtraReadings = 3;

std::optional<double> percent_of(const std::vector<const model::ProcessReading*>& processes) {
  std::optional<double> sum;
  for (const auto* process : processes) {
    if (process->utilization_percent) sum = sum.value_or(0) + *process->utilization_percent;
  }
  return sum;
}

}  // namespace

// A process that is attached to a share belongs to it, whatever its parents are. Attached processes
// are known without reading /proc, which would delay the gates.
ServedShare* ShareDaemon::owner_of(pid_t pid, const model::GpuUuid& gpu) const {
  for (const auto& [name, share] : shares_) {
    if (share->attached_processes().of_pid(pid) != nullptr)
      return share->index_of(gpu) ? share.get() : nullptr;
  }
  for (const auto& [name, share] : shares_) {
    if (share->index_of(gpu) && share->has_process(pid)) return share.get();
  }
  return nullptr;
}

// Not before this, on CLOCK_BOOTTIME. Attached processes are known without reading /proc.
std::uint64_t ShareDaemon::started_ns(pid_t pid) const {
  for (const auto& [name, share] : shares_) {
    if (const auto* member = share->attached_processes().of_pid(pid)) return member->started_ns;
  }
  return start_interval(pid).earliest_ns;
}

// A process that started after the reading began is not the one that NVML saw, which has ended: the
// kernel gave its pid away. Uses only readings that include GPU time: one without it would clear
// processes that hide their use.
void ShareDaemon::on_reading(const model::Readings& readings, ReadingScope at_what) {
  notice_pause();
  const bool whole = at_what == ReadingScope::Everything;
  const auto at = now();
  std::map<const ServedShare*, std::uint32_t> seen;  // on how many of its GPUs
  for (const auto& gpu : readings.gpus) {
    if (!gpu.lost.empty()) continue;
    const auto processes = note_processes(gpu, at);
    ProcessesByShare of_share;
    for (const auto* process : processes)
      of_share[owner_of(static_cast<pid_t>(process->pid), gpu.uuid)].push_back(process);
    if (whole) note_unmanaged(gpu.uuid, of_share[nullptr], at);
    const auto time =
        whole ? verified(gpu.uuid, of_share, at) : std::map<policy::TenantId, double>{};
    for (const auto& [name, share] : shares_) {
      const auto index = share->index_of(gpu.uuid);
      if (!index) continue;
      const auto& own = of_share[share.get()];
      take_reading(*share, *index, own);
      ++seen[share.get()];
      if (!whole) continue;
      accounts_[{share->id(), *index}].measured = percent_of(own).value_or(-100) / 100;
      const auto of_this = time.find(share->id());
      audit_share(*share, *index, own,
                  of_this == time.end() ? std::nullopt : std::optional(of_this->second), at);
    }
  }
  for (const auto& [name, share] : shares_) {
    if (seen[share.get()] == share->gpu_count()) share->on_gpus_read(asked_ns_);
  }
}

// Returns the processes of the reading that still run.
ShareDaemon::Processes ShareDaemon::note_processes(const model::GpuReading& gpu, policy::Time at) {
  Processes running;
  std::map<std::uint32_t, SeenProcess> now;
  auto& before = first_seen_[gpu.uuid];
  for (const auto& process : gpu.processes) {
    const auto started = started_ns(static_cast<pid_t>(process.pid));
    if (started > asked_boottime_ns_) continue;
    running.push_back(&process);
    const auto known = before.find(process.pid);
    const bool same = known != before.end() && known->second.started_ns == started;
    now[process.pid] = same ? known->second : SeenProcess{.first = at, .started_ns = started};
  }
  before = std::move(now);
  return running;
}

// Before a process attached to this daemon, and while this daemon did not run, the process had GPU
// time that it could not report.
ShareDaemon::Processes ShareDaemon::settled(const model::GpuUuid& gpu, const ServedShare& share,
                                            const Processes& processes, policy::Time at) const {
  const auto seen = first_seen_.find(gpu);
  Processes older;
  if (seen == first_seen_.end() || at - controlled_since_ < kWarmup) return older;
  for (const auto* process : processes) {
    const auto* member = share.attached_processes().of_pid(static_cast<pid_t>(process->pid));
    const auto attached = member == nullptr ? policy::Time(0) : policy::Time(member->attached_ns);
    if (at - seen->second.at(process->pid).first >= kWarmup && at - attached >= kWarmup)
      older.push_back(process);
  }
  return older;
}

// For each tenant that takes turns.
std::map<policy::TenantId, double> ShareDaemon::verified(const model::GpuUuid& gpu,
                                                         const ProcessesByShare& of_share,
                                                         policy::Time at) {
  const auto turns = turns_.find(gpu);
  if (turns == turns_.end()) return {};
  auto& meter = meters_[gpu];
  std::map<policy::TenantId, policy::UsageVerifier::UsageClaim> said;
  for (const auto& [share, processes] : of_share) {
    const auto view = share == nullptr ? std::nullopt : turns->second->view(share->id());
    if (!view) continue;
    const auto percent = percent_of(settled(gpu, *share, processes, at));
    if (!percent) continue;
    meter.note(share->id(), *view, at);
    said[share->id()] = {.driver = *percent,
                         .reported = meter.reported_percent(share->id(), kSampleWindow, at)};
  }
  return verifiers_[gpu].verified(said, at);
}

// Processes without a share can use any amount of time of a GPU whose shares take turns. Each is
// logged once, and nothing else is done about it.
void ShareDaemon::note_unmanaged(const model::GpuUuid& gpu, const Processes& processes,
                                 policy::Time at) {
  auto before = std::move(unmanaged_[gpu]);
  // A pid that this reading shows for the first time belongs to another process now.
  std::erase_if(before, [&](const auto& one) {
    const auto& seen = first_seen_[gpu];
    const auto known = seen.find(one.pid);
    return known == seen.end() || known->second.first == at;
  });
  unmanaged_.erase(gpu);
  if (!turns_.contains(gpu) || processes.empty()) return;
  auto& now = unmanaged_[gpu];
  for (const auto* process : processes) {
    if (now.size() >= kMaxUnmanagedProcesses) break;
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const auto& one) { return one.pid == process->pid; });
    now.push_back({.pid = process->pid,
                   .memory_used = process->memory_bytes.value_or(0),
                   .command = known != before.end()
                                  ? known->command
                                  : command_of(static_cast<pid_t>(process->pid))});
    if (known == before.end())
      log_.warning(
          "",
          "process uses a GPU outside of any share; the time limits of the shares do not slow it "
          "down",
          {{"pid", process->pid}, {"command", now.back().command}, {"gpu", gpu.text}});
  }
}

void ShareDaemon::take_reading(ServedShare& share, std::uint32_t gpu, const Processes& processes) {
  auto& account = accounts_[{share.id(), gpu}];
  account.used = 0;
  account.unfenced = 0;
  std::map<std::uint32_t, std::optional<std::uint64_t>> seen;  // by slot
  for (const auto* process : processes) {
    const auto bytes = process->memory_bytes.value_or(0);
    account.used += bytes;
    const auto* member = share.attached_processes().of_pid(static_cast<pid_t>(process->pid));
    if (member == nullptr) {
      account.unfenced += bytes;
    } else {
      seen[member->slot] = process->memory_bytes;
    }
  }
  for (const auto& [slot, member] : share.attached_processes().by_slot()) {
    const bool shown = seen.contains(slot);
    const auto bytes = seen[slot];
    share.pages().set_used(slot, gpu, bytes.value_or(0));
    const auto before = account.before.find(slot);
    if (before == account.before.end()) continue;  // it started during the reading
    auto& overhead = account.overhead[slot];
    const auto after = share.pages().usage(slot, gpu);
    const auto known = updated_overhead(overhead, before->second, after, bytes);
    if (is_quiescent(before->second, after)) {
      account.unquiet_readings.erase(slot);
    } else if (account.unquiet_readings[slot]++ < kMaxExtraReadings) {
      watcher_->look();
    }
    // For this share only, because the tenant claims how much of NVML's value is a context.
    if (const auto cost = context_cost(overhead, known)) share.set_context_estimate(gpu, *cost);
    overhead = known;
    if (shown) account.shown.insert(slot);
    if (!shown && account.shown.contains(slot)) forget_exec(share, gpu, *member);
  }
  show_overhead(share, gpu);
  share.pages().set_reading_time(gpu, asked_ns_);
}

// NVML no longer reports the process, but it still runs. A process that only closed our socket
// still has a context; if exec closed the socket, its memory is gone too. A reading that began
// before that proves nothing.
void ShareDaemon::forget_exec(ServedShare& share, std::uint32_t gpu,
                              const AttachedProcess& member) {
  if (member.connections != 0 || asked_ns_ <= member.disconnected_ns) return;
  share.pages().clear_row(member.slot, gpu);
  auto& account = accounts_[{share.id(), gpu}];
  account.overhead.erase(member.slot);
  account.unquiet_readings.erase(member.slot);
  account.shown.erase(member.slot);
  const auto turns = turns_.find(share.card(gpu).uuid);
  if (turns != turns_.end()) turns->second->gone(share.id(), member.slot, now());
}

void ShareDaemon::audit_share(ServedShare& share, std::uint32_t gpu, const Processes& processes,
                              std::optional<double> verified, policy::Time at) {
  const auto& uuid = share.card(gpu).uuid;
  policy::AuditInput seen{.gpu = uuid, .memory_limit = share.pages().memory_limit(gpu)};
  for (const auto* process : processes) {
    const auto* member = share.attached_processes().of_pid(static_cast<pid_t>(process->pid));
    seen.processes.push_back(
        {.pid = process->pid,
         .memory_bytes = process->memory_bytes.value_or(0),
         .ledger_bytes = member == nullptr ? 0 : share.pages().usage(member->slot, gpu).held,
         .attached = share.is_fenced(static_cast<pid_t>(process->pid))});
  }
  const auto turns = turns_.find(uuid);
  const auto view = turns == turns_.end() ? std::nullopt : turns->second->view(share.id());
  if (view) {
    auto& meter = meters_[uuid];
    meter.note(share.id(), *view, at);
    seen.overstayed = view->overstayed;
    seen.driver_percent = verified;
    seen.charged_percent = meter.reported_percent(share.id(), kSampleWindow, at);
    if (seen.driver_percent) {
      const auto hidden =
          meter.unreported(share.id(), *seen.driver_percent, at - kSampleWindow, at);
      if (hidden > policy::Time::zero()) {
        turns->second->charge(share.id(), hidden, at);
        using Milliseconds = std::chrono::milliseconds;
        log_.info(share.name(), "charged GPU time that the share did not report",
                  {{"charged_ms", std::chrono::duration_cast<Milliseconds>(hidden).count()},
                   {"driver_percent", std::round(*seen.driver_percent)},
                   {"reported_percent", std::round(seen.charged_percent)}});
      }
    }
  }
  auto& account = accounts_[{share.id(), gpu}];
  const auto look = policy::audit(share.share(), seen, account.audit, at);
  for (const auto& finding : look.findings) apply_finding(share, finding);
  for (const auto over : look.over)
    log_.info(share.name(), "violation is over", {{"violation", policy::to_string(over)}});
  arm();
}

void ShareDaemon::apply_finding(ServedShare& share, const policy::Finding& finding) {
  const bool stops = finding.action == policy::ViolationPolicy::Stop;
  if (finding.fresh) {
    log_.warning(share.name(), "share exceeds its limits",
                 {{"violation", policy::to_string(finding.offence)},
                  {"why", finding.text},
                  {"stopped", stops}});
    share.add_finding({.at_unix_ms = unix_ms(),
                       .kind = std::string(policy::to_string(finding.offence)),
                       .pid = finding.pids.empty() ? 0 : finding.pids.front(),
                       .text = finding.text,
                       .stopped = stops});
  }
  if (!stops) return;
  // A process that started later has only the pid of the one that was found.
  const auto is_found = [&](pid_t pid) {
    return share.has_process(pid) && start_interval(pid).latest_ns <= asked_boottime_ns_;
  };
  for (const auto pid : finding.pids)
    terminator_.stop(static_cast<pid_t>(pid), is_found, ProcessTerminator::Clock::now());
}

}  // namespace gantry::daemon
