// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * nvidia-vgpu-vfio.ko: the host's part of vGPU, as sysfs shows it. framework=mdev has mediated
 * devices on each function, framework=vendor the files nvidia/current_vgpu_type and
 * nvidia/creatable_vgpu_types on each VF. Both follow the vendor's rules for room: one vGPU for
 * each VF, the memory of the card, and one size for each card unless `mixed` is set.
 */
#include "vgpu.h"

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

static char* framework = "mdev";
module_param(framework, charp, 0444);
MODULE_PARM_DESC(framework, "mdev or vendor");
static bool mixed;
module_param(mixed, bool, 0644);
MODULE_PARM_DESC(mixed, "Allow vGPUs of different sizes on one card");

DEFINE_MUTEX(vgpu_lock);
static LIST_HEAD(instances); /* protected by vgpu_lock */

static bool is_vendor(void) {
  return !strcmp(framework, "vendor");
}

static unsigned int room(const struct vgpu_parent* parent, const struct sim_vgpu_type* type) {
  const bool vf = parent->gpu->pdev->is_virtfn;
  struct pci_dev* card = pci_physfn(parent->gpu->pdev);
  unsigned int left = parent->gpu->description.memory_mib;
  struct vgpu_instance* other;

  if (vf && parent->instances) return 0;
  list_for_each_entry(other, &instances, node) {
    if (other->card != card) continue;
    if (!mixed && other->type->memory_mib != type->memory_mib) return 0;
    left -= min(left, other->type->memory_mib);
  }
  left /= type->memory_mib;
  return vf ? min(left, 1U) : left;
}

unsigned int vgpu_available(struct vgpu_parent* parent, const struct sim_vgpu_type* type) {
  unsigned int count;

  mutex_lock(&vgpu_lock);
  count = room(parent, type);
  mutex_unlock(&vgpu_lock);
  return count;
}

struct vgpu_instance* vgpu_take(struct vgpu_parent* parent, const struct sim_vgpu_type* type) {
  struct vgpu_instance* instance = kzalloc(sizeof(*instance), GFP_KERNEL);
  bool fits;

  if (!instance) return ERR_PTR(-ENOMEM);
  instance->card = pci_physfn(parent->gpu->pdev);
  instance->parent = parent;
  instance->type = type;
  mutex_lock(&vgpu_lock);
  fits = room(parent, type) > 0;
  if (fits) {
    parent->instances++;
    list_add(&instance->node, &instances);
  }
  mutex_unlock(&vgpu_lock);
  if (fits) return instance;
  kfree(instance);
  return ERR_PTR(-ENOSPC);
}

void vgpu_give_back(struct vgpu_instance* instance) {
  mutex_lock(&vgpu_lock);
  instance->parent->instances--;
  list_del(&instance->node);
  mutex_unlock(&vgpu_lock);
  kfree(instance);
}

/* A card with SR-IOV has its vGPUs on VFs; an older one has mediated devices on itself. */
static bool can_be_parent(struct sim_gpu* gpu) {
  if (gpu->description.type_count == 0) return false;
  if (gpu->pdev->is_virtfn) return true;
  return !is_vendor() && pci_sriov_get_totalvfs(gpu->pdev) == 0;
}

static int vgpu_add(struct sim_gpu* gpu) {
  struct vgpu_parent* parent;
  int rc;

  if (!can_be_parent(gpu)) return 0;
  parent = kzalloc(sizeof(*parent), GFP_KERNEL);
  if (!parent) return -ENOMEM;
  parent->gpu = gpu;
  mutex_init(&parent->changing);
  gpu->vgpu = parent;
  rc = is_vendor() ? vgpu_vendor_add(parent) : vgpu_mdev_add(parent);
  if (rc) {
    gpu->vgpu = NULL;
    kfree(parent);
  }
  return rc;
}

static void vgpu_remove(struct sim_gpu* gpu) {
  struct vgpu_parent* parent = gpu->vgpu;

  if (is_vendor())
    vgpu_vendor_remove(parent);
  else
    vgpu_mdev_remove(parent);
  gpu->vgpu = NULL;
  kfree(parent);
}

const struct sim_vgpu_ops vgpu_part = {.add = vgpu_add, .remove = vgpu_remove};

static int __init vgpu_init(void) {
  int rc;

  if (!is_vendor() && strcmp(framework, "mdev")) {
    pr_err("nvidia-vgpu-vfio: framework=%s is neither mdev nor vendor\n", framework);
    return -EINVAL;
  }
  rc = mdev_register_driver(&vgpu_mdev_driver);
  return rc ? rc : sim_set_vgpu(&vgpu_part);
}

static void __exit vgpu_exit(void) {
  sim_set_vgpu(NULL);
  mdev_unregister_driver(&vgpu_mdev_driver);
}

module_init(vgpu_init);
module_exit(vgpu_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simulated vGPU host part of Gantry");
