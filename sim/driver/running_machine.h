/* SPDX-License-Identifier: Apache-2.0
 *
 * The libraries of a driver package (`gantry sim package`) do not know on which machine they will
 * be installed. Their image has the cards that exist; the machine is what the running kernel says.
 */
#ifndef GANTRY_SIM_RUNNING_MACHINE_H
#define GANTRY_SIM_RUNNING_MACHINE_H

#include "sim/driver/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether this library is of a package. */
int gantry_sim_is_packaged(void);

/* Reads the machine again: its GPUs, and which driver is loaded. Call it where the vendor's library
 * asks the kernel, when no other thread uses the machine. Does nothing in a simulated machine. */
void gantry_sim_look_again(void);

/* A process that uses the vendor's driver has its nodes open, so that the kernel knows that the
 * driver is in use. Does nothing in a simulated machine. */
void gantry_sim_hold_nodes(int with_uvm);
void gantry_sim_release_nodes(void);

#ifdef __cplusplus
}

namespace gantry::sim {

/* Describes the machine below `root` ("" is this one): each GPU of /proc/driver/nvidia is a copy of
 * its card, with its own address, UUID, minor, NUMA node. The state of a GPU is that of its card,
 * without persistence mode. A GPU of an unknown kind is left out. */
void describe_running_machine(const struct gantry_sim_image& cards, const char* root,
                              struct gantry_sim_image& out);

}  // namespace gantry::sim
#endif

#endif
