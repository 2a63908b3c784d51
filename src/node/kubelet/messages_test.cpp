// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/messages.hpp"

#include "node/kubelet/pod_resources.hpp"
#include "support/kubelet_messages.hpp"

#include <gmock/gmock.h>

namespace gantry::kubelet {
namespace {

using testing::ElementsAre;
using namespace std::string_view_literals;

TEST(Messages, RegisterHasTheBytesThatAKubeletExpects) {
  const RegisterRequest request{
      .endpoint = "g.sock", .resource = "nvidia.com/gpu", .options = {true, true}};
  EXPECT_EQ(encode(request),
            "\x0a\x07v1beta1\x12\x06g.sock\x1a\x0envidia.com/gpu\x22\x04\x08\x01\x10\x01"sv);
  EXPECT_EQ(*decode_register(encode(request)), request);
}

TEST(Messages, NumaNodeZeroIsSaidAndNoNodeIsNot) {
  EXPECT_EQ(encode_list({{.id = "G", .numa_node = 0}}),
            "\x0a\x10\x0a\x01G\x12\x07Healthy\x1a\x02\x0a\x00"sv);
  EXPECT_EQ(encode_list({{.id = "G"}}), "\x0a\x0c\x0a\x01G\x12\x07Healthy"sv);
  const std::vector<ListedDevice> devices{{.id = "a", .healthy = true, .numa_node = 1},
                                          {.id = "b", .healthy = false, .numa_node = 0},
                                          {.id = "c", .healthy = false}};
  EXPECT_EQ(*decode_list(encode_list(devices)), devices);
}

TEST(Messages, OnlyTheWordHealthyIsHealthy) {
  EXPECT_FALSE(decode_list("\x0a\x0c\x0a\x01G\x12\x07healthy"sv)->front().healthy);
  EXPECT_FALSE(decode_list("\x0a\x03\x0a\x01G"sv)->front().healthy);
}

TEST(Messages, AnAllocateAnswerSaysEveryThingThatAContainerGets) {
  model::ContainerAllocateResponse answer;
  answer.env["NVIDIA_VISIBLE_DEVICES"] = "GPU-1";
  answer.env["EMPTY"] = "";
  answer.annotations["cdi.k8s.io/g"] = "nvidia.com/gpu=GPU-1";
  answer.cdi_devices = {"nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"};
  answer.mounts.push_back({.host_path = "/h", .container_path = "/c", .options = {"ro"}});
  answer.mounts.push_back({.host_path = "/h2", .container_path = "/c2", .options = {}});
  answer.nodes.push_back(
      {.path = "/dev/nvidia0", .host_path = "/dev/nvidia3", .permissions = "rw"});
  const auto decoded = decode_allocate_answer(encode_allocate_answer({answer, {}}));
  ASSERT_TRUE(decoded.ok());
  EXPECT_THAT(*decoded, ElementsAre(answer, model::ContainerAllocateResponse{}));
}

TEST(Messages, ANodeWithoutAHostPathIsTheSameOnTheHost) {
  model::ContainerAllocateResponse answer;
  answer.nodes.push_back({.path = "/dev/nvidiactl"});
  EXPECT_EQ(decode_container_answer(encode(answer))->nodes[0].host_path, "/dev/nvidiactl");
}

TEST(Messages, RequestsComeBackAsTheyWere) {
  const std::vector<PreferredRequest> preferred{
      {.available = {"a", "b"}, .must_include = {"a"}, .size = 2}, {}};
  EXPECT_EQ(*decode_preferred_request(encode_preferred_request(preferred)), preferred);
  const std::vector<DeviceIds> containers{{"a", "b"}, {}, {"c"}};
  EXPECT_EQ(*decode_allocate_request(encode_allocate_request(containers)), containers);
  EXPECT_EQ(*decode_preferred_answer(encode_preferred_answer(containers)), containers);
  EXPECT_EQ(*decode_pre_start(encode_pre_start({"x", "y"})), (DeviceIds{"x", "y"}));
  EXPECT_EQ(*decode_options(encode(PluginOptions{true, false})), (PluginOptions{true, false}));
}

TEST(Messages, FieldsOfLaterVersionsAreSkipped) {
  EXPECT_EQ(*decode_pre_start("\x0a\x01x\xfa\x07\x03new\xf8\x07\x01"sv), (DeviceIds{"x"}));
}

TEST(PodResourcesMessages, OneHolderForAContainerAndResourceWhateverTheNumaNodes) {
  const std::vector<model::DeviceAllocation> holders{
      {.pod = {.name_space = "a", .name = "p"},
       .container = "c",
       .resource = "r",
       .ids = {"1", "2"}},
      {.pod = {.name_space = "a", .name = "p"}, .container = "d", .resource = "r", .ids = {"3"}},
      {.pod = {.name_space = "b", .name = "p"}, .container = "c", .resource = "s", .ids = {"4"}}};
  EXPECT_EQ(*decode_pod_resources(encode_pod_resources(holders)), holders);

  // The same resource twice, once for each node.
  const auto twice = decode_pod_resources(
      "\x0a\x17\x0a\x01p\x12\x01n\x1a\x0f\x0a\x01"
      "c\x12\x06\x0a\x01r\x12\x01"
      "2\x12\x02\x0a\x00"sv);
  ASSERT_TRUE(twice.ok());
}

TEST(PodResourcesMessages, AllocatableJoinsTheNodesOfAResource) {
  const Allocatable allocatable{{"nvidia.com/gpu", {"a", "b"}}, {"x/y", {"c"}}};
  const auto bytes = encode_allocatable(allocatable);
  EXPECT_EQ(*decode_allocatable(bytes), allocatable);
  EXPECT_EQ(*decode_allocatable(bytes + encode_allocatable({{"x/y", {"d"}}})),
            (Allocatable{{"nvidia.com/gpu", {"a", "b"}}, {"x/y", {"c", "d"}}}));
}

}  // namespace
}  // namespace gantry::kubelet
