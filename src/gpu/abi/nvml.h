/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML as the vendor's library exports it: types, numbers of field values, prototypes.
 * Functions have the names of the symbols; there are no macros that turn nvmlInit into nvmlInit_v2.
 */
#ifndef GANTRY_ABI_NVML_H
#define GANTRY_ABI_NVML_H

#include "gpu/abi/nvml_fields.h"
#include "gpu/abi/nvml_types.h"

#ifdef __cplusplus
extern "C" {
#endif

const char* nvmlErrorString(nvmlReturn_t result);

#define GANTRY_NVML(since, name, parameters) nvmlReturn_t name parameters;
#include "gpu/abi/nvml_functions.def"
#undef GANTRY_NVML

#ifdef __cplusplus
}
#endif
#endif
