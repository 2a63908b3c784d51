// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/convert.hpp"

#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

model::ContainerEdits one_gpu() {
  model::ContainerEdits edits;
  edits.nodes.push_back({.path = "/dev/nvidia0",
                         .host_path = "/dev/nvidia0",
                         .major = 195,
                         .minor = 0,
                         .mode = 0660,
                         .gid = 44});
  edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  edits.additional_gids = {44};
  return edits;
}

TEST(FromEdits, StoresPathsAndNoNumbers) {
  const auto converted = from_container_edits(one_gpu());
  EXPECT_THAT(converted.edits.device_nodes,
              ElementsAre(DeviceNode{.path = "/dev/nvidia0", .permissions = "rw"}));
  EXPECT_THAT(converted.edits.additional_gids, ElementsAre(44));
  EXPECT_THAT(converted.dropped, IsEmpty());
}

TEST(FromEdits, WritesNumbersWhenTheyAreUsedAtOnce) {
  const auto node = from_container_edits(one_gpu(), DeviceNumbers::Write).edits.device_nodes.at(0);
  EXPECT_EQ(node.major, 195);
  EXPECT_EQ(node.minor, 0);
  EXPECT_EQ(node.type, "c");
  EXPECT_EQ(node.gid, 44U);
}

TEST(FromEdits, SaysWhereTheNodeIsWhenItIsElsewhere) {
  auto edits = one_gpu();
  edits.nodes[0].host_path = "/tree/dev/nvidia0";
  EXPECT_EQ(from_container_edits(edits).edits.device_nodes.at(0).host_path, "/tree/dev/nvidia0");
}

TEST(FromEdits, NamesWhatCdiCannotSay) {
  auto edits = one_gpu();
  edits.files.push_back({.path = "/etc/ld.so.conf.d/00-gantry.conf"});
  edits.libraries.push_back({.name = "libcuda.so.1"});
  EXPECT_THAT(from_container_edits(edits).dropped,
              ElementsAre(HasSubstr("00-gantry.conf"), HasSubstr("ld.so.cache")));
  edits.hooks.push_back({.stage = "createContainer", .path = "/usr/bin/nvidia-cdi-hook"});
  EXPECT_THAT(from_container_edits(edits).dropped, ElementsAre(HasSubstr("00-gantry.conf")));
}

TEST(ToEdits, GivesBackWhatFromEditsTook) {
  auto edits = one_gpu();
  edits.mounts.push_back({.host_path = "/a", .container_path = "/b", .why = "x"});
  edits.hooks.push_back({.stage = "createContainer", .path = "/h", .args = {"h"}, .why = "x"});
  edits.nodes[0].why = "x";
  edits.nodes[0].type = "c";
  EXPECT_EQ(to_container_edits(from_container_edits(edits, DeviceNumbers::Write).edits, "x"),
            edits);
}

TEST(ToEdits, NotesWhatAContainerDoesNotGet) {
  Edits edits{.net_devices = {{"eth1", "eth0"}}, .intel_rdt = IntelRdt{}};
  EXPECT_THAT(to_container_edits(edits, "acme.org/nic=a").notes,
              ElementsAre(HasSubstr("eth1"), HasSubstr("intelRdt")));
}

TEST(Tidy, SaysNothingTwice) {
  Spec spec{.kind = "nvidia.com/gpu"};
  spec.edits.device_nodes = {{.path = "/dev/nvidiactl"}, {.path = "/dev/nvidiactl"}};
  spec.devices.push_back(
      {.name = "0",
       .edits = {.device_nodes = {{.path = "/dev/nvidia0"}, {.path = "/dev/nvidiactl"}}}});
  spec.devices.push_back({.name = "none", .edits = {.device_nodes = {{.path = "/dev/nvidiactl"}}}});
  remove_duplicates(spec);
  EXPECT_EQ(spec.edits.device_nodes.size(), 1U);
  EXPECT_THAT(spec.devices[0].edits.device_nodes, ElementsAre(DeviceNode{.path = "/dev/nvidia0"}));
  EXPECT_EQ(spec.devices[1].edits.device_nodes.size(), 1U) << "a device must not become empty";
}

}  // namespace
}  // namespace gantry::cdi
