// SPDX-License-Identifier: Apache-2.0
// Host functions of the program in a stream. They run one after the other on a thread of the
// driver, each when the work before it in its stream has ended. Because the CPU does the GPU's work
// at once, work after such a function is enqueued only when the function has run. Events and
// queries do not wait.
#pragma once

#include "sim/libcuda/driver.hpp"

#include <stdint.h>

namespace gantry::sim::cuda {

struct HostWork {
  CUhostFn function;
  CUstreamCallback callback;  // one of the two
  CUstream stream;            // the program's handle, for the callback
  void* data;
};

// Adds it after all work in the stream. Runs it on the calling thread if no thread can be created,
// as in an old program without libpthread.
CUresult put_host_work(Stream& stream, const HostWork& work);

// The last host function that must run before new work in the stream; 0: none.
uint64_t host_work_before(const Stream& stream);
uint64_t host_work_of(const Context& context);
bool host_work_done(uint64_t number);
// Releases the driver's lock while it waits.
void wait_for_host_work(uint64_t number);

// Host functions must not call the driver: it would wait for itself.
bool on_host_work_thread();

}  // namespace gantry::sim::cuda
