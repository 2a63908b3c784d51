/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/abi/nvml.h"

int gantry_nvml_h_compiles_as_c(void);
int gantry_nvml_h_compiles_as_c(void) {
  return NVML_SUCCESS;
}
