// SPDX-License-Identifier: Apache-2.0
// Answers the requests of clients.
#include "gpu/ownership/fits.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "sharing/daemon/peer_identity.hpp"
#include "sharing/daemon/share_daemon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::daemon {
namespace {

constexpr std::size_t kMostShares = 1024;
constexpr policy::Time kWindow = std::chrono::seconds(1);
constexpr std::array<std::string_view, 4> kGates{"open", "one", "shut", "?"};

ProcessState process_state(const ServedShare& share, const AttachedProcess& member) {
  ProcessState process{.pid = static_cast<std::uint32_t>(member.pid),
                       .inner_pid = member.inner_pid,
                       .command = command_of(member.pid)};
  for (std::uint32_t gpu = 0; gpu < share.gpu_count(); ++gpu) {
    const auto usage = share.pages().usage(member.slot, gpu);
    process.gpus.push_back({.memory_held = usage.held,
                            .memory_used = share.pages().used(member.slot, gpu),
                            .launches = usage.launches,
                            .contexts = usage.contexts,
                            .waiting = usage.waiting,
                            .busy = usage.busy});
  }
  return process;
}

}  // namespace

std::optional<std::string> ShareDaemon::on_request(ControlSocket::Id client,
                                                   std::string_view line) {
  auto question = parse_request(line);
  if (!question.ok()) return to_response(question.error());
  const bool makes = question->ask == RequestKind::Create || question->ask == RequestKind::Hold;
  if (makes && watcher_->cards().empty() && watcher_->trouble().empty()) {
    pending_.push_back({client, *std::move(question)});
    return std::nullopt;
  }
  return answer(client, *question);
}

void ShareDaemon::answer_pending() {
  for (auto& one : std::exchange(pending_, {}))
    control_->answer(one.client, answer(one.client, one.question));
}

std::string ShareDaemon::answer(ControlSocket::Id client, const Request& question) {
  const auto one = [](Result<ShareState> state) {
    return state.ok() ? to_response(std::vector{*std::move(state)}) : to_response(state.error());
  };
  const auto done = [](const Status& status) {
    return status.ok() ? to_response(std::vector<ShareState>{}) : to_response(status.error());
  };
  switch (question.ask) {
    case RequestKind::Create:
    case RequestKind::Hold: return one(make(client, question));
    case RequestKind::Set: return one(set(question));
    case RequestKind::List: return to_response(states());
    case RequestKind::Remove: return done(remove(question.name));
    case RequestKind::Show: {
      const auto share = find(question.name);
      return share.ok() ? one(state_of(**share)) : to_response(share.error());
    }
    case RequestKind::Adopt: {
      const auto share = find(question.name);
      if (!share.ok()) return to_response(share.error());
      if (!question.contained) return done((*share)->adopt(question.pid));
      return done((*share)->contain(container_init_pid(control_->pid_of(client), question.pid)));
    }
    case RequestKind::Release: release_driver(client); return done({});
  }
  return to_response(Error(Errc::Internal, "this request has no answer"));
}

Result<ServedShare*> ShareDaemon::find(const std::string& name) {
  const auto found = shares_.find(name);
  if (found != shares_.end()) return found->second.get();
  return Error(Errc::NotFound, fmt::format("there is no share {}", name))
      .advise("`gantry share ls` lists the shares");
}

