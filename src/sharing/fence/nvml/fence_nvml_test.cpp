// SPDX-License-Identifier: Apache-2.0
// The fence's NVML in front of the simulated one: memory of the share, and what happens when the
// daemon starts and ends.
#include "sharing/fence/nvml/fence_under_test.hpp"
#include "sim/libnvidia-ml/library_under_test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace gantry::fence::test {
namespace {

using ::testing::HasSubstr;

template <typename From, typename To>
void scribble(From* from, To* to, std::mt19937_64& random) {
  for (auto* at = reinterpret_cast<std::uint8_t*>(from); at != reinterpret_cast<std::uint8_t*>(to);
       ++at) {
    *at = static_cast<std::uint8_t>(random());
  }
}

class FenceNvml : public ::testing::Test {
 protected:
  FenceNvml() {
    EXPECT_EQ(NVML(fence_, nvmlInit_v2)(), NVML_SUCCESS);
    EXPECT_EQ(NVML(fence_, nvmlDeviceGetHandleByIndex_v2)(0, &device_), NVML_SUCCESS);
    EXPECT_EQ(NVML(fence_, nvmlDeviceGetHandleByIndex_v2)(1, &other_), NVML_SUCCESS);
    char uuid[96];
    EXPECT_EQ(NVML(fence_, nvmlDeviceGetUUID)(device_, uuid, sizeof uuid), NVML_SUCCESS);
    put_uuid(uuid, host_.limits().gpu[0].uuid);
    host_.limits().gpu[0].memory_limit = 10 * kGiB;
    host_.limits().gpu[0].context_estimate = 500 * kMiB;
  }
  ~FenceNvml() override { NVML(fence_, nvmlShutdown)(); }

  nvmlMemory_t memory(nvmlDevice_t device) {
    nvmlMemory_t out{};
    EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo)(device, &out), NVML_SUCCESS);
    return out;
  }
  nvmlMemory_v2_t memory_v2(nvmlDevice_t device) {
    nvmlMemory_v2_t out{};
    out.version = nvmlMemory_v2;
    EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo_v2)(device, &out), NVML_SUCCESS);
    return out;
  }
  // As the driver reports it.
  nvmlMemory_v2_t card(nvmlDevice_t device) {
    nvmlMemory_v2_t out{};
    out.version = nvmlMemory_v2;
    EXPECT_EQ(NVML(driver_, nvmlDeviceGetMemoryInfo_v2)(device, &out), NVML_SUCCESS);
    return out;
  }

  Host host_;
  sim::LoadedLibrary driver_;
  FencedNvml fence_{host_, driver_.file};
  nvmlDevice_t device_ = nullptr;
  nvmlDevice_t other_ = nullptr;
};

TEST_F(FenceNvml, WithoutASocketTheDriversAnswersStand) {
  EXPECT_EQ(memory_v2(device_).total, card(device_).total);
  unsigned int count = 0;
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetComputeRunningProcesses_v3)(device_, &count, nullptr),
            NVML_SUCCESS);
}

TEST_F(FenceNvml, TheShareIsTheCard) {
  host_.start();
  host_.process(0).host_pid = 4711;
  host_.row(0, 0).held = 3 * kGiB;
  host_.limits().gpu[0].memory_overhead = 600 * kMiB;
  const auto old_form = memory(device_);
  EXPECT_EQ(old_form.total, 10 * kGiB);
  EXPECT_EQ(old_form.used, 3 * kGiB + 600 * kMiB);
  EXPECT_EQ(old_form.free, old_form.total - old_form.used);
  const auto now = memory_v2(device_);
  EXPECT_EQ(now.version, nvmlMemory_v2);
  EXPECT_EQ(now.total, 10 * kGiB);
  EXPECT_EQ(now.used, 3 * kGiB + 600 * kMiB);
  EXPECT_EQ(now.reserved, 0U);
  EXPECT_EQ(now.free, now.total - now.used);
}

TEST_F(FenceNvml, ContextsThatNvmlHasNotShownYetCountAtTheirEstimate) {
  host_.start();
  host_.process(0).host_pid = 4711;
  host_.process(0).seen_contexts[0] = 1;
  host_.row(0, 0).contexts = 3;
  EXPECT_EQ(memory_v2(device_).used, 1000 * kMiB);
  host_.limits().flags = FENCE_CONTEXT_FREE;
  host_.limits().gpu[0].memory_overhead = kGiB;
  EXPECT_EQ(memory_v2(device_).used, 0U) << "contexts are free in this share";
}

