// SPDX-License-Identifier: Apache-2.0
#include "container/oci/state.hpp"

#include <gtest/gtest.h>

namespace gantry::oci {
namespace {

TEST(State, IsReadAsRuncAndCrunWriteIt) {
  const auto state = parse_state(
      R"({"ociVersion":"1.0","id":"c1","status":"creating","pid":42,"bundle":"/b","root":"/r"})");
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(*state, (State{"c1", "creating", 42, "/b", "/r"}));
}

TEST(State, OldRuntimesSayBundlePath) {
  EXPECT_EQ(parse_state(R"({"pid":1,"bundlePath":"/b"})")->bundle, "/b");
}

TEST(State, WithoutABundleOrWithoutSenseIsRefused) {
  EXPECT_EQ(parse_state(R"({"pid":1})").error().code(), Errc::Invalid);
  EXPECT_EQ(parse_state("no").error().code(), Errc::Corrupt);
  EXPECT_EQ(parse_state(std::string(kMaxStateBytes + 1, ' ')).error().code(), Errc::Corrupt);
}

TEST(State, TheRootIsRelativeToTheBundle) {
  EXPECT_EQ(root_path("/b", "rootfs"), "/b/rootfs");
  EXPECT_EQ(root_path("/b", "/r"), "/r");
}

}  // namespace
}  // namespace gantry::oci
