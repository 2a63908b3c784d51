/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated machine as the simulated driver's libraries see it.
 *
 * `gantry sim create` turns a machine's YAML into one of these and appends it, page-aligned, to the
 * library files it installs (libnvidia-ml.so.VERSION and libcuda.so.VERSION). So a library knows
 * its machine wherever it is mounted, also in a container that has nothing but the ordinary driver
 * files.
 *
 *   [ ELF file ][ padding to 4096 ][ struct gantry_sim_image ][ struct gantry_sim_footer ]
 *
 * The footer is the last 16 bytes of the file and says where the image begins.
 * - The `machine` part never changes after create.
 * - The `state` part is changed in place by `gantry sim inject` on the host (pwrite into both
 * files, then FUTEX_WAKE on `sequence`). Libraries map their own file read-only and MAP_SHARED, so
 * running processes see the change at once, in containers too.
 * - Device memory in use is accounted by file locks (sim/driver/usage.h): it needs no write access
 * and the kernel releases everything when a process dies.
 *
 * Everything is fixed-size and little-endian; strings are NUL-terminated. A reader must check
 * magic, abi and size before anything else. Every change of layout bumps GANTRY_SIM_ABI.
 */
#ifndef GANTRY_SIM_IMAGE_H
#define GANTRY_SIM_IMAGE_H

#include <stdint.h>

#define GANTRY_SIM_ABI 3u
#define GANTRY_SIM_MAGIC "GantrySimImage1" /* 16 bytes with the NUL */
#define GANTRY_SIM_FOOTER_MAGIC 0x4d4953595254474eull

#define GANTRY_SIM_MAX_GPUS 16
#define GANTRY_SIM_MAX_MIG_PROFILES 16
#define GANTRY_SIM_MAX_MIG_INSTANCES 8 /* per GPU: GPU instances, and compute instances in each */
#define GANTRY_SIM_MAX_LINKS 18        /* NVLinks of one GPU */
#define GANTRY_SIM_MAX_EVENTS 64
#define GANTRY_SIM_MAX_FAULTS 16
#define GANTRY_SIM_MAX_FIELDS 512 /* name=value pairs for nvidia-smi -q and rare NVML answers */

/* The machine-wide field that marks the image of a driver package. Its GPUs are the cards that the
 * package knows; the machine is what the running kernel says (sim/driver/running_machine.h). */
#define GANTRY_SIM_PACKAGED "packaged"

#define GANTRY_SIM_UNSET INT32_MIN /* a value the machine lacks: NOT_SUPPORTED, N/A */

struct gantry_sim_mig_profile {
  char name[24];          /* "1g.18gb+me" */
  uint32_t nvml_profile;  /* NVML_GPU_INSTANCE_PROFILE_*: 0..., the enum */
  uint32_t id;            /* what nvidia-smi shows: 19, 20, 15, 14, 9, 5, 0 */
  uint32_t slices;        /* compute slices */
  uint32_t memory_slices; /* size of a placement */
  uint32_t instances;     /* at most */
  uint32_t memory_mib;
  uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
  uint32_t placement_count;
  uint32_t placement_start[8];
};

