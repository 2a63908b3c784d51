// SPDX-License-Identifier: Apache-2.0
// The context that is current to the calling thread.
#pragma once

#include "sim/libcuda/driver.hpp"

namespace gantry::sim::cuda {

// nullptr when none is, or the one that was is gone.
Context* current();

// For calls that do work: the current context, or why there is none to work in.
CUresult working_context(Context*& context);

// What a stream handle means in a context: 0 and the two special ones are default streams. nullptr
// when it means nothing.
Stream* stream_in(Context& context, CUstream handle);

// The same for a call: the context is the stream's own where the handle has one.
CUresult working_stream(CUstream handle, Stream*& stream);

CUresult create_context(Device& device, unsigned int flags, Context*& context);
void destroy_context(Context& context);

// A fault on the GPU: every further piece of work of the process fails with it.
void raise_fault(CUresult fault);

// Waits for everything in the context, then lets pools shrink.
CUresult synchronise(Context& context);

}  // namespace gantry::sim::cuda