Result<ShareState> ShareDaemon::make(ControlSocket::Id client, const Request& question) {
  auto share = *question.share;
  const bool held = question.ask == RequestKind::Hold;
  GANTRY_CHECK(check_name(share.name));
  if (shares_.count(share.name) != 0)
    return Error(Errc::Exists, fmt::format("the share {} already exists", share.name))
        .advise("change it with `gantry share set`, or remove it with `gantry share rm`");
  if (shares_.size() >= kMostShares)
    return Error(Errc::Busy, fmt::format("this machine already has {} shares", kMostShares));
  if (watcher_->cards().empty())
    return Error(Errc::NotFound, fmt::format("there is no GPU to share: {}", watcher_->trouble()))
        .advise("run `gantry doctor`");
  ShareRecord record;
  GANTRY_TRY(record.cards, choose_cards(share, question.overcommit));
  share.gpus.clear();
  for (const auto& card : record.cards) share.gpus.push_back(card.uuid);
  record.share = std::move(share);
  if (held) record.holder = process_ref(control_->pid_of(client));
  const auto name = record.share.name;
  auto opened = serve(std::move(record), Origin::Created);
  if (!opened.ok()) {
    remove_record(host_, name);  // or the next daemon would restore the share that we refused
    return std::move(opened).error();
  }
  const auto* served = *opened;
  if (held) holders_[served->name()].client = client;
  log_.info(served->name(), held ? LogText("held") : LogText("created"));
  return state_of(*served);
}

Result<ShareState> ShareDaemon::set(const Request& question) {
  GANTRY_TRY(auto* served, find(question.name));
  if (question.changes.gpus)
    return Error(Errc::Unsupported, "the GPUs of a share cannot be changed")
        .advise("remove it and create it again");
  GANTRY_TRY(const auto share, policy::apply_changes(served->share(), question.changes));
  if (share.backend != served->share().backend)
    return Error(Errc::Unsupported, "the backend of a share cannot be changed")
        .advise("remove it and create it again");
  for (std::uint32_t gpu = 0; gpu < served->gpu_count(); ++gpu)
    GANTRY_CHECK(check_fit(share, served->card(gpu), question.overcommit));
  GANTRY_CHECK(served->change(share));
  const auto at = now();
  for (auto& [uuid, turns] : turns_) {
    if (turns->has(served->id())) turns->change(served->id(), share.time_policy, at);
  }
  set_turns();
  log_.info(served->name(), "changed");
  return state_of(*served);
}

Status ShareDaemon::remove(const std::string& name) {
  GANTRY_CHECK(find(name));
  drop(name);
  return {};
}

std::vector<policy::Share> ShareDaemon::shares_on(const policy::GpuCapacity& card) const {
  std::vector<policy::Share> all;
  for (const auto& [name, share] : shares_) {
    if (share->index_of(card.uuid)) all.push_back(share->share());
  }
  return all;
}

// A command is about to unbind a GPU: until its connection ends, no process of ours has one open.
void ShareDaemon::release_driver(ControlSocket::Id client) {
  released_for_.insert(client);
  watcher_->release("a command changes the owner of a GPU");
}

void ShareDaemon::end_release(ControlSocket::Id client) {
  if (released_for_.erase(client) > 0 && released_for_.empty()) watcher_->resume();
}

// Shares are for GPUs of the device plugin. Without a ledger there is no other owner; a daemon that
// may not read it belongs to a user who cannot change owners.
Status ShareDaemon::check_owner(const policy::Share& share, const policy::GpuCapacity& card) const {
  const auto ledger = ownership::OwnershipStore::peek(host_);
  if (!ledger.ok())
    return ledger.error().code() == Errc::Denied ? Status{} : Status(ledger.error());
  const auto* known = ledger->find(card.uuid);
  const auto* unplaced = ledger->find_unplaced(card.uuid);  // all GPUs of an earlier version
  if (known == nullptr && unplaced == nullptr) return {};
  const bool changing = known != nullptr && ledger->intent(known->gpu) != nullptr;
  return ownership::check_fits({.name = card.uuid.text,
                                .owner = known != nullptr ? known->owner : unplaced->owner,
                                .use = model::AllocationMode::Shares,
                                .changing = changing},
                               {},
                               {.holding = {.holder = fmt::format("share {}", share.name),
                                            .mode = model::AllocationMode::Shares}});
}

Status ShareDaemon::check_fit(const policy::Share& share, const policy::GpuCapacity& card,
                              policy::Overcommit overcommit) const {
  GANTRY_CHECK(check_owner(share, card));
  return policy::check_fits(share, shares_on(card), card, overcommit);
}

