// SPDX-License-Identifier: GPL-2.0 OR MIT
/* vGPUs as mediated devices. A guest sees a display controller with one small BAR that answers who
 * it is. */
#include "../pci/registers.h"
#include "vgpu.h"

#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vfio.h>

#define REGION_SHIFT 40 /* the region's index is in the upper bits of the file's offset */
#define CONFIG_SIZE 256

struct vgpu_mdev {
  struct vfio_device vfio;
  struct vgpu_instance* instance;
  u8 config[CONFIG_SIZE];
};

static struct vgpu_mdev* to_mdev(struct vfio_device* vfio) {
  return container_of(vfio, struct vgpu_mdev, vfio);
}

static u64 region_size(unsigned int region) {
  if (region == VFIO_PCI_CONFIG_REGION_INDEX) return CONFIG_SIZE;
  return region == VFIO_PCI_BAR0_REGION_INDEX ? SZ_64K : 0;
}

static bool is_in_region(loff_t at, size_t size) {
  const u64 room = region_size(at >> REGION_SHIFT), offset = at & (BIT_ULL(REGION_SHIFT) - 1);

  return offset <= room && size <= room - offset;
}

static ssize_t mdev_read(struct vfio_device* vfio, char __user* to, size_t size, loff_t* at) {
  const u64 offset = *at & (BIT_ULL(REGION_SHIFT) - 1);
  const u32 magic = GANTRY_GPU_MAGIC_VALUE;
  unsigned long left;

  if (!is_in_region(*at, size)) return -EINVAL;
  if (*at >> REGION_SHIFT == VFIO_PCI_CONFIG_REGION_INDEX)
    left = copy_to_user(to, to_mdev(vfio)->config + offset, size);
  else if (offset == GANTRY_GPU_MAGIC && size == sizeof(magic))
    left = copy_to_user(to, &magic, sizeof(magic));
  else
    left = clear_user(to, size);
  if (left) return -EFAULT;
  *at += size;
  return size;
}

/* The ids and the BARs cannot be written; QEMU keeps the guest's addresses of BARs itself. */
static bool is_read_only(u64 offset) {
  return offset < PCI_COMMAND || (offset >= PCI_BASE_ADDRESS_0 && offset < PCI_CARDBUS_CIS);
}

static ssize_t mdev_write(struct vfio_device* vfio, const char __user* from, size_t size,
                          loff_t* at) {
  const u64 offset = *at & (BIT_ULL(REGION_SHIFT) - 1);

  if (!is_in_region(*at, size)) return -EINVAL;
  if (*at >> REGION_SHIFT == VFIO_PCI_CONFIG_REGION_INDEX && !is_read_only(offset) &&
      copy_from_user(to_mdev(vfio)->config + offset, from, size))
    return -EFAULT;
  *at += size;
  return size;
}

static long device_info(void __user* user) {
  const size_t size = offsetofend(struct vfio_device_info, num_irqs);
  struct vfio_device_info info = {
      .argsz = sizeof(info),
      .flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
      .num_regions = VFIO_PCI_NUM_REGIONS,
      .num_irqs = VFIO_PCI_NUM_IRQS,
  };

  return copy_to_user(user, &info, size) ? -EFAULT : 0;
}

static long region_info(void __user* user) {
  const size_t size = offsetofend(struct vfio_region_info, offset);
  struct vfio_region_info info;

  if (copy_from_user(&info, user, size)) return -EFAULT;
  if (info.argsz < size || info.index >= VFIO_PCI_NUM_REGIONS) return -EINVAL;
  info.size = region_size(info.index);
  info.flags = info.size ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0;
  info.cap_offset = 0;
  info.offset = (u64)info.index << REGION_SHIFT;
  return copy_to_user(user, &info, size) ? -EFAULT : 0;
}

