// SPDX-License-Identifier: GPL-2.0 OR MIT
/* vGPUs without mediated devices: a VF stays with the driver nvidia, and writing a type makes the
 * VF itself a VFIO device. */
#include "vgpu.h"

#include <linux/module.h>
#include <linux/version.h>
#include <linux/vfio.h>

static int vendor_open(struct vfio_device* vfio) {
  struct vfio_pci_core_device* core = container_of(vfio, struct vfio_pci_core_device, vdev);
  int rc = vfio_pci_core_enable(core);

  if (!rc) vfio_pci_core_finish_enable(core);
  return rc;
}

static const struct vfio_device_ops vendor_ops = {
    .name = "nvidia-vgpu-vfio",
    .init = vfio_pci_core_init_dev,
    .release = vfio_pci_core_release_dev,
    .open_device = vendor_open,
    .close_device = vfio_pci_core_close_device,
    .ioctl = vfio_pci_core_ioctl,
    .device_feature = vfio_pci_core_ioctl_feature,
    .read = vfio_pci_core_read,
    .write = vfio_pci_core_write,
    .mmap = vfio_pci_core_mmap,
    .request = vfio_pci_core_request,
    .match = vfio_pci_core_match,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
    .bind_iommufd = vfio_iommufd_physical_bind,
    .unbind_iommufd = vfio_iommufd_physical_unbind,
    .attach_ioas = vfio_iommufd_physical_attach_ioas,
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
    .detach_ioas = vfio_iommufd_physical_detach_ioas,
#endif
};

static struct vgpu_parent* parent_of(struct device* device) {
  return sim_find(to_pci_dev(device))->vgpu;
}

static int start_vgpu(struct vgpu_parent* parent, const struct sim_vgpu_type* type) {
  struct device* device = &parent->gpu->pdev->dev;
  struct vgpu_instance* instance;
  struct vfio_pci_core_device* core;
  int rc;

  if (parent->current_instance) return -EBUSY;
  instance = vgpu_take(parent, type);
  if (IS_ERR(instance)) return PTR_ERR(instance);
  core = vfio_alloc_device(vfio_pci_core_device, vdev, device, &vendor_ops);
  if (IS_ERR(core)) {
    vgpu_give_back(instance);
    return PTR_ERR(core);
  }
  dev_set_drvdata(device, core); /* vfio-pci-core finds its device there */
  rc = vfio_pci_core_register_device(core);
  if (rc) {
    dev_set_drvdata(device, NULL);
    vfio_put_device(&core->vdev);
    vgpu_give_back(instance);
    return rc;
  }
  parent->core = core;
  parent->current_instance = instance;
  return 0;
}

static void stop_vgpu(struct vgpu_parent* parent) {
  if (!parent->current_instance) return;
  vfio_pci_core_unregister_device(parent->core); /* waits until no program uses it */
  vfio_put_device(&parent->core->vdev);
  dev_set_drvdata(&parent->gpu->pdev->dev, NULL);
  vgpu_give_back(parent->current_instance);
  parent->core = NULL;
  parent->current_instance = NULL;
}

static ssize_t creatable_vgpu_types_show(struct device* device, struct device_attribute* attribute,
                                         char* out) {
  struct vgpu_parent* parent = parent_of(device);
  const struct sim_gpu_description* card = &parent->gpu->description;
  int size = sysfs_emit(out, "ID    : vGPU Name\n");
  unsigned int i;

  for (i = 0; i < card->type_count; i++) {
    if (vgpu_available(parent, &card->types[i]))
      size += sysfs_emit_at(out, size, "%-6s: %s\n", card->types[i].id, card->types[i].name);
  }
  return size;
}

static ssize_t current_vgpu_type_show(struct device* device, struct device_attribute* attribute,
                                      char* out) {
  struct vgpu_parent* parent = parent_of(device);

  return sysfs_emit(out, "%s\n",
                    parent->current_instance ? parent->current_instance->type->id : "0");
}

/* NULL for "0", which takes the type away. */
static int find_type(const struct sim_gpu_description* card, const char* text,
                     const struct sim_vgpu_type** type) {
  unsigned int i;

  *type = NULL;
  if (sysfs_streq(text, "0")) return 0;
  for (i = 0; i < card->type_count; i++) {
    if (!sysfs_streq(text, card->types[i].id)) continue;
    *type = &card->types[i];
    return 0;
  }
  return -EINVAL;
}

static ssize_t current_vgpu_type_store(struct device* device, struct device_attribute* attribute,
                                       const char* text, size_t size) {
  struct vgpu_parent* parent = parent_of(device);
  const struct sim_vgpu_type* type;
  int rc = find_type(&parent->gpu->description, text, &type);

  if (rc) return rc;
  mutex_lock(&parent->changing);
  if (type)
    rc = start_vgpu(parent, type);
  else
    stop_vgpu(parent);
  mutex_unlock(&parent->changing);
  return rc ? rc : size;
}

static ssize_t vgpu_params_show(struct device* device, struct device_attribute* attribute,
                                char* out) {
  return sysfs_emit(out, "\n");
}

static ssize_t vgpu_params_store(struct device* device, struct device_attribute* attribute,
                                 const char* text, size_t size) {
  return size;
}

static DEVICE_ATTR_RO(creatable_vgpu_types);
static DEVICE_ATTR_RW(current_vgpu_type);
static DEVICE_ATTR_RW(vgpu_params);
static struct attribute* vendor_attributes[] = {
    &dev_attr_creatable_vgpu_types.attr,
    &dev_attr_current_vgpu_type.attr,
    &dev_attr_vgpu_params.attr,
    NULL,
};
static const struct attribute_group vendor_group = {.name = "nvidia", .attrs = vendor_attributes};

int vgpu_vendor_add(struct vgpu_parent* parent) {
  return sysfs_create_group(&parent->gpu->pdev->dev.kobj, &vendor_group);
}

void vgpu_vendor_remove(struct vgpu_parent* parent) {
  sysfs_remove_group(&parent->gpu->pdev->dev.kobj,
                     &vendor_group); /* waits for readers and writers */
  stop_vgpu(parent);
}
