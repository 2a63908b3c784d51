// SPDX-License-Identifier: Apache-2.0
#include "node/why/node_steps.hpp"

#include "base/sys/unique_fd.hpp"
#include "support/parsed_json.hpp"
#include "support/tree.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using testing::HasSubstr;

constexpr const char* kDirectory = "/var/lib/kubelet/device-plugins";

class NodeStepsTest : public testing::Test {
 protected:
  NodeStepsTest() {
    tree_.file("var/lib/kubelet/device-plugins/kubelet.sock");
    checkpoint(R"({"nvidia.com/gpu":["GPU-1","GPU-2"]})");
  }

  void checkpoint(const std::string& registered) {
    tree_.file("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
               R"({"Data":{"PodDeviceEntries":[{"PodUID":"u1","ContainerName":"c",
      "ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["GPU-1"]},"AllocResp":""}],
      "RegisteredDevices":)" +
                   registered + R"(},"Checksum":1})");
  }

  void listen(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = tree_.path("var/lib/kubelet/device-plugins/" + name);
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::copy(path.begin(), path.end(), std::begin(address.sun_path));
    socket_ = sys::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(socket_.get(), 1), 0);
  }

  Step registration() { return registration_step(tree_.host(), kDirectory, "nvidia.com/gpu"); }

  test::Tree tree_;
  sys::UniqueFd socket_;
};

TEST_F(NodeStepsTest, APluginThatAnswersIsRegistered) {
  listen("gantry-gpu.sock");
  const auto step = registration();
  EXPECT_EQ(step.verdict, StepStatus::Ok) << step.cause;
  EXPECT_EQ(step.read, "the kubelet knows 2 nvidia.com/gpu; gantry-gpu.sock answers");
}

TEST_F(NodeStepsTest, ASocketWithoutAListenerIsAPluginThatIsGone) {
  listen("gantry-gpu.sock");
  socket_ = {};
  const auto step = registration();
  EXPECT_EQ(step.verdict, StepStatus::Failed);
  EXPECT_THAT(step.cause, HasSubstr("no device plugin runs"));
  EXPECT_THAT(step.remedy, HasSubstr("gantry-agent"));
}

TEST_F(NodeStepsTest, AnUnregisteredResourceIsMissing) {
  listen("gantry-gpu.sock");
  checkpoint(R"({"nvidia.com/mig-1g.10gb":["MIG-1"]})");
  EXPECT_THAT(registration().cause, HasSubstr("has not registered nvidia.com/gpu"));
}

TEST_F(NodeStepsTest, AKubeletWithoutItsSocketTakesNoPlugins) {
  listen("gantry-gpu.sock");
  tree_.remove("var/lib/kubelet/device-plugins/kubelet.sock");
  EXPECT_THAT(registration().remedy, HasSubstr("restart kubelet"));
}

TEST_F(NodeStepsTest, WhatTheKubeletGaveIsInItsRecord) {
  const auto given = test::parsed(R"({"metadata":{"uid":"u1"}})");
  EXPECT_EQ(allocation_step(tree_.host(), kDirectory, given.root()).read,
            "c: GPU-1 of nvidia.com/gpu");
  const auto nothing = test::parsed(R"({"metadata":{"uid":"u2"}})");
  EXPECT_EQ(allocation_step(tree_.host(), kDirectory, nothing.root()).verdict, StepStatus::Failed);
  tree_.file("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{");
  EXPECT_EQ(allocation_step(tree_.host(), kDirectory, given.root()).verdict, StepStatus::Unknown);
}

TEST_F(NodeStepsTest, AGpuOfThePodThatFellIllIsTheReason) {
  const auto pod = test::parsed(R"({"metadata":{"uid":"u1"}})");
  const auto health = [&](const std::string& status, const std::string& message) {
    const auto node = test::parsed(R"({"metadata":{"name":"n"},"status":{"conditions":[{"type":
      "GPUsHealthy","status":")" + status +
                                   R"(","message":")" + message + R"("}]}})");
    return gpu_health_step(tree_.host(), kDirectory, pod.root(), node.root());
  };
  EXPECT_EQ(health("True", "all GPUs of this node are healthy").verdict, StepStatus::Ok);
  EXPECT_EQ(health("False", "GPU-2: too hot (remedy: wait)").verdict, StepStatus::Ok)
      << "another pod's";
  const auto ill = health("False", "GPU-2: too hot (remedy: wait); GPU-1: Xid 79 (remedy: reboot)");
  EXPECT_EQ(ill.verdict, StepStatus::Failed);
  EXPECT_EQ(ill.cause,
            "a GPU that container c holds is not usable: GPU-1: Xid 79 (remedy: reboot)");
  EXPECT_EQ(ill.remedy, "on n: reboot");
  EXPECT_EQ(health("False", "all 8 GPUs: the driver is unloaded").remedy, "on n: gantry doctor");
  const auto silent = health("False", "GPU-1: NVML is silent; it hangs (remedy: reboot; wait)");
  EXPECT_EQ(silent.read, "GPU-1: NVML is silent; it hangs (remedy: reboot; wait)");
  EXPECT_EQ(silent.remedy, "on n: reboot; wait");
}

}  // namespace
}  // namespace gantry::why
