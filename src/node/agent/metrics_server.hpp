// SPDX-License-Identifier: Apache-2.0
// The agent's pages: GKE's gauges on one port, dcgm-exporter's names on another, both with our own
// counters; /healthz and /readyz on each. The pages are made in the agent's loop, where its state
// is, so a loop that hangs answers no probe.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/loop.hpp"
#include "net/http/server.hpp"
#include "node/metrics/snapshot.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gantry::agent {

// Bounds for one port: small, because the manifests give the agent 128 MiB and every pod of the
// cluster can reach its ports. By http::memory_bound() a port takes 25 MiB at most:
//    64 connections of 207 KiB: 48 KiB input, 29 KiB request, 2 KiB objects, 128 KiB socket buffers
//  + 64 unanswered requests of 31 KiB whose clients have gone
//  + twice 5 MiB of pages that the clients have not read
http::ServerOptions page_server_options(std::uint16_t port);

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
  std::vector<http::Route> routes(Kind kind);
  http::Response metrics(Kind kind);

  sys::Loop& loop_;
  const Log& log_;
  metrics::AgentCounters& counters_;
  Source source_;
  std::vector<std::unique_ptr<http::Server>> servers_;
  std::map<Kind, sys::Loop::Timer> retries_;
};

}  // namespace gantry::agent
