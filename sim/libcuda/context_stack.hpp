// SPDX-License-Identifier: Apache-2.0
// Each thread's stack of contexts. It holds only addresses: the caller must check that the context
// still exists.
#pragma once

#include "sim/libcuda/objects.hpp"

namespace gantry::sim::cuda {

Context* top_of_stack();              // nullptr when empty
bool push_context(Context* context);  // false when the stack is full
void pop_context();
void replace_top(Context* context);  // nullptr empties the top; an empty stack gets one entry

}  // namespace gantry::sim::cuda
