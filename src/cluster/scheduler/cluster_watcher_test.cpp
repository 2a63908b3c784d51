// SPDX-License-Identifier: Apache-2.0
// The watches against an API server in this process.
#include "cluster/scheduler/cluster_watcher.hpp"

#include "base/core/text.hpp"
#include "cluster/scheduler/objects_for_test.hpp"
#include "support/eventually.hpp"
#include "support/fake_api_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

namespace gantry::scheduler {
namespace {

using test::eventually;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kMaps = "/api/v1/namespaces/kube-system/configmaps";

class ClusterWatcherTest : public ::testing::Test {
 protected:
  ClusterWatcherTest() { put_node(); }
  void put_node() {
    server.put("/api/v1/nodes/n1", std::string(node_object("n1", {80, 80}).root().raw()));
  }
  void put_map(const std::string& name, const std::string& gpus) {
    server.put(fmt::format("{}/{}", kMaps, name),
               fmt::format(R"({{"data":{{"gpus":"{}"}}}})", gpus));
  }
  ClusterWatcher follow() {
    kube::ClientConfig access;
    access.server = *http::parse_url(server.url());
    const auto sink = [this](std::string_view line) {
      const std::lock_guard hold(mutex);
      said.emplace_back(line);
    };
    return {access, cache, Log(LogForm::Klog, 2, sink)};
  }
  std::size_t times(const std::string& part) {
    const std::lock_guard hold(mutex);
    return static_cast<std::size_t>(std::count_if(
        said.begin(), said.end(), [&](const auto& text) { return contains(text, part); }));
  }
  bool marked_unhealthy(bool first, bool second) {
    return eventually([&] {
      const auto cards = cache.view("n1").cards;
      return cards.size() == 2 && cards[0].facts.marked_unhealthy == first &&
             cards[1].facts.marked_unhealthy == second;
    });
  }
  // Requests for ConfigMaps are not for us.
  void refuse_maps() {
    server.override_answers([](const http::Request& request) -> std::unique_ptr<http::Response> {
      if (!contains(request.target, "/configmaps")) return nullptr;
      return std::make_unique<http::Response>(http::Response{
          .status = 403,
          .headers = {{"Content-Type", "application/json"}},
          .body = R"({"kind":"Status","code":403,"message":"configmaps is forbidden"})"});
    });
  }
  std::size_t asked_for_maps() {
    const auto all = server.requests();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const auto& text) { return contains(text, "/configmaps"); }));
  }

  test::FakeApiServer server;
  ClusterCache cache;
  std::mutex mutex;
  std::vector<std::string> said;
};

TEST_F(ClusterWatcherTest, AConfigMapBarsCardsWhileItNamesThem) {
  put_map("coredns", "0");
  put_map("unhealthy-gpu-n1", "1");
  auto feed = follow();
  ASSERT_TRUE(eventually([&] { return feed.missing().empty(); }));
  EXPECT_TRUE(marked_unhealthy(false, true));
  put_map("unhealthy-gpu-n1", "0,1");
  EXPECT_TRUE(marked_unhealthy(true, true));
  put_map("unhealthy-gpu-n1", "0,one");
  EXPECT_TRUE(marked_unhealthy(true, false));
  EXPECT_TRUE(eventually([&] { return times(R"(\"one\")") == 1; }));
  server.remove(std::string(kMaps) + "/unhealthy-gpu-n1");
  EXPECT_TRUE(marked_unhealthy(false, false));
}

TEST_F(ClusterWatcherTest, OnlyConfigMapsThatBarSomethingAreKept) {
  put_map("coredns", "0");
  put_map("unhealthy-gpu-n1", "1");
  auto feed = follow();
  ASSERT_TRUE(eventually([&] { return feed.missing().empty(); }));
  const auto kinds = feed.kinds();
  const auto maps = std::find_if(kinds.begin(), kinds.end(),
                                 [](const auto& kind) { return kind.name == "configmaps"; });
  ASSERT_NE(maps, kinds.end());
  EXPECT_EQ(maps->objects, 1U);
}

TEST_F(ClusterWatcherTest, WithoutTheRightToReadConfigMapsItGoesOnAndSaysSoOnce) {
  refuse_maps();
  auto feed = follow();
  ASSERT_TRUE(eventually([&] { return feed.missing().empty(); }));
  ASSERT_TRUE(eventually([&] { return asked_for_maps() > 1; }));
  EXPECT_EQ(times("forbidden"), 1U);
  {
    const std::lock_guard hold(mutex);
    EXPECT_THAT(said.front(), AllOf(HasSubstr("get, list and watch on configmaps in kube-system"),
                                    HasSubstr("extender-rbac.yaml")));
  }
  put_map("unhealthy-gpu-n1", "1");
  server.override_answers({});
  EXPECT_TRUE(marked_unhealthy(false, true)) << "the right was given later";
}

TEST_F(ClusterWatcherTest, WithoutTheRightToReadAnythingElseItIsNotReady) {
  server.override_answers([](const http::Request& request) -> std::unique_ptr<http::Response> {
    if (!contains(request.target, "/resourcequotas")) return nullptr;
    return std::make_unique<http::Response>(http::Response{.status = 403});
  });
  auto feed = follow();
  ASSERT_TRUE(eventually([&] { return feed.missing() == "resourcequotas"; }));
}

}  // namespace
}  // namespace gantry::scheduler
