// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * nvidia.ko of a machine that does not exist: everything of the vendor's driver that user space
 * sees while it binds, unbinds, opens and unloads, and nothing of a GPU. Device nodes have major
 * 195. As in the vendor's driver, remove() waits in the kernel for as long as a process has the GPU
 * open.
 */
#include "package.h"

#include <linux/cdev.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait.h>

#define NVIDIA_MAJOR 195
#define CONTROL_MINOR 255

static char* machine = "/run/gantry-sim/machine";
module_param(machine, charp, 0444);
MODULE_PARM_DESC(machine, "File with the machine's description; empty: none");
static bool vendor_vfio;
module_param(vendor_vfio, bool, 0444);
MODULE_PARM_DESC(vendor_vfio, "VFs stay with this driver and are given to VFIO by it");
static bool unbind_lock;
module_param(unbind_lock, bool, 0444);
MODULE_PARM_DESC(unbind_lock, "Have the file unbindLock, as older drivers do");

/* Faults. They can be changed while the module is loaded. */
static int fail_probe;
module_param(fail_probe, int, 0644);
MODULE_PARM_DESC(fail_probe, "Error number with which binding fails");
static int fail_sriov;
module_param(fail_sriov, int, 0644);
MODULE_PARM_DESC(fail_sriov, "Error number with which creating VFs fails");
static int remove_ms;
module_param(remove_ms, int, 0644);
MODULE_PARM_DESC(remove_ms, "Milliseconds that unbinding takes");
static bool stick_remove;
module_param(stick_remove, bool, 0644);
MODULE_PARM_DESC(stick_remove, "Unbinding does not return until this is 0 again");

bool sim_silent;
module_param_named(silent, sim_silent, bool, 0644);
MODULE_PARM_DESC(silent, "Reads of a GPU's information do not return until this is 0 again");

DEFINE_MUTEX(sim_lock);
static LIST_HEAD(bound); /* not drvdata, which vfio-pci-core uses on a VF */
static struct sim_gpu* by_minor[SIM_MAX_GPUS];
static DECLARE_WAIT_QUEUE_HEAD(last_user_gone);
static struct sim_description description;
static const struct sim_vgpu_ops*
    vgpu_ops; /* written while every device is locked in turn: see sim_set_vgpu */
static struct cdev devices, control;

static int gpu_open(struct inode* inode, struct file* file) {
  const unsigned int minor = iminor(inode);
  struct sim_gpu* gpu;
  int rc = 0;

  mutex_lock(&sim_lock);
  gpu = minor < SIM_MAX_GPUS ? by_minor[minor] : NULL;
  if (!gpu || gpu->removing)
    rc = -ENODEV;
  else if (gpu->locked)
    rc = -EBUSY;
  else
    atomic_inc(&gpu->users);
  file->private_data = rc ? NULL : gpu;
  mutex_unlock(&sim_lock);
  return rc;
}

static int gpu_release(struct inode* inode, struct file* file) {
  struct sim_gpu* gpu = file->private_data;

  /* The waiter frees the GPU, so this does not touch it after the count has reached zero. */
  if (atomic_dec_and_test(&gpu->users)) wake_up_all(&last_user_gone);
  return 0;
}

static const struct file_operations gpu_fops = {
    .owner = THIS_MODULE,
    .open = gpu_open,
    .release = gpu_release,
};
static const struct file_operations control_fops = {
    .owner = THIS_MODULE}; /* an open file holds the module */

struct sim_gpu* sim_find(struct pci_dev* pdev) {
  struct sim_gpu *gpu, *found = NULL;

  mutex_lock(&sim_lock);
  list_for_each_entry(gpu, &bound, node) {
    if (gpu->pdev == pdev) found = gpu;
  }
  mutex_unlock(&sim_lock);
  return found;
}
EXPORT_SYMBOL_GPL(sim_find);

/* The minor that the description gives, else the first free one. */
static int take_minor(struct sim_gpu* gpu) {
  int minor = gpu->description.minor;

  if (minor < 0 || minor >= SIM_MAX_GPUS || by_minor[minor]) {
    for (minor = 0; minor < SIM_MAX_GPUS && by_minor[minor]; minor++) {
    }
  }
  if (minor == SIM_MAX_GPUS) return -ENOSPC;
  by_minor[minor] = gpu;
  gpu->minor = minor;
  return 0;
}

