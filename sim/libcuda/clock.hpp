// SPDX-License-Identifier: Apache-2.0
// Simulated time. The CPU does the work at once, when it is enqueued; only its time passes later.
// Every stream knows when its last work ends, and queries and waits see it end then. The time is
// the process's own time on that GPU (sim/driver/gpu_time.h): it stops while another process has
// the GPU. Only this module decides how long work takes.
#pragma once

#include "sim/libcuda/driver.hpp"

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim::cuda {

constexpr uint64_t later(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

uint64_t now_ns(const Device& device);
// Converts a moment to wall time, in which the times of processes can be compared.
uint64_t wall_ns(const Device& device, uint64_t when_ns);

struct LaunchShape {
  uint64_t blocks;
  uint64_t threads_per_block;
};
uint64_t kernel_ns(const Device& device, const LaunchShape& shape);

enum class Path : uint8_t { HostToDevice, DeviceToHost, OnDevice };
uint64_t copy_ns(const Device& device, Path path, uint64_t bytes);

// Adds work after the work that is already in the stream (and, for the legacy default stream, after
// all blocking streams of its context).
void enqueue(Stream& stream, uint64_t duration_ns);
bool is_done(const Device& device, uint64_t when_ns);
// Waits for that moment. Releases the driver's lock while it waits.
void wait_until(const Device& device, uint64_t when_ns);

// The time at which all work in the context ends.
uint64_t context_ready_ns(const Context& context);
// A copy through a queue and back: enqueues and waits.
void run_and_wait(Stream& stream, uint64_t duration_ns);

}  // namespace gantry::sim::cuda
