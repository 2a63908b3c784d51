// SPDX-License-Identifier: Apache-2.0
// The context that is current to the calling thread.
#pragma once

#include "sim/libcuda/driver.hpp"

namespace gantry::sim::cuda {

int32_t thread_id();  // of the caller, as the kernel numbers it

// nullptr if there is none, or if it was destroyed.
Context* current();

// For calls that do work: the current context, or the error if there is none that can be used.
CUresult working_context(Context*& context);

// The stream of a handle in a context: 0 and the two special handles are default streams. nullptr
// if the handle is not valid.
Stream* stream_in(Context& context, CUstream handle);

// The same for a call: the context is that of the stream if the handle has one.
CUresult working_stream(CUstream handle, Stream*& stream);

// The error if the compute mode keeps this process from the device. In exclusive mode one process
// has it to itself: any process, or an MPS server with its clients.
CUresult may_use(const Device& device);

CUresult create_context(Device& device, unsigned int flags, Context*& context);
void destroy_context(Context& context);

// Raises a fault on the GPU: all further work of the process fails with it.
void raise_fault(CUresult fault);

// Waits for everything in the context, then lets pools shrink.
CUresult synchronise(Context& context);

}  // namespace gantry::sim::cuda
