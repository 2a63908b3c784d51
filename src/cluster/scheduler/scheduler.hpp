// SPDX-License-Identifier: Apache-2.0
// `gantry scheduler`: the extender, its watches, its lease and its pages, in one process.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "cluster/admission/admission.hpp"
#include "cluster/placement/cluster.hpp"
#include "cluster/webhook/rotator.hpp"
#include "net/http/server.hpp"
#include "net/kube/client_config.hpp"
#include "net/kube/lease.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace gantry::scheduler {

enum class Election : std::uint8_t { Off, On };

struct WebhookOptions {
  http::Address address{.host = "", .port = 8443};
  admission::Policy policy;
  // A certificate from elsewhere; empty: our own, renewed automatically.
  http::ServerIdentity given;
  webhook::RotationOptions certificate;
};

struct SchedulerOptions {
  kube::ClientConfig access;
  http::Address address{.host = "", .port = 12345};
  unsigned threads = 8;
  placement::Options place;
  Election election = Election::On;
  kube::LeaseOptions lease;
  std::optional<WebhookOptions> webhook;
  std::string own_address;  // where other replicas reach this one; "": they cannot
};

class Scheduler {
 public:
  // Listens at once, and is ready when the state of the cluster has been read.
  static Result<std::unique_ptr<Scheduler>> start(SchedulerOptions options, Log log);
  ~Scheduler();  // calls stop()
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  std::uint16_t port() const;

  // Finishes Bindings in progress, releases the lease and stops.
  void stop();

 private:
  class Impl;
  explicit Scheduler(std::unique_ptr<Impl> work);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::scheduler
