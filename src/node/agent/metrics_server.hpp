// SPDX-License-Identifier: Apache-2.0
// Serves the agent's pages: GKE's metrics on one port and dcgm-exporter's metrics on another, both
// with our own counters, and /healthz and /readyz on each port.
#pragma once

#include "base/sys/loop.hpp"
#include "net/http/server.hpp"
#include "node/agent/log.hpp"
#include "node/metrics/snapshot.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gantry::agent {

class MetricsServer {
 public:
  struct Source {
    std::function<metrics::Snapshot()> snapshot;
    std::function<bool()> ready;  // the kubelet has registered our devices
  };
  MetricsServer(sys::Loop& loop, const Log& log, metrics::AgentCounters& counters, Source source);

  // If the port is in use, tries again: the previous agent may still be exiting.
  void serve_gke(std::int64_t port) { serve(port, Kind::Gke); }
  void serve_dcgm(std::int64_t port) { serve(port, Kind::Dcgm); }
  void serve_probes(std::int64_t port) { serve(port, Kind::Probes); }  // always healthy, no metrics

 private:
  enum class Kind : std::uint8_t { Gke, Dcgm, Probes };
  void serve(std::int64_t port, Kind kind);
  http::Response metrics(Kind kind);

  sys::Loop& loop_;
  const Log& log_;
  metrics::AgentCounters& counters_;
  Source source_;
  std::vector<std::unique_ptr<http::Server>> servers_;
  std::map<Kind, sys::Loop::Timer> retries_;
};

}  // namespace gantry::agent
