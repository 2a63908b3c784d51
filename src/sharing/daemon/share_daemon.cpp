// SPDX-License-Identifier: Apache-2.0
// Creating and removing shares.
#include "sharing/daemon/share_daemon.hpp"

#include "sharing/daemon/client.hpp"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kBeat = 100ms;
constexpr std::size_t kMostLeaving = 1024;
constexpr auto kPictures = 250ms;  // as the audit needs it

}  // namespace

ShareDaemon::ShareDaemon(sys::Loop& loop, const sys::Host& host, Log log)
    : loop_(loop), host_(host), log_(std::move(log)) {}

ShareDaemon::~ShareDaemon() = default;

Result<std::unique_ptr<ShareDaemon>> ShareDaemon::open(sys::Loop& loop, const sys::Host& host,
                                                       nvml_child::NvmlChildOptions sensor,
                                                       Log log) {
  std::unique_ptr<ShareDaemon> made(new ShareDaemon(loop, host, std::move(log)));
  GANTRY_CHECK(made->start(std::move(sensor)));
  return made;
}

Status ShareDaemon::start(nvml_child::NvmlChildOptions sensor) {
  timer_ = sys::UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_.valid()) return Error::sys(errno, "timerfd_create");
  GANTRY_TRY(on_timer_,
             loop_.watch(timer_.get(), EPOLLIN, [this](std::uint32_t) { on_turn_timer(); }));
  heartbeat_ = loop_.every(kBeat, [this] { on_heartbeat(); });
  changes_at_start_ = std::make_unique<ownership::ChangesAtStart>(
      loop_, host_, [this] { end_release(kChangesAtStart); });
  sensor.released = changes_at_start_->why();
  if (!sensor.released.empty()) released_for_.insert(kChangesAtStart);
  GANTRY_TRY(watcher_,
             GpuWatcher::open(
                 loop_, host_, std::move(sensor), log_,
                 {.machine = [this] { answer_pending(); },
                  .asking = [this] { on_reading_started(); },
                  .picture = [this](const auto& readings, auto at) { on_reading(readings, at); }}));
  recover();
  GANTRY_TRY(control_,
             ControlSocket::open(
                 loop_, host_.outside(kControlSocket),
                 {.question = [this](auto client, auto line) { return on_request(client, line); },
                  .gone = [this](auto client) { on_client_gone(client); }}));
  return {};
}

// This happens before the driver answers, because processes wait at their gates.
void ShareDaemon::recover() {
  auto found = read_records(host_);
  for (const auto& problem : found.problems)
    log_.error("", "cannot read the record of a share", {{"err", problem}});
  for (const auto& name : found.unfinished) remove_record(host_, name);
  for (auto& record : found.records) recover_share(std::move(record));
}

void ShareDaemon::recover_share(ShareRecord record) {
  const auto name = record.share.name;
  const auto holder = record.holder;
  const auto end_with_holder = [&] {
    remove_left_cgroup(record.cgroup, name);
    remove_record(host_, name);
  };
  if (holder.pid != 0 && !is_running(holder)) return end_with_holder();
  ShareHolder holding;
  if (holder.pid != 0) {
    holding.pidfd = sys::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, holder.pid, 0)));
    auto end = loop_.watch(holding.pidfd.get(), EPOLLIN, [this, name](std::uint32_t) {
      log_.info(name, "the process that held it has ended");
      drop(name);
    });
    if (!end.ok() || !is_running(holder)) return end_with_holder();
    holding.end = *std::move(end);
  }
  if (auto served = serve(std::move(record), Origin::FromDisk); !served.ok())
    return log_.error(name, "cannot restore the share", {{"err", served.error()}});
  if (holder.pid != 0) holders_[name] = std::move(holding);
  log_.info(name, "restored");
}

