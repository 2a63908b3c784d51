/* SPDX-License-Identifier: Apache-2.0
 * A header that ends in .h promises to be C. */
#include "gpu/abi/cuda.h"

int gantry_cuda_header_as_c11(void);
int gantry_cuda_header_as_c11(void) {
  return (int)sizeof(CUDA_MEMCPY3D);
}