static long irq_info(void __user* user) {
  struct vfio_irq_info info;

  if (copy_from_user(&info, user, sizeof(info))) return -EFAULT;
  if (info.index >= VFIO_PCI_NUM_IRQS) return -EINVAL;
  info.flags = 0;
  info.count = 0;
  return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static long mdev_ioctl(struct vfio_device* vfio, unsigned int command, unsigned long argument) {
  void __user* user = (void __user*)argument;

  switch (command) {
    case VFIO_DEVICE_GET_INFO: return device_info(user);
    case VFIO_DEVICE_GET_REGION_INFO: return region_info(user);
    case VFIO_DEVICE_GET_IRQ_INFO: return irq_info(user);
    case VFIO_DEVICE_RESET: return 0;
    default: return -ENOTTY;
  }
}

static int mdev_init(struct vfio_device* vfio) {
  return 0;
}

static void mdev_release(struct vfio_device* vfio) {
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
  vfio_free_device(vfio);
#endif
}

static void mdev_dma_unmap(struct vfio_device* vfio, u64 iova, u64 length) {}

static const struct vfio_device_ops mdev_ops = {
    .name = "nvidia-vgpu-vfio-mdev",
    .init = mdev_init,
    .release = mdev_release,
    .read = mdev_read,
    .write = mdev_write,
    .ioctl = mdev_ioctl,
    .dma_unmap = mdev_dma_unmap,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
    .bind_iommufd = vfio_iommufd_emulated_bind,
    .unbind_iommufd = vfio_iommufd_emulated_unbind,
    .attach_ioas = vfio_iommufd_emulated_attach_ioas,
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
    .detach_ioas = vfio_iommufd_emulated_detach_ioas,
#endif
};

static int mdev_probe(struct mdev_device* mdev) {
  struct vgpu_mdev_type* type = container_of(mdev->type, struct vgpu_mdev_type, type);
  struct vgpu_instance* instance = vgpu_take(type->parent, type->description);
  struct vgpu_mdev* vgpu;
  int rc;

  if (IS_ERR(instance)) return PTR_ERR(instance);
  vgpu = vfio_alloc_device(vgpu_mdev, vfio, &mdev->dev, &mdev_ops);
  if (IS_ERR(vgpu)) {
    vgpu_give_back(instance);
    return PTR_ERR(vgpu);
  }
  vgpu->instance = instance;
  *(__le16*)(vgpu->config + PCI_VENDOR_ID) = cpu_to_le16(instance->card->vendor);
  *(__le16*)(vgpu->config + PCI_DEVICE_ID) = cpu_to_le16(instance->card->device);
  *(__le16*)(vgpu->config + PCI_CLASS_DEVICE) = cpu_to_le16(PCI_CLASS_DISPLAY_VGA);
  dev_set_drvdata(&mdev->dev, vgpu);
  rc = vfio_register_emulated_iommu_dev(&vgpu->vfio);
  if (rc) {
    vfio_put_device(&vgpu->vfio);
    vgpu_give_back(instance);
  }
  return rc;
}

static void mdev_remove(struct mdev_device* mdev) {
  struct vgpu_mdev* vgpu = dev_get_drvdata(&mdev->dev);
  struct vgpu_instance* instance = vgpu->instance;

  vfio_unregister_group_dev(&vgpu->vfio);
  vfio_put_device(&vgpu->vfio);
  vgpu_give_back(instance);
}

static unsigned int mdev_available(struct mdev_type* mdev_type) {
  struct vgpu_mdev_type* type = container_of(mdev_type, struct vgpu_mdev_type, type);

  return vgpu_available(type->parent, type->description);
}

static ssize_t mdev_describe(struct mdev_type* mdev_type, char* out) {
  struct vgpu_mdev_type* type = container_of(mdev_type, struct vgpu_mdev_type, type);
  const unsigned int memory = type->description->memory_mib;

  return sysfs_emit(out,
                    "num_heads=4, frl_config=60, framebuffer=%uM, max_resolution=7680x4320, "
                    "max_instance=%u\n",
                    memory, type->parent->gpu->description.memory_mib / memory);
}

/* Parameters of the vendor's plug-in. They are taken and have no effect. */
static ssize_t vgpu_params_show(struct device* device, struct device_attribute* attribute,
                                char* out) {
  return sysfs_emit(out, "\n");
}

static ssize_t vgpu_params_store(struct device* device, struct device_attribute* attribute,
                                 const char* text, size_t size) {
  return size;
}

static DEVICE_ATTR_RW(vgpu_params);
static struct attribute* params_attributes[] = {&dev_attr_vgpu_params.attr, NULL};
static const struct attribute_group params_group = {.name = "nvidia", .attrs = params_attributes};
static const struct attribute_group* mdev_groups[] = {&params_group, NULL};

struct mdev_driver vgpu_mdev_driver = {
    .device_api = VFIO_DEVICE_API_PCI_STRING,
    .probe = mdev_probe,
    .remove = mdev_remove,
    .get_available = mdev_available,
    .show_description = mdev_describe,
    .driver =
        {
            .name = "nvidia-vgpu-vfio",
            .owner = THIS_MODULE,
            .mod_name = KBUILD_MODNAME,
            .dev_groups = mdev_groups,
        },
};

/* sysfs then has mdev_supported_types/nvidia-592: the parent's driver and the type's name. */
int vgpu_mdev_add(struct vgpu_parent* parent) {
  const struct sim_gpu_description* card = &parent->gpu->description;
  unsigned int i;

  for (i = 0; i < card->type_count; i++) {
    struct vgpu_mdev_type* type = &parent->types[i];

    type->description = &card->types[i];
    type->parent = parent;
    type->type.sysfs_name = card->types[i].id;
    type->type.pretty_name = card->types[i].name;
    parent->type_list[i] = &type->type;
  }
  return mdev_register_parent(&parent->mdev, &parent->gpu->pdev->dev, &vgpu_mdev_driver,
                              parent->type_list, card->type_count);
}

void vgpu_mdev_remove(struct vgpu_parent* parent) {
  mdev_unregister_parent(&parent->mdev);
}
