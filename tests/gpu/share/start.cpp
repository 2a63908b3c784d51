// SPDX-License-Identifier: Apache-2.0
// The shortest CUDA program: what a process costs until it has a context.
#include "said.hpp"

#include <cuda.h>

int main() {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  return 0;
}
