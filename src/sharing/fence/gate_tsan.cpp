// SPDX-License-Identifier: Apache-2.0
// Tests the gate with many threads. Built with the thread sanitizer in every preset.
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/driver_for_test.hpp"
#include "sharing/fence/gate.hpp"
#include "sharing/fence/gpus.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace gantry::fence::test {
namespace {

constexpr int kThreads = 6;
constexpr int kLaunches = 1500;

void launch(CUstream stream, std::uint64_t nanoseconds, const void* graph = nullptr) {
  Launch made = {.stream = stream,
                 .kind = graph == nullptr ? LaunchKind::Kernel : LaunchKind::Graph,
                 .what = graph};
  const LaunchEntry entry = gate_enter(made);
  EXPECT_EQ(enqueue(stream, nanoseconds), CUDA_SUCCESS);
  if (entry == LaunchEntry::Counted) gate_exit(made);
}

void synchronize(CUstream stream) {
  WaitScope before;
  gate_before_wait(stream, before);
  if (real().cuStreamSynchronize(stream) == CUDA_SUCCESS) gate_after_wait(before);
}

CUstream new_stream() {
  CUstream made = nullptr;
  EXPECT_EQ(real().cuStreamCreate(&made, 0), CUDA_SUCCESS);
  return made;
}

// Some threads share the legacy stream; the others create and destroy streams.
void program(int number) {
  CUstream stream = number % 3 == 0 ? CU_STREAM_LEGACY : new_stream();
  for (int i = 0; i < kLaunches; ++i) {
    launch(stream, 3000, i % 40 == 39 ? &kThreads : nullptr);
    if (i % 97 == 96) synchronize(stream);
    if (i % 151 == 150) gate_after_event_sync();
    if (i % 211 == 210 && stream != CU_STREAM_LEGACY) {
      gate_before_stream_destroy(stream);
      EXPECT_EQ(real().cuStreamDestroy_v2(stream), CUDA_SUCCESS);
      stream = new_stream();
    }
    if (i % 307 == 306) {
      gate_before_capture();
      gate_after_capture_end();
    }
  }
}

std::size_t count(FenceEvent event) {
  std::size_t found = 0;
  for (const FenceReport& report : reports())
    found += report.event == static_cast<std::uint32_t>(event) ? 1U : 0U;
  return found;
}

TEST(Threads, LaunchSynchronizeAndDestroyWhileTurnsChange) {
  start_small_driver();
  find_gpus();
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&running, i] {
      program(i);
      --running;
    });
  }
  std::uint32_t turn = 0;
  while (running != 0) {
    set_gate(turn % 4 == 0 ? FENCE_ONE : FENCE_OPEN, turn);
    sleep_for_ns(2'000'000);
    set_gate(FENCE_SHUT, ++turn);
    const std::uint64_t end = monotonic_ns() + 500'000'000;
    const FenceUsageRow& row = own_row(0);
    while (__atomic_load_n(&row.drained, __ATOMIC_ACQUIRE) != turn &&
           __atomic_load_n(&row.busy, __ATOMIC_ACQUIRE) != 0 && monotonic_ns() < end)
      sleep_for_ns(50'000);
    if (__atomic_load_n(&row.drained, __ATOMIC_ACQUIRE) == turn) {
      EXPECT_TRUE(all_ended()) << "drained means that nothing runs";
    }
  }
  for (auto& thread : threads) thread.join();
  set_gate(FENCE_OPEN, turn);
  EXPECT_GE(count(FENCE_ACTIVE), 1U);
  EXPECT_EQ(__atomic_load_n(&own_row(0).waiting, __ATOMIC_RELAXED), 0U);
  EXPECT_EQ(misuses(), 0U) << "nothing was recorded on a stream that is gone";
  const std::uint64_t end = monotonic_ns() + 10'000'000'000U;
  while (__atomic_load_n(&own_row(0).busy, __ATOMIC_RELAXED) != 0 && monotonic_ns() < end)
    sleep_for_ns(1'000'000);
  EXPECT_EQ(__atomic_load_n(&own_row(0).busy, __ATOMIC_RELAXED), 0U);
}

}  // namespace
}  // namespace gantry::fence::test
