/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol between the fence in a container and the share daemon on the host: two pages of
 * shared memory and a few messages. It is the only header that both sides include. C11 and C++20,
 * no library.
 *
 * To attach, a process connects to FENCE_SOCKET, sends FenceHello, and gets FenceWelcome with two
 * descriptors, both sealed so that they can neither shrink nor grow:
 *
 * - limits: only the daemon writes it; the tenant's descriptor cannot be mapped writable.
 * - usage: the tenant writes it, and the daemon does when it frees what a dead process held.
 *
 * The daemon copies single values out of `usage` and clamps them. It trusts none of them: it never
 * follows an index, a length or a pointer from there. All fields are naturally aligned and are read
 * and written with atomic instructions.
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

/* In the bytes of the libraries, followed by the version's digit, so that the version can be read
 * from the files. */
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
  /* Launch; no more than queue_ns of work may wait. */
  FENCE_OPEN = 0,
  /* Launch when the last launch has ended: a share that had less than its part is active. */
  FENCE_ONE = 1,
  /* Wait. */
  FENCE_SHUT = 2,
  FENCE_GATE_MASK = 3,
  FENCE_TURN_SHIFT = 2,
};

/* FenceLimits.flags */
enum {
  /* Gates and reports are used. Without this flag a launch costs one read of this word. */
  FENCE_TIME_LIMITED = 1,
  /* If the fence cannot attach: 1: run without it and report that; 0: refuse cuInit. */
  FENCE_PASS_THROUGH = 2,
  /* Contexts and modules do not count against the memory limit. */
  FENCE_CONTEXT_FREE = 4,
};

/* One GPU of the share, in the order that the container sees them. */
typedef struct FenceGpuLimits {
  uint8_t uuid[16];          /* as in cuDeviceGetUuid_v2 */
  uint64_t memory_limit;     /* bytes; UINT64_MAX: none */
  uint64_t memory_total;     /* of the card */
  uint64_t memory_overhead;  /* memory of the share's processes that they do not count themselves,
                                according to NVML: contexts, modules */
  uint64_t context_estimate; /* memory of a context, for contexts that memory_overhead does not
                                include yet */
  uint64_t queue_ns;         /* work that one process may have queued while the gate is open */
  uint32_t share_percent;    /* of GPU time; 0: only by weight */
  uint32_t cap_percent;      /* the share never gets more than this; 0: there is no such cap. A
                                process keeps to it by itself while no daemon controls the gates */
  uint64_t reading_ns;       /* CLOCK_MONOTONIC, when NVML was last read: memory_overhead and
                               seen_contexts are not older. 0: never */
  uint8_t reserved1[56];
  /* In its own cache line: read at every launch, written at every turn. */
  uint32_t gate;
  uint32_t reserved2[15];
  uint8_t reserved3[64];
} FenceGpuLimits;
FENCE_ASSERT(sizeof(FenceGpuLimits) == 256, "the layout is a contract");

/* The daemon's record of one process, by slot. */
typedef struct FenceProcess {
  uint32_t host_pid;                      /* 0: free */
  uint32_t pid;                           /* as seen inside the container, 0 if unknown */
  uint64_t used[FENCE_MAX_GPUS];          /* bytes, according to NVML */
  uint32_t seen_contexts[FENCE_MAX_GPUS]; /* contexts that memory_overhead includes */
} FenceProcess;
FENCE_ASSERT(sizeof(FenceProcess) == 776, "the layout is a contract");

typedef struct FenceLimits {
  uint32_t magic;
  uint32_t version;
  uint32_t flags;
  uint32_t gpu_count;
  uint32_t slots_in_use; /* all slots from this one on are free */
  uint32_t stale_ms;     /* if the heartbeat is older, no daemon controls the gates. 0: after
                            FENCE_STALE_NS; also the value of daemons that do not know the field */
  uint64_t heartbeat_ns; /* CLOCK_MONOTONIC, written several times within stale_ms */
  char share[64];
  uint8_t reserved1[160];
  FenceGpuLimits gpu[FENCE_MAX_GPUS];
  FenceProcess process[FENCE_MAX_PROCESSES];
} FenceLimits;
FENCE_ASSERT(sizeof(FenceLimits) == 256 + 64 * 256 + 1024 * 776, "the layout is a contract");
#define FENCE_STALE_NS 1000000000ull
/* Without a daemon for this long, the launches of a share with a cap are refused. */
#define FENCE_REFUSE_NS 10000000000ull

/* One process on one GPU. `held` and `pending` count its memory. To reserve n bytes, add n to
 * `pending`, then sum up all rows of the GPU. If the sum fits, move n from `pending` to `held`,
 * otherwise subtract it again. Every process adds before it sums, so two reservations can never
 * both succeed if only one fits. There is no total that a killed process could leave wrong. */
typedef struct FenceUsageRow {
  uint64_t held;
  uint64_t pending;
  uint64_t launches;   /* approximate: for people */
  uint64_t cost_ns;    /* learned: mean time of a launch */
  uint64_t drained_ns; /* CLOCK_MONOTONIC, when the queue was last seen empty */
  uint32_t drained;    /* the turn that had ended then */
  uint32_t busy;       /* 1: there may be work on the GPU */
  uint32_t waiting;    /* threads at the gate */
  uint32_t contexts;   /* created and not destroyed */
  uint64_t
      managed; /* the part of `held` that NVML does not count for this process: managed memory */
  /* The numbers of calls, begun and ended, that allocate or free memory in the driver. During such
   * a call `held` and NVML's value do not agree. A reading of NVML is valid if both counters were
   * equal before it and have not changed after it. */
  uint64_t begun;
  uint64_t ended;
  uint64_t reserved[6];
} FenceUsageRow;
FENCE_ASSERT(sizeof(FenceUsageRow) == 128, "each row has its own cache lines");

/* Followed by rows [gpu_count][FENCE_MAX_PROCESSES]. */
typedef struct FenceUsage {
  uint32_t lock; /* futex for the slow path of a reservation: 0, or 1 + the slot that holds it;
                    the daemon releases the lock of a dead process */
  uint32_t reserved[15];
} FenceUsage;
FENCE_ASSERT(sizeof(FenceUsage) == 64, "the layout is a contract");

static inline uint64_t fence_usage_size(uint32_t gpu_count) {
  return sizeof(FenceUsage) + (uint64_t)gpu_count * FENCE_MAX_PROCESSES * sizeof(FenceUsageRow);
}

/* Messages: SOCK_SEQPACKET, one struct each. */
enum FenceRole {
  FENCE_WORKER = 1,   /* a process with CUDA: gets a slot */
  FENCE_OBSERVER = 2, /* only reads (NVML): no slot */
};

typedef struct FenceHello {
  uint32_t magic;
  uint32_t version;
  uint32_t role;
  uint32_t
      pid; /* in its own namespace, for people; the daemon takes the host's pid from the socket */
} FenceHello;

enum FenceRefusal {
  FENCE_ACCEPTED = 0,
  FENCE_BAD_VERSION = 1,
  FENCE_NO_SLOT = 2,
  FENCE_NO_SHARE = 3,
  FENCE_NOT_YET = 4, /* the daemon has just started and does not know yet what the share's
                        processes hold: ask again soon, and use the old pages until then */
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
  FENCE_ACTIVE = 1,  /* first launch after idle, also if it waits at the gate */
  FENCE_DRAINED = 2, /* the queue is empty after the gate was shut: `turn` */
  FENCE_IDLE = 3,    /* the queue is empty and no thread launches */
  FENCE_CONTEXT = 4, /* a context was created or destroyed, or a module loaded: read NVML */
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
