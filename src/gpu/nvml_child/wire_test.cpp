// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_child/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gantry::nvml_child {
namespace {

using ::testing::HasSubstr;

ReadingsPayload rich() {
  ReadingsPayload payload;
  payload.event_wait_age_ms = 7;
  payload.readings.at_unix_ms = 1'760'000'000'123;
  auto& gpu = payload.readings.gpus.emplace_back();
  gpu.uuid.text = "GPU-1";
  gpu.lost = "fell off";
  gpu.reset_required = true;
  gpu.recovery_action = model::RecoveryAction::DrainAndReset;
  gpu.clock_reasons = 0x48;
  gpu.temperature_celsius = -3;
  gpu.reliability_violation_ns = ~0ULL;
  gpu.profile.tensor_active = 0.25;
  gpu.instances.push_back({.uuid = {"MIG-1"}, .gpu_instance = 9, .memory_used_bytes = 12});
  gpu.processes.push_back({.pid = 77, .memory_bytes = 5, .pod_uid = "u", .container_id = "c"});
  payload.readings.gpus.emplace_back();
  return payload;
}

TEST(Wire, ReadingsComeThroughWhole) {
  const auto read = readings_from(to_bytes(rich()));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, rich());
}

TEST(Wire, EventsComeThroughWhole) {
  const model::GpuEvent event{.kind = model::GpuEventKind::FatalPoison,
                              .gpu = {"GPU-2"},
                              .gpu_instance = 3,
                              .data = 79,
                              .at_unix_ms = 5};
  const auto read = event_from(to_bytes(event));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, event);
}

TEST(Wire, EveryShorterMessageIsAnError) {
  const auto bytes = to_bytes(rich());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(readings_from(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_THAT(readings_from(bytes + "x").error().text(), HasSubstr("more bytes than announced"));
}

TEST(Wire, AnyByteMayBeWrong) {
  const auto bytes = to_bytes(rich());
  std::mt19937 random(1);
  for (std::size_t i = 0; i < 20'000; ++i) {
    auto broken = bytes;
    for (int n = 0; n < 3; ++n) broken[random() % broken.size()] = static_cast<char>(random());
    const auto read = readings_from(broken);
    EXPECT_TRUE(!read.ok() || read->readings.gpus.size() <= 256U);
  }
}

TEST(Wire, DatagramsOfOthersAreRefused) {
  EXPECT_FALSE(from_datagram("").ok());
  EXPECT_FALSE(from_datagram("GNTS").ok());
  EXPECT_FALSE(from_datagram(std::string(100'000, 'x')).ok());
  auto bytes = to_datagram({PacketKind::View, true, "{}"});
  ASSERT_TRUE(from_datagram(bytes).ok());
  bytes[4] = 99;
  EXPECT_THAT(from_datagram(bytes).error().text(), HasSubstr("not in our format"));
}

}  // namespace
}  // namespace gantry::nvml_child
