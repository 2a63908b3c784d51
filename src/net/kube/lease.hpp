// SPDX-License-Identifier: Apache-2.0
// Leader election between replicas with a coordination.k8s.io/v1 Lease. It uses the fields and
// rules of client-go, so kubectl and other tools can read it. Time stamps of other replicas are
// never compared with our clock: a lease has expired if we saw no change of it for its whole
// duration.
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

// This clock also counts while the machine is suspended, which steady_clock does not: a leader that
// was suspended has lost the lease.
using LeaseTime = std::chrono::nanoseconds;
LeaseTime lease_now();

struct LeaseOptions {
  std::string name_space = "kube-system";
  std::string name = "gantry-scheduler";
  std::string identity;  // unique name of this replica; "" = host name and a random part
  std::chrono::seconds duration{15};
  std::chrono::seconds renew{10};  // if it was not renewed for this time, we are not the leader
  std::chrono::seconds retry{2};
};

// Stores the Lease: the API server, or memory in tests.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;
  virtual Result<json::Document> read() = 0;                           // NotFound
  virtual Result<json::Document> create(const std::string& text) = 0;  // Exists
  // Exists if its resourceVersion is not the newest.
  virtual Result<json::Document> replace(const std::string& text) = 0;
};

// The protocol, without a thread. Call step() every `retry`, from one thread; any thread may call
// valid_for() and holder().
class LeaseCandidate {
 public:
  using Clock = std::function<LeaseTime()>;
  LeaseCandidate(LeaseOptions options, LeaseStore& store, Clock clock = lease_now);
  ~LeaseCandidate();

  // Acquires, renews or reads the lease. An error is an error of the API; valid_for() says whether
  // we lead.
  Status step();
  // Releases the lease so that another replica need not wait for its expiry. No work that needs the
  // lease may be under way.
  Status release();

  // The time during which no other replica can lead, counted from before the renewing request was
  // sent; 0 if we do not lead. A request with a shorter timeout arrives in time or not at all.
  std::chrono::milliseconds valid_for() const;
  std::string holder() const;  // as last seen; "" = no holder
  // Counts how often we acquired the lease. If it changed, another replica may have led in between.
  // If called after valid_for(), it is the term of that moment or a later one.
  std::uint64_t term() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A candidate with a thread, on the API server.
class LeaderElector {
 public:
  // Called in the elector's thread when it changes. `holder`: the current leader, "" = unknown.
  using OnChange = std::function<void(bool leading, const std::string& holder)>;
  using OnError = std::function<void(const Error&)>;
  LeaderElector(ClientConfig access, LeaseOptions options, OnChange changed = {},
                OnError on_error = {});
  ~LeaderElector();  // stop()
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  // Stops leading, releases the lease if it holds it, and waits for the thread. The caller must
  // have ended all work that needs the lease.
  void stop();

  bool leading() const { return valid_for().count() > 0; }
  std::chrono::milliseconds valid_for() const;
  std::string holder() const;
  std::uint64_t term() const;  // see LeaseCandidate
  const std::string& identity() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::kube
