// SPDX-License-Identifier: Apache-2.0
// The agent's side of owner leases: takes requests on a socket, has the GPU withdrawn, waits until
// nothing holds it, writes the intent and grants a lease. Everything happens on the agent's loop,
// and nothing here blocks.
#pragma once

#include "base/core/clock.hpp"
#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "node/owner_lease/protocol.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gantry::owner_lease {

class LeaseServer {
 public:
  using UsageFound = std::function<void(Result<ownership::GpuUsage> usage)>;
  // What a command asks for.
  struct LeaseTarget {
    model::PciAddress gpu;
    std::vector<std::string> yielding;             // processes of these programs do not count
    std::optional<ownership::ChangedParts> parts;  // nullopt: the whole card
  };
  struct Callbacks {
    std::function<ownership::OwnershipStore*()> ledger;  // nullptr: it is not open
    // Takes the GPU, but for the parts that are kept, out of the offer, with this reason.
    std::function<void(const LeaseTarget& wanted, const std::string& reason)> withdraw;
    // The lease has ended: offers the GPU again if the ledger allows it.
    std::function<void(const model::PciAddress& gpu)> offer_again;
    // Finds out who uses what is wanted and calls `found` once, later, from the loop. If nothing
    // uses it, the agent itself has let go of the GPU when `found` is called.
    std::function<void(const LeaseTarget& wanted, UsageFound found)> find_usage;
  };
  struct Timing {
    std::chrono::milliseconds holders_pause{1'000};  // between two looks at the holders
    std::chrono::milliseconds withdraw_pause{200};   // until the kubelet has taken note
    std::chrono::milliseconds withdraw_limit{10'000};
  };

  LeaseServer(sys::Loop& loop, const Log& log, Callbacks callbacks);
  LeaseServer(sys::Loop& loop, const Log& log, Callbacks callbacks, const Timing& timing);
  LeaseServer(const LeaseServer&) = delete;
  LeaseServer& operator=(const LeaseServer&) = delete;

  // Takes over the path from an earlier agent.
  Status listen(const std::string& path);

 private:
  enum class Stage : std::uint8_t { Idle, Waiting, Granted };
  using ConnectionId = std::uint64_t;
  struct Connection {
    sys::UniqueFd socket;
    sys::Loop::Watch watch;
    sys::Loop::Timer timer;
    Stage stage = Stage::Idle;
    ownership::OwnerIntent intent;  // from Waiting on
    LeaseTarget wanted;
    Clock::time_point until;         // how long the command waits for holders
    Clock::time_point withdrawn_by;  // how long we wait for the kubelet
    std::string told;                // whom the command waits for
  };

  Connection* find(ConnectionId id);
  void accept_one();
  void hear(ConnectionId id);
  void lease(ConnectionId id, const OwnerRequest& request);
  void settle(ConnectionId id, const OwnerRequest& request);
  Status check_free(const model::PciAddress& gpu) const;
  void look(ConnectionId id);
  void on_usage(ConnectionId id, const Result<ownership::GpuUsage>& usage);
  void wait(ConnectionId id, std::chrono::milliseconds pause);
  void grant(ConnectionId id, const ownership::GpuUsage& usage);
  void take_back(const ownership::OwnerIntent& intent);
  void refuse(ConnectionId id, const Error& why);
  void reply(ConnectionId id, const OwnerReply& reply);
  void end_lease(Connection& connection);
  void close(ConnectionId id);

  sys::Loop& loop_;
  const Log& log_;
  Callbacks callbacks_;
  Timing timing_;
  sys::UniqueFd listener_;
  sys::Loop::Watch listening_;
  ConnectionId next_id_ = 1;
  std::map<ConnectionId, Connection> connections_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for answers that come too late
};

}  // namespace gantry::owner_lease
