// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/version.hpp"

#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::HasSubstr;

Spec plain() {
  return {.kind = "acme.org/nic",
          .devices = {{.name = "a", .edits = {.device_nodes = {{.path = "/dev/a"}}}}}};
}

template <class Change>
std::string lowest_after(Change change) {
  auto spec = plain();
  change(spec);
  return to_string(lowest_version(spec));
}

TEST(Version, IsTheLowestThatCanSayTheContent) {
  EXPECT_EQ(lowest_after([](Spec&) {}), "0.3.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.edits.mounts = {{"/a", "/b", {}, "bind"}}; }), "0.4.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.devices[0].name = "0"; }), "0.5.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.devices[0].edits.device_nodes[0].host_path = "/x"; }),
            "0.5.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.annotations["a"] = "b"; }), "0.6.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.devices[0].annotations["a"] = "b"; }), "0.6.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.kind = "acme.org/nic.fast"; }), "0.6.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.edits.additional_gids = {44}; }), "0.7.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.edits.intel_rdt = IntelRdt{.clos_id = "x"}; }), "0.7.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.edits.net_devices = {{"eth1", "eth0"}}; }), "1.1.0");
  EXPECT_EQ(lowest_after([](Spec& s) { s.edits.intel_rdt = IntelRdt{.enable_monitoring = true}; }),
            "1.1.0");
}

TEST(Version, IsReadInEachSpelling) {
  EXPECT_EQ(*parse_version("0.5.0"), kV05);
  EXPECT_EQ(*parse_version("v0.5.0"), kV05);
  EXPECT_EQ(*parse_version("0.5"), kV05);
  EXPECT_EQ(*parse_version("1.1.0"), kV11);
}

TEST(Version, ThatDoesNotExistIsRefused) {
  for (const char* text : {"", "v", "0.2.0", "0.9.0", "2.0.0", "0.5.1", "0.5.", "5"}) {
    const auto version = parse_version(text);
    ASSERT_FALSE(version.ok()) << text;
    EXPECT_THAT(version.error().text(), HasSubstr("not a version of CDI"));
  }
}

}  // namespace
}  // namespace gantry::cdi
