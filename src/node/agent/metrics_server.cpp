// SPDX-License-Identifier: Apache-2.0
#include "node/agent/metrics_server.hpp"

#include "node/metrics/pages.hpp"

#include <fmt/format.h>

namespace gantry::agent {
namespace {

constexpr std::string_view kPagesComponent = "metrics";
constexpr std::chrono::seconds kRetry{2};

http::Response words(int status, std::string text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(text)};
}

}  // namespace

MetricsServer::MetricsServer(sys::Loop& loop, const Log& log, metrics::AgentCounters& counters,
                             Source source)
    : loop_(loop), log_(log), counters_(counters), source_(std::move(source)) {}

http::Response MetricsServer::metrics(Kind kind) {
  const auto before = std::chrono::steady_clock::now();
  const auto snapshot = source_.snapshot();
  http::Response page{
      .headers = {{"Content-Type", std::string(metrics::kContentType)}},
      .body = kind == Kind::Gke ? metrics::gke_page(snapshot) : metrics::dcgm_page(snapshot)};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  counters_.scrape_seconds[kind == Kind::Gke ? "gke" : "dcgm"].add(took.count());
  return page;
}

void MetricsServer::serve(std::int64_t port, Kind kind) {
  auto server = http::Server::listen(loop_, {.host = "", .port = static_cast<std::uint16_t>(port)});
  if (!server.ok()) {
    log_.warning(kPagesComponent, fmt::format("metrics are not served on port {} yet: {}", port,
                                              server.error().text()));
    retries_[kind] = loop_.after(kRetry, [this, port, kind] { serve(port, kind); });
    return;
  }
  if (kind != Kind::Probes) (*server)->page("/metrics", [this, kind] { return metrics(kind); });
  (*server)->page("/healthz", [] { return words(200, "ok\n"); });
  (*server)->page("/readyz", [this, kind] {
    return kind == Kind::Probes || source_.ready()
               ? words(200, "ok\n")
               : words(503, "not every resource is registered with the kubelet yet\n");
  });
  if (kind != Kind::Probes)
    log_.info(kPagesComponent,
              fmt::format("serving metrics on port {}, path /metrics", (*server)->port()));
  servers_.push_back(*std::move(server));
}

}  // namespace gantry::agent