static int publish(struct sim_gpu* gpu) {
  int rc = 0;

  mutex_lock(&sim_lock);
  if (!gpu->pdev->is_virtfn) rc = take_minor(gpu);
  if (!rc) list_add(&gpu->node, &bound);
  mutex_unlock(&sim_lock);
  return rc;
}

static void unpublish(struct sim_gpu* gpu) {
  mutex_lock(&sim_lock);
  list_del(&gpu->node);
  if (gpu->minor >= 0) by_minor[gpu->minor] = NULL;
  mutex_unlock(&sim_lock);
}

static int add_visible_parts(struct sim_gpu* gpu) {
  int rc = gpu->pdev->is_virtfn ? 0 : sim_proc_add_gpu(gpu, unbind_lock);

  if (!rc && vgpu_ops) rc = vgpu_ops->add(gpu);
  if (rc && gpu->proc) sim_proc_remove_gpu(gpu);
  return rc;
}

static int gpu_probe(struct pci_dev* pdev, const struct pci_device_id* id) {
  struct sim_gpu* gpu;
  int rc;

  if (fail_probe) {
    dev_err(&pdev->dev, "NVRM: simulated failure: probe returns error %d\n", fail_probe);
    return -fail_probe;
  }
  if (pdev->is_virtfn && !vgpu_ops) return -ENODEV; /* only the vGPU part can use a VF */
  gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
  if (!gpu) return -ENOMEM;
  gpu->pdev = pdev;
  gpu->minor = -1;
  sim_describe_gpu(&description, pci_physfn(pdev), &gpu->description);
  rc = pci_enable_device(pdev);
  if (rc) goto free;
  rc = sim_check_supported(pdev);
  if (rc) goto disable;
  pci_set_master(pdev);
  rc = publish(gpu);
  if (rc) goto disable;
  rc = add_visible_parts(gpu);
  if (rc) goto unpublish;
  return 0;
unpublish:
  unpublish(gpu);
disable:
  pci_disable_device(pdev);
free:
  kfree(gpu);
  return rc;
}

/* remove() cannot refuse, so the vendor's driver waits here, without a limit. */
static void wait_for_users(struct sim_gpu* gpu) {
  mutex_lock(&sim_lock);
  gpu->removing = true;
  mutex_unlock(&sim_lock);
  if (atomic_read(&gpu->users) == 0) return;
  pr_err("NVRM: Attempting to remove device %s with non-zero usage count!\n", pci_name(gpu->pdev));
  wait_event(last_user_gone, atomic_read(&gpu->users) == 0);
  pr_err("NVRM: Continuing with GPU removal for device %s\n", pci_name(gpu->pdev));
}

static void gpu_remove(struct pci_dev* pdev) {
  struct sim_gpu* gpu = sim_find(pdev);

  wait_for_users(gpu);
  if (vgpu_ops && gpu->vgpu) vgpu_ops->remove(gpu);
  if (pci_num_vf(pdev)) pci_disable_sriov(pdev);
  if (remove_ms > 0) msleep(remove_ms);
  while (READ_ONCE(stick_remove)) msleep(50);
  if (gpu->proc) sim_proc_remove_gpu(gpu);
  unpublish(gpu);
  pci_disable_device(pdev);
  kfree(gpu);
}

static int gpu_sriov(struct pci_dev* pdev, int vfs) {
  if (vfs && fail_sriov) return -fail_sriov;
  return vgpu_ops ? pci_sriov_configure_simple(pdev, vfs) : -ENOENT;
}

