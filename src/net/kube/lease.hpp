// SPDX-License-Identifier: Apache-2.0
// Caller of several replicas leads: a coordination.k8s.io/v1 Lease, with the fields and the manner
// of client-go, so that kubectl and other tools read it. Others' time stamps are never compared
// with our clock: a lease has ended when we have seen no change of it for its whole duration.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gantry::kube {

// Counts on while the machine sleeps, which steady_clock does not: a leader that was asleep has
// lost.
using LeaseTime = std::chrono::nanoseconds;
LeaseTime lease_now();

struct LeaseOptions {
  std::string name_space = "kube-system";
  std::string name = "gantry-scheduler";
  std::string identity;  // of this replica, different from every other's; "" = host and random
  std::chrono::seconds duration{15};
  std::chrono::seconds renew{10};  // not renewed for so long: we lead no more
  std::chrono::seconds retry{2};
};

// Where the Lease is kept: the API server, or memory in tests.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;
  virtual Result<json::Document> read() = 0;                           // NotFound
  virtual Result<json::Document> create(const std::string& text) = 0;  // Exists
  // Exists where its resourceVersion is not the newest.
  virtual Result<json::Document> replace(const std::string& text) = 0;
};

// The protocol, without a thread: step() every `retry`. One thread steps; valid_for() and holder()
// may be asked by any.
class LeaseCandidate {
 public:
  using Clock = std::function<LeaseTime()>;
  LeaseCandidate(LeaseOptions options, LeaseStore& store, Clock clock = lease_now);
  ~LeaseCandidate();

  // Takes, renews or looks. An error is one of the API; who leads is said by valid_for().
  Status step();
  // Gives it up, so that another need not wait for its end. Nothing that needs the lease may be
  // under way.
  Status release();

  // How long nobody else can lead, counted from before the request that renewed it was sent; 0 when
  // we do not lead. What is sent with a timeout shorter than this comes in time or not at all.
  std::chrono::milliseconds valid_for() const;
  std::string holder() const;  // as last seen; "" = nobody
  // How often we have taken it: another number means that somebody else may have led in between,
  // however short that was. Asked after valid_for(), it is that of the same time or of a later one.
  std::uint64_t term() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A candidate with a thread, on the API server.
class LeaderElector {
 public:
  // Called in the elector's thread when it changes. `holder`: who leads now, "" = nobody known.
  using Changed = std::function<void(bool leading, const std::string& holder)>;
  using OnError = std::function<void(const Error&)>;
  LeaderElector(ClientConfig access, LeaseOptions options, Changed changed = {},
                OnError on_error = {});
  ~LeaderElector();  // stop()
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  // Leads no more from here on, gives the lease up where it has it, waits for the thread. The
  // caller has ended what needs it.
  void stop();

  bool leading() const { return valid_for().count() > 0; }
  std::chrono::milliseconds valid_for() const;
  std::string holder() const;
  std::uint64_t term() const;  // as LeaseCandidate's
  const std::string& identity() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::kube
