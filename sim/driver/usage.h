/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory in use, accounted across processes by open-file-description locks on the simulated
 * libcuda file. A lock needs no write access, so it works on the read-only mount of a container; it
 * is visible to every process that has the same inode, in any namespace; and the kernel drops it
 * when its holder dies. The lengths of locked ranges encode the numbers.
 *
 * Per process one slot (0...GANTRY_SIM_SLOTS-1); a slot has ranges for the owner (pid in its own
 * pid namespace, and that namespace's inode number) and the bytes held on each GPU or MIG instance.
 * Reservations of all processes are serialised by flock() on a second descriptor, waited for at
 * most a second.
 */
#ifndef GANTRY_SIM_USAGE_H
#define GANTRY_SIM_USAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_SIM_SLOTS 4096u

struct gantry_sim_use {
  uint32_t slot;
  uint32_t gpu;
  int32_t gi_id, ci_id; /* -1: whole GPU */
  int32_t pid;          /* in the reader's pid namespace; 0 if it is not visible here */
  uint64_t bytes;       /* context and allocations */
  uint32_t mps_server;  /* of this MPS client; of a server itself: slot + 1; 0: no MPS */
};

struct gantry_sim_usage; /* one per library; opaque */

/* `libcuda_file` is the anchor. NULL on failure. Reading needs no slot. */
struct gantry_sim_usage* gantry_sim_usage_open(const char* libcuda_file);
/* Releases everything that this process holds through it. */
void gantry_sim_usage_close(struct gantry_sim_usage* usage);
/* For a child after fork(): forgets the parent's locks without dropping them. */
void gantry_sim_usage_after_fork(struct gantry_sim_usage* usage);

/* Adds `bytes` to what this process holds on `gpu` if all processes together then hold at most
 * `limit`. 0 = done, -1 = over the limit, -2 = the accounting itself failed. */
int gantry_sim_usage_add(struct gantry_sim_usage* usage, uint32_t gpu, int32_t gi_id, int32_t ci_id,
                         uint64_t bytes, uint64_t limit);
void gantry_sim_usage_sub(struct gantry_sim_usage* usage, uint32_t gpu, int32_t gi_id,
                          int32_t ci_id, uint64_t bytes);
uint64_t gantry_sim_usage_total(struct gantry_sim_usage* usage, uint32_t gpu, int32_t gi_id,
                                int32_t ci_id);

/* Makes this process an MPS server. Returns the number by which its clients name it; 0 on failure.
 */
uint32_t gantry_sim_usage_serve(struct gantry_sim_usage* usage);
/* Makes this process a client of that server. 0 = done, -1 = failed. */
int gantry_sim_usage_join(struct gantry_sim_usage* usage, uint32_t mps_server);

/* The use of one GPU by all processes, at most `capacity` rows; returns their number. */
size_t gantry_sim_usage_list(struct gantry_sim_usage* usage, uint32_t gpu,
                             struct gantry_sim_use* rows, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
