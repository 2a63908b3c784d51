// SPDX-License-Identifier: Apache-2.0
// Recorded lists of objects in, golden tables out.
#include "cluster/scheduler/cluster_snapshot.hpp"

#include "base/core/text.hpp"
#include "cluster/report/report.hpp"
#include "support/parsed_json.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace gantry::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string golden(const std::string& name) {
  std::ifstream file(test::source_dir() + "/tests/golden/inspect/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

// An API server that has these lists.
class Recorded {
 public:
  explicit Recorded(const std::string& name) : lists_(test::parsed(golden(name + ".json"))) {}

  kube::GetPage get() {
    return [this](const std::string& path) -> Result<json::Document> {
      asked.push_back(path);
      if (path.starts_with("/api/v1/nodes?")) return copy(lists_["nodes"]);
      if (path.starts_with("/api/v1/pods?")) return copy(lists_["pods"]);
      for (const auto node : lists_["nodes"]["items"]) {
        if (path == kube::node_path(node["metadata"]["name"].string().value_or("")))
          return copy(node);
      }
      return Error(Errc::NotFound, "nodes \"x\" not found");
    };
  }
  std::vector<std::string> asked;

 private:
  static json::Document copy(json::Value value) { return test::parsed(std::string(value.raw())); }
  json::Document lists_;
};

std::vector<placement::NodeView> snapshot_views(const std::string& name) {
  Recorded cluster(name);
  const auto survey = scheduler::read_cluster(cluster.get());
  EXPECT_TRUE(survey.ok());
  EXPECT_THAT(survey->notes, IsEmpty());
  return survey->views();
}

TEST(ClusterSnapshot, AClusterOfGpusharesOwnIsShownAsGpushareShowsIt) {
  const auto views = snapshot_views("gpushare");
  EXPECT_EQ(report::summary(views), golden("gpushare-summary.txt"));
  EXPECT_EQ(report::details(views), golden("gpushare-details.txt"));
}

TEST(ClusterSnapshot, CardsOfTwoSizesAndPodsOfBothContracts) {
  const auto views = snapshot_views("gantry");
  EXPECT_EQ(report::summary(views), golden("gantry-summary.txt"));
  EXPECT_EQ(report::details(views), golden("gantry-details.txt"));
  EXPECT_EQ(report::wide(views), golden("gantry-wide.txt"));
  EXPECT_EQ(report::bars(views, report::ColorMode::Plain), golden("gantry-bars.txt"));
  EXPECT_EQ(report::to_json(views), golden("gantry-inspect.json"));
}

TEST(ClusterSnapshot, OneNodeIsAskedForByItsName) {
  Recorded cluster("gpushare");
  const auto survey = scheduler::read_cluster(cluster.get(), "node-b");
  ASSERT_TRUE(survey.ok());
  EXPECT_EQ(survey->views().size(), 1U);
  EXPECT_THAT(cluster.asked,
              ElementsAre("/api/v1/nodes/node-b",
                          "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-b&limit=250",
                          "/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-node-b"));
  EXPECT_EQ(scheduler::read_cluster(cluster.get(), "node-c").error().code(), Errc::NotFound);
}

TEST(ClusterSnapshot, WithoutTheRightsItIsSaidWhichAreMissing) {
  const auto survey = scheduler::read_cluster([](const std::string&) -> Result<json::Document> {
    return Error(Errc::Denied, "nodes is forbidden");
  });
  ASSERT_FALSE(survey.ok());
  EXPECT_EQ(survey.error().code(), Errc::Denied);
  EXPECT_THAT(survey.error().text(), HasSubstr("list nodes and pods"));
}

TEST(ClusterSnapshot, AnObjectThatCannotBeReadIsLeftOutAndNamed) {
  const auto survey =
      scheduler::read_cluster([](const std::string& path) -> Result<json::Document> {
        if (contains(path, "/pods")) return test::parsed("{}");
        return test::parsed(R"({"items":[{"metadata":{"name":"odd","annotations":{
      "gantry.dev/shared-gpus":"?"}}}]})");
      });
  ASSERT_TRUE(survey.ok());
  EXPECT_THAT(survey->notes, ElementsAre(HasSubstr("node odd: ")));
  EXPECT_THAT(survey->views(), IsEmpty());
}

TEST(ClusterSnapshot, ABarredCardIsShownAsUnhealthy) {
  Recorded cluster("gpushare");
  const auto get = [&](const std::string& path) -> Result<json::Document> {
    const std::string map = R"({"metadata":{"name":"unhealthy-gpu-node-b"},"data":{"gpus":"0,?"}})";
    if (path.ends_with("/unhealthy-gpu-node-b")) return test::parsed(map);
    if (contains(path, "/configmaps?")) return test::parsed(R"({"items":[)" + map + "]}");
    return cluster.get()(path);
  };
  for (const auto* node : {"", "node-b"}) {
    const auto survey = scheduler::read_cluster(get, node);
    ASSERT_TRUE(survey.ok());
    EXPECT_TRUE(survey->cache->view("node-b").cards.at(0).facts.marked_unhealthy);
    EXPECT_THAT(survey->notes, ElementsAre(HasSubstr("\"?\"")));
    EXPECT_THAT(report::to_json(survey->views()), HasSubstr("\"healthy\":false"));
  }
}

TEST(ClusterSnapshot, NodesAreShownToWhoWantsToSeeThemToo) {
  Recorded cluster("gpushare");
  std::vector<std::string> seen;
  const auto survey = scheduler::read_cluster(cluster.get(), "", [&](json::Value node) {
    seen.push_back(node["metadata"]["name"].string().value_or(""));
  });
  ASSERT_TRUE(survey.ok());
  EXPECT_THAT(seen, ElementsAre("node-a", "node-b", "master"));
}

}  // namespace
}  // namespace gantry::scheduler