std::uint64_t ShareDaemon::reserved_on(const policy::GpuCapacity& card) const {
  std::uint64_t bytes = 0;
  for (const auto& share : shares_on(card))
    bytes += share.memory ? share.memory->on(card.memory_bytes) : card.memory_bytes;
  return bytes;
}

// For any GPU: among those on which it fits, the one with the least committed memory.
Result<std::vector<policy::GpuCapacity>> ShareDaemon::choose_cards(
    const policy::Share& share, policy::Overcommit overcommit) const {
  const auto& all = watcher_->cards();
  std::vector<policy::GpuCapacity> chosen;
  for (const auto& uuid : share.gpus) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& card) { return card.uuid == uuid; });
    if (found == all.end() || !uuid_bytes(uuid.text))
      return Error(Errc::NotFound, fmt::format("there is no GPU {}", uuid.text))
          .advise("`gantry info` lists the GPUs");
    GANTRY_CHECK(check_fit(share, *found, overcommit));
    chosen.push_back(*found);
  }
  if (!chosen.empty()) return chosen;
  std::optional<Error> why;
  for (const auto& card : all) {
    auto fit = check_fit(share, card, overcommit);
    if (!fit.ok() && !why) why = fit.error();
    if (!fit.ok() || !uuid_bytes(card.uuid.text)) continue;
    if (chosen.empty() || reserved_on(card) < reserved_on(chosen.front())) chosen = {card};
  }
  if (!chosen.empty()) return chosen;
  if (!why) return Error(Errc::NotFound, "no GPU of this machine can be shared");
  if (all.size() == 1) return *why;
  return std::move(*why).in(
      fmt::format("none of the {} GPUs has room for it; the first GPU", all.size()));
}

ShareState ShareDaemon::state_of(const ServedShare& share) const {
  ShareState state{.share = share.share(),
                   .directory = host_.outside(fence_directory(share.name())),
                   .held = holders_.count(share.name()) != 0,
                   .refused = share.refused(),
                   .findings = {share.findings().begin(), share.findings().end()}};
  for (std::uint32_t gpu = 0; gpu < share.gpu_count(); ++gpu)
    state.gpus.push_back(gpu_state(share, gpu));
  for (const auto& [slot, member] : share.attached_processes().by_slot()) {
    for (std::uint32_t gpu = 0; gpu < share.gpu_count(); ++gpu) {
      const auto usage = share.pages().usage(slot, gpu);
      state.gpus[gpu].memory_held += usage.held;
      state.gpus[gpu].busy = state.gpus[gpu].busy || usage.busy;
    }
    if (state.processes.size() < kMaxShownProcesses) {
      state.processes.push_back(process_state(share, *member));
    } else {
      ++state.more_processes;
    }
  }
  return state;
}

GpuState ShareDaemon::gpu_state(const ServedShare& share, std::uint32_t gpu) const {
  const auto& card = share.card(gpu);
  GpuState state{.uuid = card.uuid,
                 .memory_total = card.memory_bytes,
                 .memory_limit = share.pages().memory_limit(gpu),
                 .part = 1,
                 .gate = std::string(kGates.at(share.pages().gate(gpu) & FENCE_GATE_MASK))};
  if (const auto turns = turns_.find(card.uuid); turns != turns_.end()) {
    if (const auto view = turns->second->view(share.id())) state.part = view->part;
  }
  if (const auto found = unmanaged_.find(card.uuid); found != unmanaged_.end())
    state.unmanaged = found->second;
  if (const auto meter = meters_.find(card.uuid); meter != meters_.end())
    state.used = meter->second.percent(share.id(), kWindow, now()) / 100;
  const auto found = accounts_.find({share.id(), gpu});
  if (found == accounts_.end()) return state;
  const auto& account = found->second;
  state.memory_used = account.used;
  state.measured = account.measured;
  return state;
}

std::vector<ShareState> ShareDaemon::states() const {
  std::vector<ShareState> all;
  for (const auto& [name, share] : shares_) all.push_back(state_of(*share));
  return all;
}

}  // namespace gantry::daemon
