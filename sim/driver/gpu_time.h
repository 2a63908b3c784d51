/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of the simulated GPUs, shared by all processes that use them: a small file of
 * shared memory, named after the simulated libcuda's inode, in /dev/shm or in the directory that
 * GANTRY_SIM_SHARED names. Processes that see the same file contend for the same GPU: with work of
 * two or more of them it is sliced among them (gpu_schedule_internal.hpp). A process that cannot
 * have the file has the GPU to itself.
 *
 * A seat is kept by a file lock that ends with its process, however that ends; the file itself goes
 * with the last process or, after kills, with the next one that looks into the directory.
 *
 * Times are nanoseconds. GANTRY_SIM_SPEED (1 ... 100) in the environment of the first process makes
 * all simulated time that many times faster than the wall's; the file carries it to the others.
 */
#ifndef GANTRY_SIM_GPU_TIME_H
#define GANTRY_SIM_GPU_TIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_sim_time; /* one per library; opaque */

struct gantry_sim_time_use {
  uint32_t gpu;
  int32_t gi_id;    /* -1: whole GPU */
  int32_t pid;      /* in the reader's pid namespace; 0 when it cannot be seen from here */
  uint64_t busy_ns; /* since the process came */
  uint64_t window_busy_ns, window_ns;
};

/* Never NULL but for want of memory. GANTRY_SIM_TIME_READ makes no file where there is none. */
#define GANTRY_SIM_TIME_READ 1u
struct gantry_sim_time* gantry_sim_time_open(const char* libcuda_file, uint32_t flags);
void gantry_sim_time_close(struct gantry_sim_time* time);
void gantry_sim_time_after_fork(struct gantry_sim_time* time);

/* The present, on the wall's side: CLOCK_MONOTONIC, or faster. */
uint64_t gantry_sim_time_wall(struct gantry_sim_time* time);
/* Sleeps at most that long on the wall's side. */
void gantry_sim_time_sleep(struct gantry_sim_time* time, uint64_t wall_ns);

/* The process's own time on a GPU, which is what its streams and events count in. */
uint64_t gantry_sim_time_now(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id);
/* Work of that length, begun now or `not_before`; returns when it ends. */
uint64_t gantry_sim_time_run(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                             uint64_t not_before, uint64_t duration);
/* 0 when that moment has come; else the least time on the wall's side until it can. */
uint64_t gantry_sim_time_left(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                              uint64_t own);
/* When it was, on the wall's side. */
uint64_t gantry_sim_time_when(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                              uint64_t own);

/* Who has had how much, in all and over about the last `window_ns`; at most `capacity` rows,
 * returns how many. */
size_t gantry_sim_time_list(struct gantry_sim_time* time, uint64_t window_ns,
                            struct gantry_sim_time_use* rows, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
