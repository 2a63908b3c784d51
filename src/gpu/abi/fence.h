/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fence in a container and the keeper on the host say to each other: two pages of shared
 * memory and a few messages. The only header that both sides have. C11 and C++20, no library.
 *
 * A process attaches: it connects to FENCE_SOCKET, sends FenceHello, and gets FenceWelcome with two
 * descriptors, both sealed so that neither can shrink or grow: limits  written by the keeper alone
 * (the tenant's descriptor cannot be mapped writable) usage   written by the tenant, and by the
 * keeper when it takes back what a dead process held The keeper copies single values out of
 * `usage`, clamps them, and believes none: no index, no length, no pointer in it is followed. All
 * fields are naturally aligned and are read and written with atomic instructions.
 */
#ifndef GANTRY_FENCE_ABI_H
#define GANTRY_FENCE_ABI_H

#include <stdint.h>

#ifdef __cplusplus
#define FENCE_ASSERT static_assert
extern "C" {
#else
#define FENCE_ASSERT _Static_assert
#endif

/* The same path in every container, and in the mount namespace of `gantry share run`. The driver's
 * own libraries are there under names that ldconfig ignores: it takes only lib*.so*. */
#define FENCE_DIRECTORY "/run/gantry/fence"
#define FENCE_SOCKET FENCE_DIRECTORY "/socket"
#define FENCE_REAL_CUDA FENCE_DIRECTORY "/cuda"
#define FENCE_REAL_NVML FENCE_DIRECTORY "/nvml"

/* In the bytes of the libraries, followed by the version's digit: for who looks at the files. */
#define FENCE_SPEAKS "gantry-fence speaks version "

enum {
  FENCE_VERSION = 2,
  FENCE_MAGIC = 0x46544e47, /* "GNTF" */
  FENCE_MAX_GPUS = 64,
  FENCE_MAX_PROCESSES = 1024, /* of one share */
};

/* FenceGpuLimits.gate: what the share's processes may do on this GPU now, below the number of the
 * turn. A futex. */
enum FenceGate {
  FENCE_OPEN = 0, /* launch; no more than queue_ns of work waiting */
  FENCE_ONE =
      1, /* launch when the last launch has ended: somebody who is under its share is about */
  FENCE_SHUT = 2, /* wait */
  FENCE_GATE_MASK = 3,
  FENCE_TURN_SHIFT = 2,
};

/* FenceLimits.flags */
enum {
  FENCE_TIME_LIMITED =
      1, /* gates and reports of work; without it a launch costs one look at this word */
  FENCE_PASS_THROUGH =
      2, /* where the fence cannot attach: 1 run without it and say so, 0 refuse cuInit */
  FENCE_CONTEXT_FREE = 4, /* contexts and modules do not count against the memory limit */
};

/* One GPU of the share, in the order that the container sees them. */
typedef struct FenceGpuLimits {
  uint8_t uuid[16];         /* as cuDeviceGetUuid_v2 has it */
  uint64_t memory_limit;    /* bytes; UINT64_MAX: none */
  uint64_t memory_total;    /* of the card */
  uint64_t memory_overhead; /* what the share's processes hold beyond their ledgers, as NVML has it:
                               contexts, modules */
  uint64_t context_estimate; /* what a context costs, for those that memory_overhead does not
                                include yet */
  uint64_t queue_ns;         /* with an open gate: work that may wait in the queue of one process */
  uint32_t share_percent;    /* of GPU time; 0: by weight alone */
  uint32_t reserved0;
  uint64_t reading_ns; /* CLOCK_MONOTONIC, when NVML was last asked: memory_overhead and the
                         contexts seen are no older. 0: never */
  uint8_t reserved1[56];
  /* A cache line of its own: read at every launch, written at every turn. */
  uint32_t gate;
  uint32_t reserved2[15];
  uint8_t reserved3[64];
} FenceGpuLimits;
FENCE_ASSERT(sizeof(FenceGpuLimits) == 256, "the layout is a contract");

/* What the keeper knows of one process, by slot. */
typedef struct FenceProcess {
  uint32_t host_pid;             /* 0: free */
  uint32_t pid;                  /* as the container's own processes see it, 0 if unknown */
  uint64_t used[FENCE_MAX_GPUS]; /* bytes, as NVML has it */
  uint32_t seen_contexts[FENCE_MAX_GPUS]; /* contexts that memory_overhead includes */
} FenceProcess;
FENCE_ASSERT(sizeof(FenceProcess) == 776, "the layout is a contract");

typedef struct FenceLimits {
  uint32_t magic;
  uint32_t version;
  uint32_t flags;
  uint32_t gpu_count;
  uint32_t slots_in_use; /* no slot from here on holds anything */
  uint32_t reserved0;
  uint64_t heartbeat_ns; /* CLOCK_MONOTONIC, every 100 ms: older than FENCE_STALE_NS and nobody
                       guards the gates */
  char share[64];
  uint8_t reserved1[160];
  FenceGpuLimits gpu[FENCE_MAX_GPUS];
  FenceProcess process[FENCE_MAX_PROCESSES];
} FenceLimits;
FENCE_ASSERT(sizeof(FenceLimits) == 256 + 64 * 256 + 1024 * 776, "the layout is a contract");
#define FENCE_STALE_NS 1000000000ull

/* One process on one GPU. `held` and `pending` are the ledger: to reserve n bytes, add n to
 * `pending`, then sum up all rows of the GPU; if it fits move n from `pending` to `held`, otherwise
 * take it back. Each adds before it sums, so two can never both fit where one does; there is no
 * total that a killed process could leave wrong. */
typedef struct FenceUsageRow {
  uint64_t held;
  uint64_t pending;
  uint64_t launches;   /* rough: for people */
  uint64_t cost_ns;    /* learned: mean time of a launch */
  uint64_t drained_ns; /* CLOCK_MONOTONIC, when the queue was last seen empty */
  uint32_t drained;    /* the turn at whose end it was */
  uint32_t busy;       /* 1: there may be work on the GPU */
  uint32_t waiting;    /* threads at the gate */
  uint32_t contexts;   /* made and not destroyed */
  uint64_t
      managed; /* the part of `held` that NVML does not show as this process's: managed memory */
  /* Calls that take memory from the driver or give it back. While one is under way, `held` and what
   * NVML shows do not fit; a look at NVML says something when both were equal before it, and the
   * same after it. */
  uint64_t begun;
  uint64_t ended;
  uint64_t reserved[6];
} FenceUsageRow;
FENCE_ASSERT(sizeof(FenceUsageRow) == 128, "cache lines of its own");

/* Followed by rows [gpu_count][FENCE_MAX_PROCESSES]. */
typedef struct FenceUsage {
  uint32_t lock; /* futex for the slow path of the ledger: 0, or 1 + the slot that has it; the
                    keeper frees a dead one's */
  uint32_t reserved[15];
} FenceUsage;
FENCE_ASSERT(sizeof(FenceUsage) == 64, "the layout is a contract");

static inline uint64_t fence_usage_size(uint32_t gpu_count) {
  return sizeof(FenceUsage) + (uint64_t)gpu_count * FENCE_MAX_PROCESSES * sizeof(FenceUsageRow);
}

/* Messages: SOCK_SEQPACKET, one struct each. */
enum FenceRole {
  FENCE_WORKER = 1,   /* a process with CUDA: gets a slot */
  FENCE_OBSERVER = 2, /* only looks (NVML): no slot */
};

typedef struct FenceHello {
  uint32_t magic;
  uint32_t version;
  uint32_t role;
  uint32_t pid; /* in its own namespace, for people; the keeper takes the host's from the socket */
} FenceHello;

enum FenceRefusal {
  FENCE_ACCEPTED = 0,
  FENCE_BAD_VERSION = 1,
  FENCE_NO_SLOT = 2,
  FENCE_NO_SHARE = 3,
  FENCE_NOT_YET = 4, /* a keeper that is new does not know yet what the share's processes hold: ask
                        again soon, and go by the pages of the old one meanwhile */
};

typedef struct FenceWelcome { /* with SCM_RIGHTS: limits, usage */
  uint32_t magic;
  uint32_t version;
  uint32_t refusal;
  uint32_t slot;
  uint64_t limits_size;
  uint64_t usage_size;
} FenceWelcome;

enum FenceEvent {
  FENCE_ACTIVE = 1,  /* first launch after idle, whether it may go on or waits at the gate */
  FENCE_DRAINED = 2, /* the queue is empty after the gate was shut: `turn` */
  FENCE_IDLE = 3,    /* the queue is empty and nobody launches */
  FENCE_CONTEXT = 4, /* a context was made or destroyed, a module loaded: look at NVML */
  FENCE_REFUSED = 5, /* an allocation of `value` bytes was refused */
};

typedef struct FenceReport {
  uint32_t event;
  uint32_t gpu; /* index in FenceLimits.gpu */
  uint32_t turn;
  uint32_t reserved;
  uint64_t value;
} FenceReport;

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_FENCE_ABI_H */
