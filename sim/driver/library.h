/* SPDX-License-Identifier: Apache-2.0
 *
 * Code shared by the two simulated libraries and their nvidia-smi. libc only, glibc floor 2.17, no
 * exceptions, no constructors; safe to call from any thread.
 */
#ifndef GANTRY_SIM_LIBRARY_H
#define GANTRY_SIM_LIBRARY_H

#include "sim/driver/image.h"

#include <stddef.h>
#include <stdint.h>

/* Some functions have the name of the struct that they return: C++ then needs "struct
 * gantry_sim_image". */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"

#ifdef __cplusplus
extern "C" {
#endif

/* The image at the end of the file this code was loaded from, mapped once, MAP_SHARED and
 * read-only. NULL if the file has no image or a damaged one. */
const struct gantry_sim_image* gantry_sim_image(void);

/* A consistent copy of the changing part: retries while `sequence` is odd or moves, at most ~10 ms.
 */
void gantry_sim_read_gpu_state(uint32_t gpu, struct gantry_sim_gpu_state* out);

/* Path of our own library file, and the root it was installed below: the file's directory minus
 * machine.library_directory ("" when mounted elsewhere, as in a container). */
const char* gantry_sim_own_file(void);
const char* gantry_sim_root(void);

/* 1 when the caller could open ROOT/dev/nvidiactl (or /dev/nvidiaMINOR) for reading and writing:
 * the node exists with the right numbers and permissions (effective user, groups and capabilities),
 * or the root's dev.table says so for this user. The real driver opens the node; a node without a
 * driver behind it cannot be opened, so this function checks the node instead. */
int gantry_sim_control_visible(void);
int gantry_sim_gpu_visible(uint32_t gpu);

/* Injected misbehaviour of one entry point: sleeps its delay, returns its result (0 = carry on). */
int gantry_sim_fault(const char* function);

/* A text field of the machine ("" when it has none). gpu -1: machine-wide. */
const char* gantry_sim_field(int32_t gpu, const char* name);

#ifdef __cplusplus
}
#endif

#pragma GCC diagnostic pop
#endif
