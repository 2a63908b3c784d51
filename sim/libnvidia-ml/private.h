/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the simulated libnvidia-ml.so.1 exports in addition to NVML, for our nvidia-smi.
 */
#ifndef GANTRY_SIM_NVML_PRIVATE_H
#define GANTRY_SIM_NVML_PRIVATE_H

#include "gpu/abi/nvml.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A text that `nvidia-smi -q` shows and NVML has no call for; "" when there is none. NULL: the
 * machine. */
const char* gantrySimField(nvmlDevice_t device, const char* name);

/* The address of a GPU for which NVML gives no handle. */
nvmlReturn_t gantrySimPciInfo(unsigned int index, nvmlPciInfo_t* pci);

/* nvidia-smi --gpu-reset: NVML_ERROR_IN_USE while another process has the GPU open through NVML or
 * CUDA, NVML_ERROR_NO_PERMISSION to others than root. Clears the counters since the driver was
 * loaded, remaps pending rows, activates a pending MIG mode and removes the MIG instances. */
nvmlReturn_t gantrySimResetGpu(nvmlDevice_t device);

#ifdef __cplusplus
}
#endif
#endif
