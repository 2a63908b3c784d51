// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/clock.hpp"

#include "sim/cuda/attributes.hpp"

#include <time.h>

namespace gantry::sim::cuda {
namespace {

uint64_t later(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

constexpr uint64_t kLaunchNs = 2500;    // an empty kernel on the GPU
constexpr uint64_t kBlockNs = 1200;     // a full wave of small blocks
constexpr uint64_t kCopyNs = 1500;      // before the first byte
constexpr uint64_t kNoSleepNs = 60000;  // shorter waits cost less as a spin than as a sleep

}  // namespace

uint64_t now_ns() {
  struct timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
}

// As many blocks at a time as fit on the multiprocessors.
uint64_t kernel_ns(const Device& device, const LaunchShape& shape) {
  const Generation& generation = generation_of(device);
  const uint64_t threads = shape.threads_per_block == 0 ? 1 : shape.threads_per_block;
  uint64_t resident = static_cast<uint64_t>(generation.threads_per_multiprocessor) / threads;
  if (resident == 0) resident = 1;
  const uint64_t most = static_cast<uint64_t>(generation.blocks_per_multiprocessor);
  if (resident > most) resident = most;
  const uint64_t wave = resident * (device.multiprocessors == 0 ? 1 : device.multiprocessors);
  return kLaunchNs + (shape.blocks + wave - 1) / wave * kBlockNs;
}

uint64_t copy_ns(const Device& device, Path path, uint64_t bytes) {
  const gantry_sim_gpu& card = *device.card;
  uint64_t bytes_per_us = 0;
  if (path ==
      Path::OnDevice) {  // read and written: half of what the memory can do, two edges a clock
    bytes_per_us = static_cast<uint64_t>(card.memory_bus_bits) / 8 * card.clock_memory_max;
  } else {
    const uint32_t generation = card.pcie_gen_max > 6 ? 6 : card.pcie_gen_max;
    bytes_per_us = (250ULL << (generation == 0 ? 0 : generation - 1)) * card.pcie_width_max * 4 / 5;
  }
  return kCopyNs + bytes * 1000 / (bytes_per_us == 0 ? 1000 : bytes_per_us);
}

void enqueue(Stream& stream, uint64_t duration_ns) {
  Context& context = *stream.context;
  uint64_t start = later(now_ns(), stream.ready_ns);
  if (&stream == &context.legacy) {
    size_t cursor = 0;
    while (Object* other = next_of(&context, Kind::Stream, cursor)) {
      const auto* blocking = static_cast<const Stream*>(other);
      if ((blocking->flags & CU_STREAM_NON_BLOCKING) == 0) start = later(start, blocking->ready_ns);
    }
  } else if ((stream.flags & CU_STREAM_NON_BLOCKING) == 0) {
    start = later(start, context.legacy.ready_ns);
  }
  stream.ready_ns = start + duration_ns;
}

bool is_done(uint64_t when_ns) {
  return now_ns() >= when_ns;
}

void wait_until(uint64_t when_ns) {
  uint64_t now = now_ns();
  if (now >= when_ns) return;
  const Unlocked unlocked;
  for (; now < when_ns; now = now_ns()) {
    if (when_ns - now > kNoSleepNs) sleep_us((when_ns - now) / 1000);
  }
}

uint64_t context_ready_ns(const Context& context) {
  uint64_t ready = context.legacy.ready_ns;
  size_t cursor = 0;
  while (Object* stream = next_of(&context, Kind::Stream, cursor))
    ready = later(ready, static_cast<Stream*>(stream)->ready_ns);
  return ready;
}

void run_and_wait(Stream& stream, uint64_t duration_ns) {
  enqueue(stream, duration_ns);
  wait_until(stream.ready_ns);
}

}  // namespace gantry::sim::cuda
