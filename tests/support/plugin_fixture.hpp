// SPDX-License-Identifier: Apache-2.0
// A kubelet, a plugin with two GPUs and the loop that both live in.
#pragma once

#include "node/kubelet/plugin.hpp"
#include "node/kubelet/registrar.hpp"
#include "support/fake_kubelet.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gantry::test {

// NOLINTNEXTLINE(readability-identifier-naming): constant, though not constexpr
inline const std::string kGpuResource = "nvidia.com/gpu";

class PluginFixture : public testing::Test {
 protected:
  using Ids = kubelet::DeviceIds;

  static FakeKubelet::Options kubelet_options(const Tree& tree, FakeKubelet::Streams streams) {
    return {
        .directory = tree.path("dp"), .pod_resources = tree.path("pr.sock"), .streams = streams};
  }

  template <class Condition>
  bool until(Condition condition,
             std::chrono::milliseconds at_most = std::chrono::milliseconds{30'000}) {
    const auto end = std::chrono::steady_clock::now() + at_most;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(loop_->turn(std::chrono::milliseconds{10}).ok());
    }
    return condition();
  }
  void run_loop_for(std::chrono::milliseconds time) {
    until([] { return false; }, time);
  }

  kubelet::PluginCallbacks decisions() {
    return {.allocate = [this](const Ids& ids) { return allocate(ids); },
            .prefer = [this](const kubelet::PreferredRequest& request) { return prefer(request); },
            .pre_start = [this](const kubelet::PreStartRequest& question) { pre_start(question); },
            .report = [this](const kubelet::CallReport& report) { reports_.push_back(report); }};
  }

  virtual Result<model::ContainerAllocateResponse> allocate(const Ids& ids) {
    model::ContainerAllocateResponse answer;
    for (const auto& id : ids) answer.cdi_devices.push_back("nvidia.com/gpu=" + id);
    return answer;
  }
  virtual Result<Ids> prefer(const kubelet::PreferredRequest&) {
    return Error(Errc::Internal, "no opinion");
  }
  virtual void pre_start(const kubelet::PreStartRequest& question) {
    started_.push_back(question.ids());
    question.ready();
  }

  std::unique_ptr<kubelet::Plugin> make_plugin() {
    auto plugin = std::make_unique<kubelet::Plugin>(*loop_, kGpuResource, decisions());
    plugin->offer({{.id = "GPU-a", .numa_node = 0}, {.id = "GPU-b", .numa_node = 1}});
    return plugin;
  }

  static FakeKubelet::Pod pod(const std::string& uid, int gpus) {
    return {.name = "p" + uid,
            .uid = uid,
            .containers = {{.name = "main", .limits = {{kGpuResource, gpus}}}}};
  }

  Tree tree_;
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  std::vector<Ids> started_;
  std::vector<kubelet::CallReport> reports_;
};

}  // namespace gantry::test
