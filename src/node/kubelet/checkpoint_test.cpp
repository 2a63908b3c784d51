// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/checkpoint.hpp"

#include "base/core/base64.hpp"
#include "node/kubelet/messages.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::kubelet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// As a kubelet 1.32 wrote it.
constexpr auto kWritten = R"({"Data":{"PodDeviceEntries":[
  {"PodUID":"u1","ContainerName":"main","ResourceName":"nvidia.com/gpu",
   "DeviceIDs":{"0":["GPU-b","GPU-a"],"1":["GPU-c","GPU-a"]},"AllocResp":"KhcKFW52aWRpYQ=="},
  {"PodUID":"u1","ContainerName":"init","ResourceName":"nvidia.com/gpu",
   "DeviceIDs":{"-1":["GPU-a","GPU-b","GPU-c"]},"AllocResp":"","Later":{"x":1}}],
  "RegisteredDevices":{"nvidia.com/gpu":["GPU-b","GPU-a"],"example.com/x":null},"More":[]},
  "Checksum":4194875431})";

TEST(Checkpoint, TellsWhoHasWhatByPodUid) {
  const auto checkpoint = parse_checkpoint(kWritten);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
  ASSERT_THAT(checkpoint->holders, SizeIs(2));
  const auto& main = checkpoint->holders[1];
  EXPECT_EQ(main.pod.uid, "u1");
  EXPECT_EQ(main.container, "main");
  EXPECT_EQ(main.resource, "nvidia.com/gpu");
  EXPECT_THAT(main.ids, ElementsAre("GPU-a", "GPU-b", "GPU-c"));  // a device of two nodes, once
  EXPECT_THAT(checkpoint->devices.at("nvidia.com/gpu"), ElementsAre("GPU-a", "GPU-b"));
}

TEST(Checkpoint, FindsEveryContainerThatHasExactlyTheseDevices) {
  const auto checkpoint = *parse_checkpoint(kWritten);
  EXPECT_THAT(holders_of(checkpoint, "nvidia.com/gpu", {"GPU-c", "GPU-a", "GPU-b"}), SizeIs(2));
  EXPECT_THAT(holders_of(checkpoint, "nvidia.com/gpu", {"GPU-a"}), IsEmpty());
  EXPECT_THAT(holders_of(checkpoint, "nvidia.com/mig", {"GPU-a", "GPU-b", "GPU-c"}), IsEmpty());
}

TEST(Checkpoint, KeepsTheAnswerThatTheContainerIsStartedWith) {
  const model::ContainerAllocateResponse answer{
      .nodes = {{.path = "/dev/nvidia0", .host_path = "/dev/nvidia3"}}};
  const auto checkpoint = *parse_checkpoint(fmt::format(
      R"({{"Data":{{"PodDeviceEntries":[{{"PodUID":"u","ContainerName":"c","ResourceName":"r",
          "DeviceIDs":{{"0":["a"]}},"AllocResp":"{}"}}]}}}})",
      to_base64(encode(answer))));
  const auto stored = stored_answer(checkpoint, checkpoint.holders[0]);
  ASSERT_TRUE(stored.ok()) << stored.error().text();
  ASSERT_THAT(stored->nodes, SizeIs(1));
  EXPECT_EQ(stored->nodes[0].host_path, "/dev/nvidia3");
}

TEST(Checkpoint, AStoredAnswerThatIsNoneIsAnError) {
  const auto checkpoint = *parse_checkpoint(kWritten);
  EXPECT_FALSE(stored_answer(checkpoint, checkpoint.holders[0]).ok());  // the init container's
  EXPECT_FALSE(stored_answer(checkpoint, checkpoint.holders[1]).ok());  // cut off
}

TEST(Checkpoint, NothingGivenAwayIsNull) {
  const auto checkpoint =
      parse_checkpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_THAT(checkpoint->holders, IsEmpty());
}

TEST(Checkpoint, TheListOfKubeletsBefore120IsReadToo) {
  const auto checkpoint = parse_checkpoint(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",
          "DeviceIDs":["b","a"],"AllocResp":""}]}})");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_THAT(checkpoint->holders[0].ids, ElementsAre("a", "b"));
}

TEST(Checkpoint, AnotherShapeIsCorrupt) {
  for (const auto* text : {"", "{", "[]", R"({"Data":[]})", R"({"Data":{"PodDeviceEntries":3}})",
                           R"({"Data":{"PodDeviceEntries":[{"PodUID":"u"}]}})",
                           R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c",
                              "ResourceName":"r","DeviceIDs":7}]}})"}) {
    const auto checkpoint = parse_checkpoint(text);
    ASSERT_FALSE(checkpoint.ok()) << text;
    EXPECT_EQ(checkpoint.error().code(), Errc::Corrupt);
    EXPECT_THAT(checkpoint.error().text(), HasSubstr("the kubelet's checkpoint"));
  }
}

TEST(Checkpoint, NoFileIsNotFoundAndALinkIsNotFollowed) {
  test::Tree tree;
  EXPECT_EQ(read_checkpoint(tree.root()).error().code(), Errc::NotFound);
  tree.file("elsewhere", kWritten).link("kubelet_internal_checkpoint", "elsewhere");
  EXPECT_FALSE(read_checkpoint(tree.root()).ok());
  tree.remove("kubelet_internal_checkpoint").file("kubelet_internal_checkpoint", kWritten);
  EXPECT_THAT(read_checkpoint(tree.root())->holders, SizeIs(2));
}

}  // namespace
}  // namespace gantry::kubelet
