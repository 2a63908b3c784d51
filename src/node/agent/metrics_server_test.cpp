// SPDX-License-Identifier: Apache-2.0
#include "node/agent/metrics_server.hpp"

#include "net/http/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// The manifests in deploy/ give the agent 128 MiB. Two ports must leave most of that to the agent.
TEST(MetricsServer, BothPortsTogetherTakeLessThanHalfOfTheManifestsMemory) {
  const auto bound = http::memory_bound(page_server_options(9400));
  EXPECT_LT(2 * bound, std::size_t{64} << 20);
  EXPECT_GT(2 * bound, std::size_t{40} << 20)
      << "the comment in metrics_server.hpp says 25 MiB each";
}

// A free port: the kernel gives it to a server that ends before the pages start.
std::uint16_t free_port() {
  return (*http::Server::start({.address = {"127.0.0.1", 0}, .workers = 0}, {}))->port();
}

TEST(MetricsServer, AreMadeInTheAgentsLoop) {
  const auto loop = *sys::Loop::make();
  const Log log(LogForm::Klog);
  metrics::AgentCounters counters;
  std::atomic<std::thread::id> made_in{};
  const auto port = free_port();
  MetricsServer pages(*loop, log, counters,
                      {.snapshot =
                           [&] {
                             made_in = std::this_thread::get_id();
                             return metrics::Snapshot{};
                           },
                       .ready = [] { return false; }});
  pages.serve_dcgm(port);
  http::Client client({.host = "127.0.0.1", .port = port, .secure = false});
  EXPECT_FALSE(client.send({.target = "/healthz"}, 300ms).ok())
      << "a loop that hangs must not look well";

  std::thread agent([&] { EXPECT_TRUE(loop->run().ok()); });
  const auto ask = [&](const char* target) { return client.send({.target = target}, 60s); };
  EXPECT_EQ(ask("/healthz")->body, "ok\n");
  EXPECT_EQ(ask("/readyz")->status, 503);
  EXPECT_EQ(ask("/metrics")->status, 200);
  EXPECT_EQ(made_in.load(), agent.get_id());
  EXPECT_THAT(ask("/")->body, HasSubstr("/metrics"));
  EXPECT_EQ(client.send({.method = "POST", .target = "/metrics", .body = "x"}, 60s)->status, 405);
  loop->stop();
  agent.join();
}

}  // namespace
}  // namespace gantry::agent