struct gantry_sim_gpu {
  char uuid[96];
  char name[96];
  char brand[32];        /* nvidia-smi's word: "NVIDIA", "Tesla", "Quadro", "GeForce" */
  char architecture[32]; /* "Hopper" */
  char vbios[32];
  char serial[32]; /* "" = not supported */
  char board_part[32];
  char gpu_part[32];
  char inforom_image[32], inforom_oem[16], inforom_ecc[16], inforom_power[16];
  char virtualization[24]; /* "None", "Pass-Through", "VGPU" */
  uint64_t pdi;
  uint32_t nvml_brand;        /* nvmlBrandType_t */
  uint32_t nvml_architecture; /* nvmlDeviceArchitecture_t */
  uint32_t domain, bus, device, function;
  uint32_t pci_id, pci_subsystem; /* device << 16 | vendor */
  uint32_t pci_class;             /* 0x030200 */
  uint32_t pcie_gen_max, pcie_width_max;
  uint32_t minor;
  uint32_t board_id;
  uint32_t module_id;
  int32_t numa_node; /* -1 as sysfs */
  uint32_t cc_major, cc_minor;
  uint32_t multiprocessors, cores;
  uint32_t memory_total_mib, memory_reserved_mib; /* reserved: driver's own, in `total` */
  uint32_t bar1_mib;
  uint32_t memory_bus_bits, l2_cache_bytes;
  uint32_t clock_graphics_max, clock_sm_max, clock_memory_max, clock_video_max; /* MHz */
  uint32_t clock_graphics, clock_sm, clock_memory, clock_video;                 /* now, idle */
  int32_t power_limit_mw, power_min_mw, power_max_mw; /* default, bounds; UNSET = N/A */
  int32_t temperature_slowdown, temperature_shutdown, temperature_max; /* UNSET = not given */
  int32_t ecc_supported;                                               /* 0, 1 */
  int32_t display_active, display_attached;
  int32_t mig_capable;
  int32_t mig_enabled_at_boot;
  int32_t gsp; /* 1 = GSP firmware in use */
  int32_t excluded;
  int32_t fan_percent; /* UNSET: passively cooled */
  uint32_t mig_profile_count;
  struct gantry_sim_mig_profile mig_profile[GANTRY_SIM_MAX_MIG_PROFILES];
  uint32_t nvlink_count;
  struct {
    uint32_t remote_type;   /* 0 GPU, 2 switch (nvmlIntNvLinkDeviceType_t) */
    uint32_t remote_gpu;    /* index, for type 0 */
    char remote_bus_id[24]; /* "00000000:06:00.0" */
  } nvlink[GANTRY_SIM_MAX_LINKS];
};

struct gantry_sim_field { /* a text answer: gpu -1 = machine-wide */
  int32_t gpu;
  char name[60];
  char value[96];
};

struct gantry_sim_machine {
  char name[32];           /* "h200x8" */
  char driver_version[32]; /* of the libraries: "580.159.04" */
  char kernel_version[32]; /* of the kernel module; differs on the mismatch machine; "" = not loaded
                            */
  uint32_t cuda_version;   /* 13000 */
  uint32_t nvml_version_major; /* 13 in "13.580.159.04" */
  char library_directory[128]; /* where create put the libraries, inside the root */
  uint32_t nvidia_major, uvm_major, caps_major;
  uint32_t gpu_count;
  int32_t fabric_manager; /* -1 not needed, 0 down, 1 running */
  struct gantry_sim_gpu gpu[GANTRY_SIM_MAX_GPUS];
  /* nvmlGpuTopologyLevel_t between GPUs: 0 internal,10 single,20 multiple,30 hostbridge,40 node,50
   * system */
  uint8_t topology[GANTRY_SIM_MAX_GPUS][GANTRY_SIM_MAX_GPUS];
  uint32_t field_count;
  struct gantry_sim_field field[GANTRY_SIM_MAX_FIELDS];
};

struct gantry_sim_mig_instance { /* a GPU instance and its compute instances */
  uint32_t used;
  uint32_t gi_id;   /* as nvidia-smi shows it */
  uint32_t profile; /* index into mig_profile */
  uint32_t placement;
  uint32_t ci_count;
  struct {
    uint32_t ci_id;
    uint32_t start;     /* the first of the instance's compute slices */
    uint32_t slices;    /* how many of them */
    char uuid[96];      /* "MIG-..." */
    uint32_t mig_index; /* nvmlDeviceGetMigDeviceHandleByIndex */
  } ci[GANTRY_SIM_MAX_MIG_INSTANCES];
};

struct gantry_sim_gpu_state {
  uint32_t lost; /* fell off the bus: NVML_ERROR_GPU_IS_LOST */
  uint32_t reset_required;
  int32_t temperature; /* C */
  int32_t memory_temperature;
  int32_t power_mw, power_average_mw; /* UNSET = N/A */
  uint32_t utilization_gpu, utilization_memory;
  uint32_t pstate;
  uint64_t ecc_corrected_volatile, ecc_uncorrected_volatile;
  uint64_t ecc_corrected_aggregate, ecc_uncorrected_aggregate;
  uint32_t remapped_correctable, remapped_uncorrectable, remap_pending, remap_failure;
  uint32_t recovery_action; /* nvmlDeviceGpuRecoveryAction_t */
  uint32_t mig_current, mig_pending;
  uint32_t mig_count;
  uint64_t clocks_event_reasons;
  /* Settings of nvidia-smi -pm, -c, -pl, -lgc, -lmc and drain. */
  uint32_t persistence;
  uint32_t compute_mode;                                 /* nvmlComputeMode_t */
  int32_t power_limit_mw;                                /* UNSET = N/A */
  uint32_t graphics_lock_min_mhz, graphics_lock_max_mhz; /* 0: not locked */
  uint32_t memory_lock_min_mhz, memory_lock_max_mhz;
  uint32_t draining; /* refuses new clients */
  struct gantry_sim_mig_instance mig[GANTRY_SIM_MAX_MIG_INSTANCES];
};

