// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/transform.hpp"

#include "container/cdi/validate.hpp"

#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Spec sample() {
  Spec spec{.kind = "nvidia.com/gpu"};
  spec.devices.push_back({.name = "0", .edits = {.device_nodes = {{.path = "/root/dev/nvidia0"}}}});
  spec.edits.mounts = {{"/root/usr/lib/libcuda.so", "/usr/lib/libcuda.so", {}, ""},
                       {"/rooted/x", "/x", {}, ""}};
  spec.edits.hooks = {
      {"createContainer", "/root/bin/hook", {"hook", "--link", "/usr/a::/usr/b"}, {}, {}},
      {"createRuntime", "/root/bin/hook", {"hook", "/root/a::../b"}, {}, {}}};
  return spec;
}

TEST(TransformRoot, OfTheHostLeavesTheContainerAlone) {
  auto spec = sample();
  transform_root(spec, {.from = "/root", .to = "/host"});
  EXPECT_EQ(spec.devices[0].edits.device_nodes[0].path, "/root/dev/nvidia0");
  EXPECT_EQ(spec.devices[0].edits.device_nodes[0].host_path, "/host/dev/nvidia0");
  EXPECT_EQ(spec.edits.mounts[0].host_path, "/host/usr/lib/libcuda.so");
  EXPECT_EQ(spec.edits.mounts[0].container_path, "/usr/lib/libcuda.so");
  EXPECT_EQ(spec.edits.mounts[1].host_path, "/rooted/x") << "not at a component boundary";
  EXPECT_EQ(spec.edits.hooks[0].path, "/host/bin/hook");
  EXPECT_THAT(spec.edits.hooks[0].args, ElementsAre("hook", "--link", "/usr/a::/usr/b"));
  EXPECT_THAT(spec.edits.hooks[1].args, ElementsAre("hook", "/host/a::../b"));
}

TEST(TransformRoot, OfTheContainerLeavesTheHostAlone) {
  auto spec = sample();
  transform_root(spec, {.from = "/usr", .to = "/opt/", .side = PathSide::Container});
  EXPECT_EQ(spec.edits.mounts[0].host_path, "/root/usr/lib/libcuda.so");
  EXPECT_EQ(spec.edits.mounts[0].container_path, "/opt/lib/libcuda.so");
  EXPECT_THAT(spec.edits.hooks[0].args, ElementsAre("hook", "--link", "/opt/a::/opt/b"));
  EXPECT_THAT(spec.edits.hooks[1].args, ElementsAre("hook", "/root/a::../b"));
}

TEST(TransformRoot, MayTakeAPrefixAwayOrPutOneInFront) {
  auto spec = sample();
  transform_root(spec, {.from = "/root", .to = "/"});
  EXPECT_EQ(spec.devices[0].edits.device_nodes[0].host_path, "/dev/nvidia0");
  EXPECT_EQ(spec.edits.mounts[0].host_path, "/usr/lib/libcuda.so");
  transform_root(spec, {.from = "/", .to = "/driver"});
  EXPECT_EQ(spec.edits.mounts[0].host_path, "/driver/usr/lib/libcuda.so");
}

TEST(TransformRoot, ThereAndBackChangesNothing) {
  auto spec = sample();
  transform_root(spec, {.from = "/root", .to = "/host"});
  transform_root(spec, {.from = "/host", .to = "/root"});
  EXPECT_EQ(spec, sample());
}

Spec rich() {
  Spec spec{.version = "1.1.0", .kind = "nvidia.com/gpu", .annotations = {{"a", "b"}}};
  spec.devices.push_back({.name = "0",
                          .edits = {.device_nodes = {{.path = "/dev/nvidia0"}},
                                    .net_devices = {{"eth1", "eth0"}},
                                    .mounts = {{"/a", "/b", {}, "bind"}},
                                    .additional_gids = {44}}});
  spec.devices.push_back(spec.devices[0]);
  spec.devices[1].name = "all";
  return spec;
}

TEST(ConvertTo, AnyVersionIsValidAfterwards) {
  for (const char* text : {"0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "1.0", "1.1"}) {
    const auto version = *parse_version(text);
    const auto converted = downgrade(rich(), version);
    ASSERT_TRUE(converted.ok()) << converted.error().text();
    EXPECT_EQ(converted->spec.version, to_string(version));
    EXPECT_THAT(validate(converted->spec), IsEmpty()) << text;
  }
}

TEST(ConvertTo, SaysAWordOnEachThingDropped) {
  EXPECT_THAT(downgrade(rich(), kV11)->words, IsEmpty());
  EXPECT_THAT(downgrade(rich(), kV07)->words, ElementsAre(HasSubstr("netDevices")));
  EXPECT_THAT(downgrade(rich(), kV03)->words,
              ElementsAre(HasSubstr("annotations"), HasSubstr("0 is gpu0"), HasSubstr("netDevices"),
                          HasSubstr("group 44"), HasSubstr("type is dropped")));
}

TEST(ConvertTo, WillNotGiveAContainerAnotherNode) {
  auto spec = rich();
  spec.devices[0].edits.device_nodes[0].host_path = "/tree/dev/nvidia0";
  EXPECT_TRUE(downgrade(spec, kV05).ok());
  const auto converted = downgrade(spec, kV04);
  ASSERT_FALSE(converted.ok());
  EXPECT_EQ(converted.error().code(), Errc::Unsupported);
  EXPECT_THAT(converted.error().text(), HasSubstr("/dev/nvidia0 is /tree/dev/nvidia0 on the host"));
}

TEST(ConvertTo, WillNotRenameAKindOrAnotherDevice) {
  auto spec = rich();
  spec.kind = "nvidia.com/gpu.coherent";
  EXPECT_THAT(downgrade(spec, kV05).error().text(), HasSubstr("has a dot"));
  spec = rich();
  spec.devices[1].name = "gpu0";
  EXPECT_THAT(downgrade(spec, kV04).error().text(), HasSubstr("gpu0 is taken"));
}

TEST(ConvertTo, WillNotLeaveADeviceEmpty) {
  Spec spec{.kind = "a.b/cc", .devices = {{.name = "a", .edits = {.additional_gids = {44}}}}};
  EXPECT_THAT(downgrade(spec, kV06).error().text(),
              HasSubstr("supports none of the edits of device a"));
}

}  // namespace
}  // namespace gantry::cdi
