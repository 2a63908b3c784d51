// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/find_bundle.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using ::testing::HasSubstr;

class FindBundle : public ::testing::Test {
 protected:
  Result<FoundBundle> find(std::string_view name) const { return find_bundle(tree_.host(), name); }
  test::Tree tree_;
};

TEST_F(FindBundle, ByItsPath) {
  tree_.file("b/config.json", "{}");
  EXPECT_EQ(*find("/b"), (FoundBundle{"", "/b"}));
  EXPECT_EQ(*find("/b/config.json"), (FoundBundle{"", "/b"}));
  EXPECT_EQ(find("/none").error().code(), Errc::NotFound);
}

TEST_F(FindBundle, ByWhatRuncAndCrunWroteDown) {
  tree_.file("run/runc/one/state.json", R"({"config":{"labels":["x=1","bundle=/b/one"]}})");
  tree_.file("run/crun/two/status", R"({"bundle":"/b/two"})");
  tree_.file("run/docker/runtime-runc/moby/three/state.json",
             R"({"config":{"labels":["bundle=/b/three"]}})");
  EXPECT_EQ(*find("one"), (FoundBundle{"one", "/b/one"}));
  EXPECT_EQ(*find("two"), (FoundBundle{"two", "/b/two"}));
  EXPECT_EQ(*find("three"), (FoundBundle{"three", "/b/three"}));
}

TEST_F(FindBundle, ByTheFirstCharactersWhereTheyAreUnique) {
  tree_.file("run/containerd/io.containerd.runtime.v2.task/k8s.io/abc1/config.json", "{}");
  tree_.file("run/containerd/io.containerd.runtime.v2.task/moby/abd2/config.json", "{}");
  EXPECT_EQ(find("abc")->id, "abc1");
  const auto both = find("ab");
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().code(), Errc::Invalid);
  EXPECT_THAT(both.error().text(), HasSubstr("abc1, abd2"));
}

TEST_F(FindBundle, ByTheNameInDockerAndPodman) {
  tree_.file("var/lib/docker/containers/d1/config.v2.json", R"({"Name":"/web"})");
  tree_.file("run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby/d1/config.json",
             "{}");
  tree_.file("var/lib/containers/storage/overlay-containers/containers.json",
             R"([{"id":"p1","names":["job"]}])");
  tree_.file("var/lib/containers/storage/overlay-containers/p1/userdata/config.json", "{}");
  EXPECT_EQ(find("web")->id, "d1");
  EXPECT_EQ(find("job")->bundle, "/var/lib/containers/storage/overlay-containers/p1/userdata");
}

TEST_F(FindBundle, NowhereSaysWhereItLooked) {
  const auto none = find("nobody");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Errc::NotFound);
  EXPECT_THAT(none.error().text(), HasSubstr("/run/runc"));
}

TEST_F(FindBundle, DamagedStateIsPassedOver) {
  tree_.file("run/runc/one/state.json", "{");
  tree_.file("var/lib/containers/storage/overlay-containers/containers.json", "[{]");
  EXPECT_EQ(find("one").error().code(), Errc::NotFound);
}

}  // namespace
}  // namespace gantry::runtime