struct gantry_sim_event {
  uint64_t sequence; /* 1, 2, 3...; 0 = empty */
  uint32_t gpu;
  uint32_t type;        /* 0 xid, 1 single-bit ECC, 2 double-bit ECC, 3 MIG config change, ... */
  uint64_t data;        /* the XID */
  int32_t gi_id, ci_id; /* -1: whole GPU */
};

/* The NVML functions that change MIG. Their calls are counted over all processes of the machine. */
enum gantry_sim_mig_function {
  GANTRY_SIM_MIG_SET_MODE,
  GANTRY_SIM_MIG_CREATE,
  GANTRY_SIM_MIG_CREATE_PLACED,
  GANTRY_SIM_MIG_DESTROY,
  GANTRY_SIM_MIG_CREATE_COMPUTE,
  GANTRY_SIM_MIG_CREATE_COMPUTE_PLACED,
  GANTRY_SIM_MIG_DESTROY_COMPUTE,
  GANTRY_SIM_MIG_FUNCTIONS
};
#define GANTRY_SIM_MIG_CALLS 64 /* how many of them are remembered */

struct gantry_sim_mig_call {
  uint64_t sequence; /* 1, 2, 3...; 0 = empty */
  uint32_t function; /* gantry_sim_mig_function */
  uint32_t gpu;
  int32_t gi_id, ci_id; /* -1: none */
  int32_t result;       /* nvmlReturn_t */
  int32_t value;        /* the wanted mode, or the profile of a new instance; -1: none */
};

/* What else a fault does to the GPU of the call, before the call is answered. */
enum gantry_sim_fault_action {
  GANTRY_SIM_FAULT_ONLY,    /* nothing */
  GANTRY_SIM_FAULT_LOSE,    /* it falls off the bus */
  GANTRY_SIM_FAULT_DESTROY, /* somebody else destroys its MIG instances */
};
#define GANTRY_SIM_HANG UINT32_MAX /* a delay until the fault is cleared */

/* An NVML or CUDA entry point that misbehaves: function name, "mig" for all that change MIG, or "*"
 * for all. */
struct gantry_sim_fault {
  char function[64];
  int32_t result;    /* returned instead of the answer; 0 = answer normally */
  uint32_t delay_ms; /* before answering; GANTRY_SIM_HANG */
  uint32_t every;    /* 0, 1: each call; N: every Nth call: "changes its mind" */
  uint32_t action;   /* gantry_sim_fault_action */
  uint64_t
      call; /* 0: each; N: call N alone, of the process or, if it changes MIG, of the machine */
};

struct gantry_sim_state {
  uint32_t sequence;        /* futex; odd while being written */
  uint32_t driver_unloaded; /* NVML_ERROR_DRIVER_NOT_LOADED, CUDA_ERROR_NO_DEVICE */
  uint64_t event_sequence;  /* newest event */
  struct gantry_sim_event event[GANTRY_SIM_MAX_EVENTS]; /* ring, slot = sequence % MAX */
  uint32_t fault_count;
  struct gantry_sim_fault fault[GANTRY_SIM_MAX_FAULTS];
  uint64_t mig_calls[GANTRY_SIM_MIG_FUNCTIONS];              /* since create */
  uint64_t mig_successes[GANTRY_SIM_MIG_FUNCTIONS];          /* those that changed something */
  uint64_t mig_call_sequence;                                /* newest entry of: */
  struct gantry_sim_mig_call mig_call[GANTRY_SIM_MIG_CALLS]; /* ring, slot = sequence % CALLS */
  struct gantry_sim_gpu_state gpu[GANTRY_SIM_MAX_GPUS];
};

struct gantry_sim_image {
  char magic[16];
  uint32_t abi;
  uint32_t size; /* of this struct */
  struct gantry_sim_machine machine;
  uint8_t padding[4096]; /* keeps `state` off the machine's last page */
  struct gantry_sim_state state;
};

struct gantry_sim_footer {
  uint64_t image_offset; /* multiple of 4096 */
  uint64_t magic;
};

#endif
