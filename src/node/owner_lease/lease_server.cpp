// SPDX-License-Identifier: Apache-2.0
#include "node/owner_lease/lease_server.hpp"

#include "node/owner_lease/lease_socket.hpp"

#include <sys/epoll.h>

#include <fmt/format.h>

#include <utility>

namespace gantry::owner_lease {
namespace {

constexpr std::string_view kLeaseComponent = "owner";
constexpr std::size_t kMaxConnections = 32;

std::string waiting_for(const ownership::GpuUsage& usage) {
  if (usage.holders.empty())
    return usage.pids.empty() ? "" : fmt::format("waiting for process {}", usage.pids.front());
  const auto more = usage.holders.size() - 1;
  return fmt::format("waiting for {}{}", usage.holders.front(),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

LeaseServer::LeaseServer(sys::Loop& loop, const Log& log, Callbacks callbacks)
    : LeaseServer(loop, log, std::move(callbacks), Timing{}) {}

LeaseServer::LeaseServer(sys::Loop& loop, const Log& log, Callbacks callbacks, const Timing& timing)
    : loop_(loop), log_(log), callbacks_(std::move(callbacks)), timing_(timing) {}

Status LeaseServer::listen(const std::string& path) {
  GANTRY_TRY(listener_, owner_lease::listen(path));
  GANTRY_TRY(listening_,
             loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_one(); }));
  return {};
}

LeaseServer::Connection* LeaseServer::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

void LeaseServer::accept_one() {
  auto socket = accept(listener_.get());
  if (!socket || connections_.size() >= kMaxConnections) return;
  const auto id = next_id_++;
  auto watch = loop_.watch(socket->get(), EPOLLIN, [this, id](std::uint32_t) { hear(id); });
  if (!watch.ok()) return;
  auto& connection = connections_[id];
  connection.socket = *std::move(socket);
  connection.watch = *std::move(watch);
}

void LeaseServer::hear(ConnectionId id) {
  auto* connection = find(id);
  if (connection == nullptr) return;
  const auto message = receive(connection->socket.get());
  if (!message.ok()) return close(id);
  if (!*message) return;
  const auto request = parse_request(**message);
  if (!request.ok()) return refuse(id, request.error());
  if (request->kind == OwnerRequest::Kind::Lease) return lease(id, *request);
  settle(id, *request);
}

Status LeaseServer::check_free(const model::PciAddress& gpu) const {
  for (const auto& [id, other] : connections_) {
    if (other.stage != Stage::Idle && other.intent.gpu == gpu)
      return Error(Errc::Busy, fmt::format("the owner of {} is being changed: {}", gpu.sysfs(),
                                           describe(other.intent)));
  }
  return {};
}

void LeaseServer::lease(ConnectionId id, const OwnerRequest& request) {
  auto* connection = find(id);
  auto* ledger = callbacks_.ledger();
  if (ledger == nullptr)
    return refuse(id,
                  Error(Errc::Busy, "the agent cannot open the ownership ledger yet; try again"));
  if (connection->stage != Stage::Idle)
    return refuse(id, Error(Errc::Invalid, "this connection has a lease already"));
  if (const auto free = check_free(request.intent.gpu); !free.ok()) return refuse(id, free.error());
  const auto known = ledger->adopt(request.intent.gpu, request.uuid, ownership::Owner::Plugin,
                                   model::AllocationMode::Whole);
  if (!known.ok()) return refuse(id, known.error());
  connection->stage = Stage::Waiting;
  connection->intent = request.intent;
  connection->wanted = {
      .gpu = request.intent.gpu, .yielding = request.yielding, .parts = request.parts};
  connection->until = Clock::now() + request.wait;
  connection->withdrawn_by = Clock::now() + timing_.withdraw_limit;
  log_.info(kLeaseComponent, "a command asks for a GPU",
            {{"gpu", request.intent.gpu.sysfs()}, {"command", request.intent.what}});
  callbacks_.withdraw(connection->wanted,
                      fmt::format("its owner is being changed: {}", describe(request.intent)));
  look(id);
}

void LeaseServer::look(ConnectionId id) {
  const auto* connection = find(id);
  if (connection == nullptr || connection->stage != Stage::Waiting) return;
  const std::weak_ptr<bool> alive = alive_;
  callbacks_.find_usage(connection->wanted,
                        [this, alive, id](const Result<ownership::GpuUsage>& usage) {
                          if (alive.lock()) on_usage(id, usage);
                        });
}

void LeaseServer::wait(ConnectionId id, std::chrono::milliseconds pause) {
  find(id)->timer = loop_.after(pause, [this, id] { look(id); });
}

void LeaseServer::on_usage(ConnectionId id, const Result<ownership::GpuUsage>& usage) {
  auto* connection = find(id);
  if (connection == nullptr || connection->stage != Stage::Waiting) return;
  if (!usage.ok()) return refuse(id, usage.error());
  const auto now = Clock::now();
  if (!usage->withdrawn && now < connection->withdrawn_by) return wait(id, timing_.withdraw_pause);
  const auto text = waiting_for(*usage);
  if (text.empty() || now >= connection->until) return grant(id, *usage);
  if (std::exchange(connection->told, text) != text)
    reply(id, {.kind = OwnerReply::Kind::Waiting, .text = text});
  if (find(id) != nullptr) wait(id, timing_.holders_pause);
}

// The ledger refuses it if the GPU is in use.
void LeaseServer::grant(ConnectionId id, const ownership::GpuUsage& usage) {
  auto* connection = find(id);
  auto* ledger = callbacks_.ledger();
  if (ledger == nullptr) return refuse(id, Error(Errc::Busy, "the ownership ledger was closed"));
  const auto begun = ledger->begin(connection->intent, usage);
  if (!begun.ok()) return refuse(id, begun.error());
  connection->stage = Stage::Granted;
  log_.info(kLeaseComponent, "a command has a GPU",
            {{"gpu", connection->intent.gpu.sysfs()}, {"command", connection->intent.what}});
  const auto intent = connection->intent;
  reply(id, {.kind = OwnerReply::Kind::Granted});
  if (find(id) == nullptr) take_back(intent);
}

// The command ended before it could get the grant, so it has done nothing.
void LeaseServer::take_back(const ownership::OwnerIntent& intent) {
  auto* ledger = callbacks_.ledger();
  const auto cancelled = ledger != nullptr
                             ? ledger->drop(intent)
                             : Status(Error(Errc::Busy, "the ownership ledger was closed"));
  if (!cancelled.ok())
    log_.warning(kLeaseComponent, "a change that did not begin is still in the ownership ledger",
                 {{"gpu", intent.gpu.sysfs()}, {"err", cancelled.error()}});
  callbacks_.offer_again(intent.gpu);
}

void LeaseServer::settle(ConnectionId id, const OwnerRequest& request) {
  auto* ledger = callbacks_.ledger();
  if (ledger == nullptr)
    return refuse(id, Error(Errc::Busy, "the agent cannot open the ownership ledger yet"));
  const auto settled = ownership::settle_change(*ledger, request.intent, request.outcome);
  auto* connection = find(id);
  const bool ours = connection->stage != Stage::Idle && connection->intent == request.intent;
  if (ours) connection->stage = Stage::Idle;
  if (settled.ok()) {
    log_.info(kLeaseComponent, "a command has ended",
              {{"gpu", request.intent.gpu.sysfs()}, {"command", request.intent.what}});
    reply(id, {.kind = OwnerReply::Kind::Settled});
  } else {
    refuse(id, settled.error());
  }
  if (check_free(request.intent.gpu).ok()) callbacks_.offer_again(request.intent.gpu);
}

void LeaseServer::end_lease(Connection& connection) {
  if (connection.stage == Stage::Idle) return;
  if (connection.stage == Stage::Granted)
    log_.warning(
        kLeaseComponent,
        "a command ended without a result; the GPU stays withdrawn until that command is repeated",
        {{"gpu", connection.intent.gpu.sysfs()}, {"command", connection.intent.what}});
  connection.stage = Stage::Idle;
  connection.timer.cancel();
  callbacks_.offer_again(connection.intent.gpu);
}

void LeaseServer::refuse(ConnectionId id, const Error& why) {
  reply(id, {.kind = OwnerReply::Kind::Refused, .code = why.code(), .text = why.text()});
  auto* connection = find(id);
  if (connection != nullptr && connection->stage == Stage::Waiting) end_lease(*connection);
}

void LeaseServer::reply(ConnectionId id, const OwnerReply& reply) {
  auto* connection = find(id);
  if (connection == nullptr) return;
  if (!send(connection->socket.get(), to_json(reply)).ok()) close(id);
}

void LeaseServer::close(ConnectionId id) {
  auto found = connections_.extract(id);
  if (!found.empty()) end_lease(found.mapped());
}

}  // namespace gantry::owner_lease