TEST_F(FenceNvml, NothingATenantWritesShowsMoreThanTheLimit) {
  host_.start();
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    host_.process(slot).host_pid = 100 + slot;
    host_.row(0, slot).held = UINT64_MAX - slot;
    host_.row(0, slot).contexts = UINT32_MAX;
  }
  host_.limits().gpu[0].context_estimate = UINT64_MAX / 2;
  const auto now = memory_v2(device_);
  EXPECT_EQ(now.used, 10 * kGiB);
  EXPECT_EQ(now.free, 0U);
  host_.limits().slots_in_use = UINT32_MAX;
  unsigned int count = 0;
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetComputeRunningProcesses_v3)(device_, &count, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 3U);
}

TEST_F(FenceNvml, WhateverIsInThePagesTheAnswersStayWithinBounds) {
  host_.start();
  EXPECT_EQ(memory(device_).total, 10 * kGiB);
  std::mt19937_64 random(5);
  const auto card_now = card(device_);
  std::uint8_t uuid[16];
  std::memcpy(uuid, host_.limits().gpu[0].uuid, sizeof uuid);
  for (int round = 0; round < 100; ++round) {
    scribble(&host_.limits().slots_in_use, &host_.limits().heartbeat_ns, random);
    scribble(&host_.limits().gpu[0], &host_.limits().gpu[1], random);
    scribble(&host_.limits().process[0], &host_.limits().process[FENCE_MAX_PROCESSES], random);
    scribble(&host_.row(0, 0), &host_.row(0, FENCE_MAX_PROCESSES), random);
    std::memcpy(host_.limits().gpu[0].uuid, uuid, sizeof uuid);
    host_.beat();
    const auto now = memory_v2(device_);
    EXPECT_LE(now.total, card_now.total);
    EXPECT_EQ(now.used + now.free + now.reserved, now.total);
    constexpr unsigned int kRoom = 8;
    nvmlProcessInfo_t rows[kRoom + 1] = {};
    unsigned int count = kRoom;
    const auto list = NVML(fence_, nvmlDeviceGetComputeRunningProcesses_v3);
    const nvmlReturn_t result = list(device_, &count, rows);
    EXPECT_EQ(result, count > kRoom ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
    EXPECT_LE(count, static_cast<unsigned int>(FENCE_MAX_PROCESSES));
    EXPECT_EQ(rows[kRoom].pid, 0U) << "beyond the room it was given";
  }
}

TEST_F(FenceNvml, WhatTheCardHasNotGotIsReserved) {
  host_.start();
  host_.limits().gpu[0].memory_limit = card(device_).total;
  const auto now = memory_v2(device_);
  EXPECT_EQ(now.total, card(device_).total);
  EXPECT_EQ(now.free, card(device_).free);
  EXPECT_EQ(now.reserved, card(device_).reserved);
  EXPECT_EQ(memory(device_).used, card(device_).reserved) << "the old form counts it as used";
  host_.limits().gpu[0].memory_limit = UINT64_MAX - 1;
  EXPECT_EQ(memory_v2(device_).total, card(device_).total) << "a share cannot be larger";
}

TEST_F(FenceNvml, AShareWithoutAMemoryLimitHasTheCardsMemory) {
  host_.start();
  host_.limits().gpu[0].memory_limit = UINT64_MAX;
  EXPECT_EQ(memory_v2(device_).total, card(device_).total);
  EXPECT_EQ(memory_v2(device_).free, card(device_).free);
}

TEST_F(FenceNvml, ADeviceOutsideTheShareIsLeftAlone) {
  host_.start();
  EXPECT_EQ(memory(device_).total, 10 * kGiB);
  EXPECT_EQ(memory_v2(other_).total, card(other_).total);
}

TEST_F(FenceNvml, WhatTheDriverRefusesIsRefusedInItsWords) {
  host_.start();
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo)(device_, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo_v2)(device_, nullptr),
            NVML_ERROR_INVALID_ARGUMENT);
  nvmlMemory_v2_t wrong{};
  wrong.version = nvmlMemory_v2 + 1;
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo_v2)(device_, &wrong),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  nvmlMemory_t any{};
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo)(nullptr, &any), NVML_ERROR_INVALID_ARGUMENT);
  unsigned int count = 1;
  const auto list = NVML(fence_, nvmlDeviceGetComputeRunningProcesses_v3);
  EXPECT_EQ(list(device_, nullptr, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(list(device_, &count, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(list(nullptr, &count, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  nvmlProcessDetailList_t details{};
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetRunningProcessDetailList)(device_, &details),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetRunningProcessDetailList)(device_, nullptr),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(FenceNvml, ALostGpuIsLost) {
  host_.start();
  driver_.change([](gantry_sim_state& state) { state.gpu[0].lost = 1; });
  nvmlMemory_t any{};
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo)(device_, &any), NVML_ERROR_GPU_IS_LOST);
}

TEST_F(FenceNvml, OneAttachServesManyCallsAndThreads) {
  host_.start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int call = 0; call < 50; ++call) EXPECT_EQ(memory(device_).total, 10 * kGiB);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(host_.attached(), 1U);
}

TEST_F(FenceNvml, WhenTheDaemonIsGoneTheLastKnownShareStands) {
  host_.start();
  host_.process(0).host_pid = 4711;
  host_.row(0, 0).held = kGiB;
  EXPECT_EQ(memory_v2(device_).used, kGiB);
  host_.stop();
  const auto now = memory_v2(device_);
  EXPECT_EQ(now.total, 10 * kGiB);
  EXPECT_EQ(now.used, kGiB);
}

TEST_F(FenceNvml, AShareWithoutADaemonIsNotTheCard) {
  host_.start();
  host_.stop();
  nvmlMemory_t old_form{};
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo)(device_, &old_form), NVML_ERROR_NOT_READY);
  EXPECT_EQ(old_form.total, 0U);
  nvmlMemory_v2_t form{};
  form.version = nvmlMemory_v2;
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo_v2)(device_, &form), NVML_ERROR_NOT_READY);
  EXPECT_EQ(form.total, 0U);
  unsigned int count = 0;
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetComputeRunningProcesses_v3)(device_, &count, nullptr),
            NVML_ERROR_NOT_READY);
}

