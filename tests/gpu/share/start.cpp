// SPDX-License-Identifier: Apache-2.0
// The shortest CUDA program: what a process costs until it has a context, and how that divides.
#include "said.hpp"

#include <cuda.h>

int main() {
  CUcontext context = nullptr;
  const double begun = now_ms();
  MUST(cuInit(0));
  const double ready = now_ms();
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  say("{\"init\": %.3f, \"context\": %.3f}", ready - begun, now_ms() - ready);
  return 0;
}
