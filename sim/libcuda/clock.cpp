// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/clock.hpp"

#include "sim/libcuda/attributes.hpp"

namespace gantry::sim::cuda {
namespace {

constexpr uint64_t kLaunchNs = 2500;    // an empty kernel on the GPU
constexpr uint64_t kBlockNs = 1200;     // a full wave of small blocks
constexpr uint64_t kCopyNs = 1500;      // before the first byte
constexpr uint64_t kNoSleepNs = 60000;  // shorter waits cost less as a spin than as a sleep

}  // namespace

uint64_t now_ns(const Device& device) {
  return gantry_sim_time_now(driver.time, device.gpu, device.gi);
}

uint64_t wall_ns(const Device& device, uint64_t when_ns) {
  return gantry_sim_time_when(driver.time, device.gpu, device.gi, when_ns);
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
  uint64_t start = stream.ready_ns;
  if (&stream == &context.legacy) {
    size_t cursor = 0;
    while (Object* other = next_of(&context, Kind::Stream, cursor)) {
      const auto* blocking = static_cast<const Stream*>(other);
      if ((blocking->flags & CU_STREAM_NON_BLOCKING) == 0) start = later(start, blocking->ready_ns);
    }
  } else if ((stream.flags & CU_STREAM_NON_BLOCKING) == 0) {
    start = later(start, context.legacy.ready_ns);
  }
  const Device& device = *context.device;
  stream.ready_ns = gantry_sim_time_run(driver.time, device.gpu, device.gi, start, duration_ns);
}

bool is_done(const Device& device, uint64_t when_ns) {
  return gantry_sim_time_left(driver.time, device.gpu, device.gi, when_ns) == 0;
}

void wait_until(const Device& device, uint64_t when_ns) {
  const uint32_t gpu = device.gpu;
  const int32_t gi = device.gi;
  uint64_t left = gantry_sim_time_left(driver.time, gpu, gi, when_ns);
  if (left == 0) return;
  const DriverUnlock unlocked;
  for (; left != 0; left = gantry_sim_time_left(driver.time, gpu, gi, when_ns)) {
    if (left > kNoSleepNs) gantry_sim_time_sleep(driver.time, left);
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
  wait_until(*stream.context->device, stream.ready_ns);
}

}  // namespace gantry::sim::cuda