TEST_F(FenceNvml, ARefusalIsNotTheCardEither) {
  host_.refuse(FENCE_NO_SHARE);
  host_.start();
  nvmlMemory_t form{};
  EXPECT_EQ(NVML(fence_, nvmlDeviceGetMemoryInfo)(device_, &form), NVML_ERROR_NOT_READY);
}

TEST_F(FenceNvml, ANewDaemonsPagesReplaceTheOldOnes) {
  host_.start();
  EXPECT_EQ(memory(device_).total, 10 * kGiB);
  host_.stop();
  EXPECT_EQ(memory(device_).total, 10 * kGiB);
  host_.limits().gpu[0].memory_limit = 20 * kGiB;
  host_.start();
  EXPECT_EQ(memory(device_).total, 20 * kGiB);
}

TEST_F(FenceNvml, AForkedChildSeesItsShare) {
  host_.start();
  EXPECT_EQ(memory(device_).total, 10 * kGiB);
  const pid_t child = ::fork();
  if (child == 0) {
    nvmlMemory_t now{};
    const auto result = NVML(fence_, nvmlDeviceGetMemoryInfo)(device_, &now);
    ::_exit(result == NVML_SUCCESS && now.total == 10 * kGiB ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(FenceNvml, EveryHookIsTheFencesAndTheRestTheDrivers) {
  const auto file_of = [this](const char* name) -> std::string {
    Dl_info info{};
    void* at = fence_.get<void>(name);
    return at != nullptr && ::dladdr(at, &info) != 0 ? info.dli_fname : "";
  };
#define FENCE_NVML_HOOK(name) EXPECT_THAT(file_of(#name), HasSubstr("libgantry-fence-nvml.so"));
#include "sharing/fence/nvml/hooks.def"
#undef FENCE_NVML_HOOK
  EXPECT_EQ(file_of("nvmlDeviceGetUtilizationRates"), driver_.file);
  EXPECT_EQ(file_of("nvmlInit_v2"), driver_.file);
  EXPECT_EQ(file_of("nvmlNoSuchFunction"), "");
}

}  // namespace
}  // namespace gantry::fence::test
