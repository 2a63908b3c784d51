/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by the modules of the simulated driver. */
#ifndef GANTRY_SIM_KERNEL_SIMULATED_H
#define GANTRY_SIM_KERNEL_SIMULATED_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>

#define SIM_MAX_GPUS 64
#define SIM_MAX_VGPU_TYPES 16

struct sim_vgpu_type {
  char id[16];   /* "592" */
  char name[64]; /* "NVIDIA A10-4Q" */
  unsigned int memory_mib;
};

/* One GPU of the machine's description. */
struct sim_gpu_description {
  char address[32]; /* "0000:18:00.0" */
  char model[64], uuid[48], vbios[32], firmware[32];
  int minor;
  unsigned int dma_bits, memory_mib;
  bool excluded;
  unsigned int type_count;
  struct sim_vgpu_type types[SIM_MAX_VGPU_TYPES];
};

struct sim_description {
  char version[32];            /* "550.90.07" */
  char *version_file, *params; /* the whole text of these files */
  unsigned int gpu_count;
  struct sim_gpu_description* gpus;
};

/* One function that the driver is bound to: a GPU or a VF of one. */
struct sim_gpu {
  struct list_head node;
  struct pci_dev* pdev;
  struct sim_gpu_description description;
  int minor;     /* -1: a VF, which has no node */
  bool removing; /* these two are protected by sim_lock */
  bool locked;   /* unbindLock: no more opens */
  atomic_t users;
  struct proc_dir_entry* proc;
  void* vgpu; /* belongs to nvidia-vgpu-vfio */
};

extern struct mutex sim_lock; /* protects the list of bound functions and the table of minors */

/* description.c: reads the file at `path`; without a path, or if the file is not required and not
 * there, it describes a driver without GPUs. */
int sim_read_description(const char* path, bool required, struct sim_description* out);
void sim_free_description(struct sim_description* description);
/* The GPU at this address; if the description has none there, values made from the address. */
void sim_describe_gpu(const struct sim_description* all, struct pci_dev* pdev,
                      struct sim_gpu_description* out);

extern bool sim_silent; /* a parameter of nvidia.ko */

/* proc_files.c: /proc/driver/nvidia */
int sim_proc_create(const struct sim_description* description);
void sim_proc_remove(void);
int sim_proc_add_gpu(struct sim_gpu* gpu, bool with_unbind_lock);
void sim_proc_remove_gpu(struct sim_gpu* gpu);

/* What nvidia.ko exports to the other modules. */
struct sim_vgpu_ops {
  int (*add)(struct sim_gpu* gpu);
  void (*remove)(struct sim_gpu* gpu);
};
int sim_set_vgpu(const struct sim_vgpu_ops* ops); /* NULL: take the vGPU part away */
struct sim_gpu* sim_find(struct pci_dev* pdev);
void sim_hold(void); /* a module that calls it depends on nvidia.ko */

/* What nvidia-modeset.ko exports. */
void sim_hold_modeset(void);

#endif
