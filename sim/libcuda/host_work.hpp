// SPDX-License-Identifier: Apache-2.0
// Functions of the program that have their place in a stream. They run one after the other on a
// thread of the driver's own, each when what is before it in its stream has ended. Since the CPU
// does a GPU's work at once, work behind such a function waits to be enqueued until it has run;
// events and questions do not.
#pragma once

#include "sim/libcuda/driver.hpp"

#include <stdint.h>

namespace gantry::sim::cuda {

struct HostWork {
  CUhostFn function;
  CUstreamCallback callback;  // one of the two
  CUstream stream;            // as the program called it, for the callback
  void* data;
};

// Puts it behind all that is in the stream. On the calling thread where no other can be had, as in
// an old program without libpthread.
CUresult put_host_work(Stream& stream, const HostWork& work);

// The last such function that has to run before something put into the stream now; 0: none.
uint64_t host_work_before(const Stream& stream);
uint64_t host_work_of(const Context& context);
bool host_work_done(uint64_t number);
// Gives up the driver's lock meanwhile.
void wait_for_host_work(uint64_t number);

// These functions must not call the driver, which would wait for itself.
bool on_host_work_thread();

}  // namespace gantry::sim::cuda