Result<ServedShare*> ShareDaemon::serve(ShareRecord record, Origin origin) {
  const auto name = record.share.name;
  const auto id = ++last_id_;
  GANTRY_TRY(
      auto made,
      ServedShare::open(loop_, host_, std::move(record), id, origin,
                        {.report = [this](auto& share, auto slot,
                                          const auto& report) { on_report(share, slot, report); },
                         .left = [this](auto& share, auto slot) { on_left(share, slot); }}));
  auto* share = made.get();
  by_id_[id] = share;
  shares_[name] = std::move(made);
  set_turns();
  watcher_->poll_every(kPictures);
  watcher_->look();
  return share;
}

void ShareDaemon::drop(const std::string& name) {
  const auto found = shares_.find(name);
  if (found == shares_.end()) return;
  const auto share = std::move(found->second);
  shares_.erase(found);
  for (auto& [uuid, turns] : turns_) turns->remove(share->id(), now());
  for (auto& [uuid, meter] : meters_) meter.forget(share->id());
  by_id_.erase(share->id());
  std::erase_if(accounts_, [&](const auto& entry) { return entry.first.id == share->id(); });
  holders_.erase(name);
  for (auto& group : share->take_groups()) {
    if (removed_cgroups_.size() < kMostLeaving) removed_cgroups_.push_back(std::move(group));
  }
  remove_record(host_, name);
  set_turns();
  if (shares_.empty()) watcher_->rest();
  log_.info(name, "removed");
}

void ShareDaemon::on_client_gone(ControlSocket::Id client) {
  std::erase_if(pending_, [&](const auto& one) { return one.client == client; });
  end_release(client);
  std::vector<std::string> held;
  for (const auto& [name, holding] : holders_) {
    if (holding.client == client) held.push_back(name);
  }
  for (const auto& name : held) drop(name);
}

// If one share of a GPU has a time limit, all shares of that GPU take turns.
void ShareDaemon::set_turns() {
  std::map<model::GpuUuid, bool> limited;
  for (const auto& [name, share] : shares_) {
    for (std::uint32_t gpu = 0; gpu < share->gpu_count(); ++gpu)
      limited[share->card(gpu).uuid] |= share->share().time_limited;
  }
  for (const auto& [name, share] : shares_) {
    bool gated = false;
    for (std::uint32_t gpu = 0; gpu < share->gpu_count(); ++gpu) {
      const auto uuid = share->card(gpu).uuid;
      auto& turns = turns_[uuid];
      if (!turns)
        turns = std::make_unique<GpuTurnScheduler>(
            [this, uuid](auto tenant, auto word) { set_gate(uuid, tenant, word); });
      const bool takes_turns = turns->has(share->id());
      gated = gated || limited[uuid];
      if (limited[uuid] && !takes_turns) turns->add(share->id(), share->share().time_policy, now());
      if (!limited[uuid] && takes_turns) turns->remove(share->id(), now());
    }
    share->set_gated(gated);
  }
  std::erase_if(turns_, [](const auto& entry) { return entry.second->empty(); });
  std::erase_if(unmanaged_, [this](const auto& entry) { return !turns_.contains(entry.first); });
  beat_often();
  arm();
}

void ShareDaemon::beat_often() {
  ran_at_ = now();
  if (turns_.empty()) return gated_heartbeat_.cancel();
  gated_heartbeat_ = loop_.every(kGatedHeartbeat, [this] {
    notice_pause();
    const auto at = monotonic_ns();
    for (const auto& [name, share] : shares_) share->pages().heartbeat(at);
  });
}

// While this process did not run, the tenants kept to their caps by themselves: charging them for
// that time would stop them for just as long.
void ShareDaemon::notice_pause() {
  const auto at = now();
  if (!turns_.empty() && at - ran_at_ > kGatedStaleAfter) {
    for (auto& [uuid, turns] : turns_) turns->resume(at);
    controlled_since_ = at;
  }
  ran_at_ = at;
}

}  // namespace gantry::daemon
