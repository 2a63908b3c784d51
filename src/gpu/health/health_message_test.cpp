// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/health_message.hpp"

#include <gtest/gtest.h>

namespace gantry::health {
namespace {

using model::DeviceHealth;

DeviceHealth sick(const std::string& gpu, const std::string& cause, const std::string& remedy) {
  return {.gpu = {gpu}, .usable = false, .cause = cause, .remedy = remedy};
}

TEST(HealthMessage, NamesDevicesCausesAndRemedies) {
  EXPECT_EQ(to_message({{.gpu = {"GPU-1"}}}), "");
  EXPECT_EQ(
      to_message({{.gpu = {"GPU-1"}}, sick("GPU-2", "Xid 79", "reboot"), sick("GPU-3", "hot", "")}),
      "GPU-2: Xid 79 (remedy: reboot); GPU-3: hot");
  EXPECT_EQ(to_message({sick("GPU-1", "no driver", ""), sick("GPU-2", "no driver", "")}),
            "all 2 GPUs: no driver");
}

TEST(HealthMessage, WhatWasWrittenIsFoundAgain) {
  const std::vector<DeviceHealth> health{
      {.gpu = {"GPU-1"}},
      sick("GPU-2", "NVML is silent; `dmesg` may say why", "sudo dmesg | grep NVRM; gantry doctor"),
      {.gpu = {"GPU-3"}, .mig = {"MIG-3"}, .usable = false, .cause = "lost (Xid 79)", .remedy = ""},
      sick("GPU-4", "hot", "nvidia-smi -q -i $(nvidia-smi -L)"),
      sick("GPU-5", "hot", "nvidia-smi -q -i $(nvidia-smi -L)")};
  const auto message = to_message(health);
  EXPECT_FALSE(find_problem(message, "GPU-1"));
  for (const auto& device : health) {
    if (device.usable) continue;
    const auto name = device.mig.text.empty() ? device.gpu.text : device.mig.text;
    const auto found = find_problem(message, name);
    ASSERT_TRUE(found) << name << " in " << message;
    EXPECT_EQ(found->remedy, device.remedy) << message;
    EXPECT_TRUE(found->text.ends_with(device.cause + format_remedy(device.remedy))) << found->text;
  }
}

TEST(HealthMessage, AProblemOfAllGpusIsEachGpus) {
  const auto found = find_problem("all 8 GPUs: the driver is unloaded (remedy: reboot)", "GPU-1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->remedy, "reboot");
}

TEST(HealthMessage, ACutMessageIsReadAsFarAsItGoes) {
  EXPECT_FALSE(find_problem("", "GPU-1"));
  EXPECT_EQ(find_problem("GPU-1: Xid 79 (rem", "GPU-1")->remedy, "");
  EXPECT_EQ(find_problem("GPU-1: Xid 79 (remedy: nvidia-smi --gp", "GPU-1")->remedy,
            "nvidia-smi --gp");
  EXPECT_EQ(find_problem("GPU-2: hot; ", "GPU-2")->text, "GPU-2: hot; ");
}

}  // namespace
}  // namespace gantry::health