static const struct pci_device_id ids[] = {
    {PCI_DEVICE(0x10de, PCI_ANY_ID), .class = PCI_CLASS_DISPLAY_VGA << 8, .class_mask = 0xffffff},
    {PCI_DEVICE(0x10de, PCI_ANY_ID), .class = PCI_CLASS_DISPLAY_3D << 8, .class_mask = 0xffffff},
    {},
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver driver = {
    .name = "nvidia",
    .id_table = ids,
    .probe = gpu_probe,
    .remove = gpu_remove,
    .sriov_configure = gpu_sriov,
};

/* Adds the vGPU part to every bound function, or takes it away. The lock of a device keeps probe
 * and remove out meanwhile. */
int sim_set_vgpu(const struct sim_vgpu_ops* ops) {
  const struct sim_vgpu_ops* old = vgpu_ops;
  struct pci_dev* pdev = NULL;

  if (ops) vgpu_ops = ops;
  while ((pdev = pci_get_device(0x10de, PCI_ANY_ID, pdev))) {
    struct sim_gpu* gpu;

    device_lock(&pdev->dev);
    gpu = sim_find(pdev);
    if (gpu && ops && !gpu->vgpu) ops->add(gpu);
    if (gpu && !ops && gpu->vgpu) old->remove(gpu);
    device_unlock(&pdev->dev);
  }
  if (!ops) vgpu_ops = NULL;
  return 0;
}
EXPORT_SYMBOL_GPL(sim_set_vgpu);

void sim_hold(void) {}
EXPORT_SYMBOL_GPL(sim_hold);

static int add_nodes(struct cdev* nodes, const struct file_operations* fops, unsigned int first,
                     unsigned int count, const char* name) {
  const dev_t number = MKDEV(NVIDIA_MAJOR, first);
  int rc = register_chrdev_region(number, count, name);

  if (rc) return rc;
  cdev_init(nodes, fops);
  nodes->owner = THIS_MODULE;
  rc = cdev_add(nodes, number, count);
  if (rc) unregister_chrdev_region(number, count);
  return rc;
}

static void remove_nodes(struct cdev* nodes, unsigned int first, unsigned int count) {
  cdev_del(nodes);
  unregister_chrdev_region(MKDEV(NVIDIA_MAJOR, first), count);
}

/* /sys/module/nvidia/version is the described driver's, not that of this build. */
static void set_module_version(void) {
  char* version = kstrdup(description.version, GFP_KERNEL);

  if (!version) return;
  kfree(THIS_MODULE->version);
  THIS_MODULE->version = version; /* freed with the module */
}

static bool any_bound(void) {
  bool any;

  mutex_lock(&sim_lock);
  any = !list_empty(&bound);
  mutex_unlock(&sim_lock);
  return any;
}

static int __init nvidia_init(void) {
  int rc = sim_read_description(machine, SIM_DESCRIPTION_REQUIRED, &description);

  if (rc) return rc;
  sim_be_packaged_driver(&description);
  rc = add_nodes(&devices, &gpu_fops, 0, CONTROL_MINOR, SIM_DEVICE_NAME);
  if (rc) goto free;
  rc = add_nodes(&control, &control_fops, CONTROL_MINOR, 1, SIM_CONTROL_NAME);
  if (rc) goto gpu_nodes;
  rc = sim_proc_create(&description);
  if (rc) goto control_node;
  driver.driver_managed_dma = vendor_vfio;
  rc = pci_register_driver(&driver);
  if (rc) goto proc;
  rc = sim_check_bound(any_bound());
  if (rc) goto unregister;
  set_module_version();
  pr_info("NVRM: loading " SIM_MODULE_NAME "  %s  (simulated)\n", description.version);
  return 0;
unregister:
  pci_unregister_driver(&driver);
proc:
  sim_proc_remove();
control_node:
  remove_nodes(&control, CONTROL_MINOR, 1);
gpu_nodes:
  remove_nodes(&devices, 0, CONTROL_MINOR);
free:
  sim_free_description(&description);
  return rc;
}

static void __exit nvidia_exit(void) {
  pci_unregister_driver(&driver);
  sim_proc_remove();
  remove_nodes(&control, CONTROL_MINOR, 1);
  remove_nodes(&devices, 0, CONTROL_MINOR);
  sim_free_description(&description);
}

module_init(nvidia_init);
module_exit(nvidia_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simulated NVIDIA kernel driver of Gantry");
MODULE_VERSION(SIM_MODULE_VERSION);
