// SPDX-License-Identifier: Apache-2.0
#include "node/agent/metrics_server.hpp"

#include "base/core/bytes.hpp"
#include "net/prometheus/metrics_writer.hpp"
#include "node/metrics/pages.hpp"

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

http::ServerOptions page_server_options(std::uint16_t port) {
  return {.address = {.host = "", .port = port},
          .workers = 0,
          .connections = 64,
          .connections_per_address = 16,
          .eviction = http::Eviction::Oldest,
          .waiting = 64,
          .streams = 0,
          .head_limit = 8 * kKiB,
          .body_limit = kKiB,
          .memory_limit = 5 * kMiB,
          .memory_per_address = 3 * kMiB,
          .send_buffer = 48 * kKiB,
          .receive_buffer = 16 * kKiB,
          .request_time = std::chrono::seconds(10),
          .drain_time = std::chrono::milliseconds(200)};
}

MetricsServer::MetricsServer(sys::Loop& loop, const Log& log, metrics::AgentCounters& counters,
                             Source source)
    : loop_(loop), log_(log), counters_(counters), source_(std::move(source)) {}

http::Response MetricsServer::metrics(Kind kind) {
  const auto before = std::chrono::steady_clock::now();
  const auto snapshot = source_.snapshot();
  http::Response page{
      .headers = {{"Content-Type", std::string(prometheus::kContentType)}},
      .body = kind == Kind::Gke ? metrics::gke_page(snapshot) : metrics::dcgm_page(snapshot)};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  counters_.scrape_seconds[kind == Kind::Gke ? "gke" : "dcgm"].add(took.count());
  return page;
}

std::vector<http::Route> MetricsServer::routes(Kind kind) {
  const auto page = [this](std::function<http::Response()> make) {
    return [this, make = std::move(make)](const http::Request&, const http::Reply& reply) {
      loop_.post([make, reply] {
        if (!reply.client_gone()) reply.send(make());
      });
    };
  };
  std::vector<http::Route> routes{
      {"GET", "/healthz", page([] { return words(200, "ok\n"); })},
      {"GET", "/readyz", page([this, kind] {
         return kind == Kind::Probes || source_.ready()
                    ? words(200, "ok\n")
                    : words(503, "not every resource is registered with the kubelet yet\n");
       })}};
  if (kind != Kind::Probes)
    routes.push_back({"GET", "/metrics", page([this, kind] { return metrics(kind); })});
  return routes;
}

void MetricsServer::serve(std::int64_t port, Kind kind) {
  auto server =
      http::Server::start(page_server_options(static_cast<std::uint16_t>(port)), routes(kind));
  if (!server.ok()) {
    log_.warning(kPagesComponent, "metrics are not served yet, trying again",
                 {{"port", port}, {"err", server.error()}});
    retries_[kind] = loop_.after(kRetry, [this, port, kind] { serve(port, kind); });
    return;
  }
  if (kind != Kind::Probes)
    log_.info(kPagesComponent, "serving metrics",
              {{"port", (*server)->port()}, {"path", "/metrics"}});
  servers_.push_back(*std::move(server));
}

}  // namespace gantry::agent
