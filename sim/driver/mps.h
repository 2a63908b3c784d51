/* SPDX-License-Identifier: Apache-2.0
 *
 * What the simulated libcuda does for the simulated nvidia-cuda-mps-server.
 */
#ifndef GANTRY_SIM_MPS_H
#define GANTRY_SIM_MPS_H

#include "sim/driver/image.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_sim_mps_device {
  uint32_t gpu; /* of the machine */
  uint32_t domain, bus, device, function;
  char uuid[96];
  char name[96];
};

struct gantry_sim_mps_devices {
  uint32_t server; /* as the accounting knows it (usage.h) */
  uint32_t count;
  struct gantry_sim_mps_device device[GANTRY_SIM_MAX_GPUS];
};

/* Makes this process the server of clients and takes a server's memory on every GPU that is not in
 * MIG mode. Returns a CUresult. */
int gantrySimMpsServe(struct gantry_sim_mps_devices* devices);

#ifdef __cplusplus
}
#endif
#endif
