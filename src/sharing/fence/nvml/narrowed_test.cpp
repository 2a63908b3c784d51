// SPDX-License-Identifier: Apache-2.0
// Driver lists that are filtered to the share's own processes. Here the driver gives the host's
// pids; in the container process 1001 is 1 and 1002 is 2.
#include "sharing/fence/nvml/fence_under_test.hpp"

#include <gmock/gmock.h>

#include <vector>

#define CALL(function) fence_.get<decltype(::function)>(#function)

namespace gantry::fence::test {
namespace {

using ::testing::ElementsAre;

using Pids = std::vector<unsigned int>;

template <typename Item>
Pids pids_of(const std::vector<Item>& items) {
  Pids out;
  for (const auto& item : items) out.push_back(item.pid);
  return out;
}

class FenceNvmlLists : public ::testing::Test {
 protected:
  FenceNvmlLists() {
    for (std::uint8_t i = 0; i < 16; ++i) {
      host_.limits().gpu[0].uuid[i] = static_cast<std::uint8_t>(i * 0x11);
    }
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
      host_.process(slot).host_pid = 1001 + slot;
      host_.process(slot).pid = 1 + slot;
    }
    host_.start();
    driver_lists({1001, 7, 1002, 4000});
  }

  void driver_lists(const Pids& pids, int growing = 0) {
    using Set = void(const unsigned int*, unsigned int, int);
    const auto set = fence_.get<Set>("fakeProcesses");
    ASSERT_NE(set, nullptr);
    set(pids.data(), static_cast<unsigned int>(pids.size()), growing);
  }

  template <typename Item, typename Function>
  Pids listed(Function* function) {
    unsigned int count = 16;
    std::vector<Item> items(count);
    EXPECT_EQ(function(device_, &count, items.data()), NVML_SUCCESS);
    items.resize(count);
    return pids_of(items);
  }

  Host host_;
  FencedNvml fence_{host_,
                    gantry::test::built("src/sharing/fence/nvml/libfence_nvml_fake_driver.so")};
  int gpu_ = 0;
  nvmlDevice_t device_ = reinterpret_cast<nvmlDevice_t>(&gpu_);
};

TEST_F(FenceNvmlLists, ProcessesThatDrawAreTheSharesOwn) {
  EXPECT_THAT(listed<nvmlProcessInfo_v1_t>(CALL(nvmlDeviceGetGraphicsRunningProcesses)),
              ElementsAre(1, 2));
  EXPECT_THAT(listed<nvmlProcessInfo_v2_t>(CALL(nvmlDeviceGetGraphicsRunningProcesses_v2)),
              ElementsAre(1, 2));
  EXPECT_THAT(listed<nvmlProcessInfo_t>(CALL(nvmlDeviceGetGraphicsRunningProcesses_v3)),
              ElementsAre(1, 2));
}

TEST_F(FenceNvmlLists, ClientsOfMpsAndOfTheEncoderAreTheSharesOwn) {
  EXPECT_THAT(listed<nvmlProcessInfo_v1_t>(CALL(nvmlDeviceGetMPSComputeRunningProcesses)),
              ElementsAre(1, 2));
  EXPECT_THAT(listed<nvmlProcessInfo_v2_t>(CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2)),
              ElementsAre(1, 2));
  EXPECT_THAT(listed<nvmlProcessInfo_t>(CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3)),
              ElementsAre(1, 2));
  EXPECT_THAT(listed<nvmlEncoderSessionInfo_t>(CALL(nvmlDeviceGetEncoderSessions)),
              ElementsAre(1, 2));
}

TEST_F(FenceNvmlLists, ADriverThatCountsAsTheContainerDoesIsUnderstoodToo) {
  driver_lists({2, 9});
  EXPECT_THAT(listed<nvmlProcessInfo_t>(CALL(nvmlDeviceGetGraphicsRunningProcesses_v3)),
              ElementsAre(2));
}

