// SPDX-License-Identifier: Apache-2.0
// Simulated time. Work is done at once, on the CPU, when it is enqueued; what passes is its time:
// every stream knows when its last piece of work would end, and who asks or waits sees it end then.
// The time is the process's own on that GPU (sim/gpu_time.h): it stands while another process has
// the GPU. How long a piece of work takes is decided here and nowhere else.
#pragma once

#include "sim/libcuda/driver.hpp"

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim::cuda {

uint64_t now_ns(const Device& device);
// A moment as the wall sees it, where the times of processes can be compared.
uint64_t wall_ns(const Device& device, uint64_t when_ns);

struct LaunchShape {
  uint64_t blocks;
  uint64_t threads_per_block;
};
uint64_t kernel_ns(const Device& device, const LaunchShape& shape);

enum class Path : uint8_t { HostToDevice, DeviceToHost, OnDevice };
uint64_t copy_ns(const Device& device, Path path, uint64_t bytes);

// Puts work behind what is in the stream already (and, for the legacy default stream, behind all
// the blocking streams of its context).
void enqueue(Stream& stream, uint64_t duration_ns);
bool is_done(const Device& device, uint64_t when_ns);
// Returns when that moment has come. Gives up the driver's lock meanwhile.
void wait_until(const Device& device, uint64_t when_ns);

// When everything in the context ends.
uint64_t context_ready_ns(const Context& context);
// A copy through a queue and back: enqueues and waits.
void run_and_wait(Stream& stream, uint64_t duration_ns);

}  // namespace gantry::sim::cuda
