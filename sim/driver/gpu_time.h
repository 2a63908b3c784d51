/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of the simulated GPUs, shared by all processes that use them: a small file of
 * shared memory, named after the simulated libcuda's inode, in /dev/shm or in the directory that
 * GANTRY_SIM_SHARED names. Processes that see the same file compete for the same GPU: if two or
 * more of them have work, each gets time slices (gpu_schedule_internal.hpp). A process that cannot
 * open the file has the GPU to itself.
 *
 * A file lock holds the slot of a process and ends with the process, even after a kill. The last
 * process removes the file; after kills, the next process that reads the directory does.
 *
 * Times are nanoseconds. GANTRY_SIM_SPEED (1 ... 100) in the environment of the first process makes
 * all simulated time that many times faster than wall time; the other processes read it from the
 * file.
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
  int32_t pid;      /* in the reader's pid namespace; 0 if it is not visible here */
  uint64_t busy_ns; /* since the process started */
  uint64_t window_busy_ns, window_ns;
};

/* NULL only if there is no memory. GANTRY_SIM_TIME_READ does not create the file. */
#define GANTRY_SIM_TIME_READ 1u
struct gantry_sim_time* gantry_sim_time_open(const char* libcuda_file, uint32_t flags);
void gantry_sim_time_close(struct gantry_sim_time* time);
void gantry_sim_time_after_fork(struct gantry_sim_time* time);

/* The current wall time: CLOCK_MONOTONIC, or faster. */
uint64_t gantry_sim_time_wall(struct gantry_sim_time* time);
/* Sleeps at most that long in wall time. */
void gantry_sim_time_sleep(struct gantry_sim_time* time, uint64_t wall_ns);

/* The process's own time on a GPU, which its streams and events use. */
uint64_t gantry_sim_time_now(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id);
/* Adds work of that length, begun now or `not_before`; returns the time of its end. */
uint64_t gantry_sim_time_run(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                             uint64_t not_before, uint64_t duration);
/* 0 if that moment has come; else the least wall time until it can. */
uint64_t gantry_sim_time_left(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                              uint64_t own);
/* The wall time of that moment. */
uint64_t gantry_sim_time_when(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                              uint64_t own);

/* The GPU time of each process, in total and over about the last `window_ns`; at most `capacity`
 * rows. Returns their number. */
size_t gantry_sim_time_list(struct gantry_sim_time* time, uint64_t window_ns,
                            struct gantry_sim_time_use* rows, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