TEST_F(FenceNvmlLists, WhereTheContainersNumberIsNotKnownTheHostsStands) {
  host_.process(0).pid = 0;
  EXPECT_THAT(listed<nvmlProcessInfo_t>(CALL(nvmlDeviceGetGraphicsRunningProcesses_v3)),
              ElementsAre(1001, 2));
}

TEST_F(FenceNvmlLists, TooLittleRoomSaysHowMuchTheShareNeeds) {
  const auto list = CALL(nvmlDeviceGetGraphicsRunningProcesses_v3);
  unsigned int count = 0;
  EXPECT_EQ(list(device_, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2U) << "not the driver's four";
  count = 1;
  nvmlProcessInfo_t rows[2] = {};
  EXPECT_EQ(list(device_, &count, rows), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(rows[1].pid, 0U) << "beyond the room it was given";
}

TEST_F(FenceNvmlLists, AListThatGrowsWhileItIsReadIsReadInTheEnd) {
  Pids many(400, 4000);
  many.push_back(1002);
  driver_lists(many, 3);
  EXPECT_THAT(listed<nvmlProcessInfo_t>(CALL(nvmlDeviceGetGraphicsRunningProcesses_v3)),
              ElementsAre(2));
}

TEST_F(FenceNvmlLists, ComputeProcessesComeFromTheDaemonAndNotFromTheDriver) {
  host_.process(0).used[0] = 4096;
  const auto list = CALL(nvmlDeviceGetComputeRunningProcesses_v3);
  unsigned int count = 4;
  nvmlProcessInfo_t rows[4] = {};
  ASSERT_EQ(list(device_, &count, rows), NVML_SUCCESS);
  ASSERT_EQ(count, 1U) << "the second process is not on the GPU";
  EXPECT_EQ(rows[0].pid, 1U);
  EXPECT_EQ(rows[0].usedGpuMemory, 4096U);
  EXPECT_EQ(rows[0].gpuInstanceId, 0xFFFFFFFF);
  host_.row(0, 1).held = 8192;
  count = 0;
  EXPECT_EQ(list(device_, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2U);
}

TEST_F(FenceNvmlLists, ManagedMemoryCountsWhereNvmlDoesNotShowIt) {
  host_.process(0).used[0] = 4096;
  host_.row(0, 0).held = 4000 + 100;
  host_.row(0, 0).managed = 100;
  unsigned int count = 4;
  nvmlProcessInfo_t rows[4] = {};
  const auto list = CALL(nvmlDeviceGetComputeRunningProcesses_v3);
  ASSERT_EQ(list(device_, &count, rows), NVML_SUCCESS);
  EXPECT_EQ(rows[0].usedGpuMemory, 4096U + 100U);
  host_.row(0, 0).managed = UINT64_MAX;
  ASSERT_EQ(list(device_, &count, rows), NVML_SUCCESS);
  EXPECT_EQ(rows[0].usedGpuMemory, 4096U + 4100U) << "no more than it holds at all";
}

TEST_F(FenceNvmlLists, DetailsFollowTheMode) {
  host_.process(0).used[0] = 4096;
  const auto details = [this](unsigned int mode) {
    std::vector<nvmlProcessDetail_v1_t> rows(8);
    nvmlProcessDetailList_t list{nvmlProcessDetailList_v1, mode, 8, rows.data()};
    EXPECT_EQ(CALL(nvmlDeviceGetRunningProcessDetailList)(device_, &list), NVML_SUCCESS);
    rows.resize(list.numProcArrayEntries);
    return pids_of(rows);
  };
  EXPECT_THAT(details(NVML_PROCESS_MODE_COMPUTE), ElementsAre(1));
  EXPECT_THAT(details(NVML_PROCESS_MODE_GRAPHICS), ElementsAre(1, 2));
  EXPECT_THAT(details(NVML_PROCESS_MODE_MPS), ElementsAre(1, 2));
  EXPECT_THAT(details(NVML_PROCESS_MODE_ALL), ElementsAre(1, 2));
  nvmlProcessDetailList_t none{nvmlProcessDetailList_v1, NVML_PROCESS_MODE_GRAPHICS, 0, nullptr};
  EXPECT_EQ(CALL(nvmlDeviceGetRunningProcessDetailList)(device_, &none),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(none.numProcArrayEntries, 2U);
}

TEST_F(FenceNvmlLists, UtilizationIsTheSharesOwn) {
  unsigned int count = 0;
  const auto ask = CALL(nvmlDeviceGetProcessUtilization);
  EXPECT_EQ(ask(device_, nullptr, &count, 0), NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(count, 2U);
  nvmlProcessUtilizationSample_t samples[2] = {};
  ASSERT_EQ(ask(device_, samples, &count, 41), NVML_SUCCESS);
  EXPECT_EQ(samples[1].pid, 2U);
  EXPECT_EQ(samples[1].smUtil, 2U) << "that of process 1002";
  EXPECT_EQ(samples[1].timeStamp, 42U);
  driver_lists({4000});
  EXPECT_EQ(ask(device_, samples, &count, 0), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(count, 0U);
}

TEST_F(FenceNvmlLists, UtilizationInItsNewFormIsTheSharesOwnToo) {
  const auto ask = CALL(nvmlDeviceGetProcessesUtilizationInfo);
  nvmlProcessUtilizationInfo_v1_t samples[8] = {};
  nvmlProcessesUtilizationInfo_t info{nvmlProcessesUtilizationInfo_v1, 8, 0, samples};
  ASSERT_EQ(ask(device_, &info), NVML_SUCCESS);
  ASSERT_EQ(info.processSamplesCount, 2U);
  EXPECT_EQ(samples[0].pid, 1U);
  info = {nvmlProcessesUtilizationInfo_v1, 1, 0, samples};
  EXPECT_EQ(ask(device_, &info), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(info.processSamplesCount, 2U);
  info.version = 0;
  EXPECT_EQ(ask(device_, &info), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  EXPECT_EQ(ask(device_, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(FenceNvmlLists, AccountingKnowsTheSharesOwnOnly) {
  unsigned int pids[8] = {};
  unsigned int count = 8;
  ASSERT_EQ(CALL(nvmlDeviceGetAccountingPids)(device_, &count, pids), NVML_SUCCESS);
  EXPECT_THAT(Pids(pids, pids + count), ElementsAre(1, 2));
  nvmlAccountingStats_t stats{};
  ASSERT_EQ(CALL(nvmlDeviceGetAccountingStats)(device_, 2, &stats), NVML_SUCCESS);
  EXPECT_EQ(stats.time, 1002U);
  EXPECT_EQ(CALL(nvmlDeviceGetAccountingStats)(device_, 7, &stats), NVML_ERROR_NOT_FOUND)
      << "the driver has a process 7, and it is not ours";
  EXPECT_EQ(CALL(nvmlDeviceGetAccountingStats)(device_, 1002, &stats), NVML_ERROR_NOT_FOUND)
      << "nobody has that number here";
}

TEST_F(FenceNvmlLists, ProtectedMemoryIsTheShares) {
  host_.limits().gpu[0].memory_limit = 300;
  host_.row(0, 0).held = 100;
  nvmlMemory_t memory{};
  ASSERT_EQ(CALL(nvmlDeviceGetConfComputeProtectedMemoryUsage)(device_, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 300U);
  EXPECT_EQ(memory.used, 100U);
  EXPECT_EQ(memory.free, 200U);
}

TEST_F(FenceNvmlLists, WhatTheDriverLacksIsSaidToBeMissing) {
  nvmlMemory_t memory{};
  EXPECT_EQ(CALL(nvmlDeviceGetMemoryInfo)(device_, &memory), NVML_ERROR_FUNCTION_NOT_FOUND);
}

}  // namespace
}  // namespace gantry::fence::test
