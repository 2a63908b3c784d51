// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/context_stack.hpp"

namespace gantry::sim::cuda {
namespace {

constexpr int kDepth = 128;
struct Stack {
  Context* context[kDepth];
  int depth;
};
thread_local Stack stack{};

}  // namespace

Context* top_of_stack() {
  return stack.depth == 0 ? nullptr : stack.context[stack.depth - 1];
}

bool push_context(Context* context) {
  if (stack.depth == kDepth) return false;
  stack.context[stack.depth++] = context;
  return true;
}

void pop_context() {
  if (stack.depth > 0) --stack.depth;
}

void replace_top(Context* context) {
  pop_context();
  if (context != nullptr) push_context(context);
}

}  // namespace gantry::sim::cuda
