/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Inside nvidia-vgpu-vfio.ko. */
#ifndef GANTRY_SIM_KERNEL_VGPU_H
#define GANTRY_SIM_KERNEL_VGPU_H

#include "simulated.h"

#include <linux/mdev.h>
#include <linux/vfio_pci_core.h>

struct vgpu_parent;

struct vgpu_mdev_type {
  struct mdev_type type;
  const struct sim_vgpu_type* description;
  struct vgpu_parent* parent;
};

/* A function that vGPUs can be made on: a GPU without SR-IOV, or a VF. */
struct vgpu_parent {
  struct sim_gpu* gpu;
  unsigned int instances; /* vGPUs on this function */
  /* framework=mdev */
  struct mdev_parent mdev;
  struct vgpu_mdev_type types[SIM_MAX_VGPU_TYPES];
  struct mdev_type* type_list[SIM_MAX_VGPU_TYPES];
  /* framework=vendor: the VF itself is the VFIO device */
  struct mutex changing; /* one change of the type at a time; a change may wait for a program */
  struct vfio_pci_core_device* core;
  struct vgpu_instance* current_instance;
};

/* One vGPU. */
struct vgpu_instance {
  struct list_head node;
  struct pci_dev* card;
  struct vgpu_parent* parent;
  const struct sim_vgpu_type* type;
};

extern struct mutex vgpu_lock;
extern const struct sim_vgpu_ops vgpu_part;

unsigned int vgpu_available(struct vgpu_parent* parent, const struct sim_vgpu_type* type);
struct vgpu_instance* vgpu_take(struct vgpu_parent* parent, const struct sim_vgpu_type* type);
void vgpu_give_back(struct vgpu_instance* instance);

extern struct mdev_driver vgpu_mdev_driver;
int vgpu_mdev_add(struct vgpu_parent* parent);
void vgpu_mdev_remove(struct vgpu_parent* parent);

int vgpu_vendor_add(struct vgpu_parent* parent);
void vgpu_vendor_remove(struct vgpu_parent* parent);

#endif
