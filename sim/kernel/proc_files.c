// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /proc/driver/nvidia, as far as programs read it. */
#include "package.h"

#include <linux/delay.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

static struct proc_dir_entry *proc_root, *proc_gpus;

static int show_version(struct seq_file* out, void* unused) {
  const struct sim_description* d = out->private;

  if (d->version_file)
    seq_puts(out, d->version_file);
  else
    seq_printf(out, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  (simulated)\n",
               d->version);
  return 0;
}

static int show_params(struct seq_file* out, void* unused) {
  const struct sim_description* d = out->private;

  seq_puts(out, d->params ? d->params
                          : "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\n"
                            "DeviceFileMode: 438\n");
  return 0;
}

static int show_information(struct seq_file* out, void* unused) {
  const struct sim_gpu* gpu = out->private;
  const struct sim_gpu_description* d = &gpu->description;
  const u64 mask = d->dma_bits >= 64 ? U64_MAX : (1ULL << d->dma_bits) - 1;

  /* The vendor's driver takes a lock here that an open of any GPU holds until it ends. */
  while (READ_ONCE(sim_silent)) msleep(50);
  seq_printf(out, "Model: \t\t %s\nIRQ:   \t\t %u\nGPU UUID: \t %s\nVideo BIOS: \t %s\n", d->model,
             gpu->pdev->irq, d->uuid, d->vbios);
  seq_printf(out, "Bus Type: \t PCIe\nDMA Size: \t %u bits\nDMA Mask: \t 0x%llx\n", d->dma_bits,
             mask);
  seq_printf(out, "Bus Location: \t %s\nDevice Minor: \t %d\n", pci_name(gpu->pdev), gpu->minor);
  if (d->firmware[0]) seq_printf(out, "GPU Firmware: \t %s\n", d->firmware);
  seq_printf(out, "%s:\t %s\n", SIM_BRANCH < 455 ? "Blacklisted" : "GPU Excluded",
             d->excluded ? "Yes" : "No");
  return 0;
}

/* unbindLock: while it is 1 nothing can open the GPU. Writing 1 has no effect while the GPU is in
 * use. */
static ssize_t unbind_lock_read(struct file* file, char __user* to, size_t size, loff_t* at) {
  struct sim_gpu* gpu = pde_data(file_inode(file));
  const char* text = READ_ONCE(gpu->locked) ? "1\n" : "0\n";

  return simple_read_from_buffer(to, size, at, text, 2);
}

static ssize_t unbind_lock_write(struct file* file, const char __user* from, size_t size,
                                 loff_t* at) {
  struct sim_gpu* gpu = pde_data(file_inode(file));
  bool wanted;
  int rc = kstrtobool_from_user(from, size, &wanted);

  if (rc) return rc;
  mutex_lock(&sim_lock);
  gpu->locked = wanted && atomic_read(&gpu->users) == 0;
  mutex_unlock(&sim_lock);
  return size;
}

static const struct proc_ops unbind_lock_ops = {
    .proc_read = unbind_lock_read,
    .proc_write = unbind_lock_write,
};

int sim_proc_create(const struct sim_description* description) {
  proc_root = proc_mkdir("driver/nvidia", NULL);
  if (!proc_root) return -ENOMEM;
  proc_gpus = proc_mkdir("gpus", proc_root);
  if (!proc_gpus ||
      !proc_create_single_data("version", 0444, proc_root, show_version, (void*)description) ||
      !proc_create_single_data("params", 0444, proc_root, show_params, (void*)description)) {
    sim_proc_remove();
    return -ENOMEM;
  }
  return 0;
}

void sim_proc_remove(void) {
  proc_remove(proc_root);
}

int sim_proc_add_gpu(struct sim_gpu* gpu, bool with_unbind_lock) {
  gpu->proc = proc_mkdir(pci_name(gpu->pdev), proc_gpus);
  if (!gpu->proc) return -ENOMEM;
  if (!proc_create_single_data("information", 0444, gpu->proc, show_information, gpu) ||
      (with_unbind_lock &&
       !proc_create_data("unbindLock", 0644, gpu->proc, &unbind_lock_ops, gpu))) {
    sim_proc_remove_gpu(gpu);
    return -ENOMEM;
  }
  return 0;
}

/* Waits for readers of the files, so that the GPU can be freed afterwards. */
void sim_proc_remove_gpu(struct sim_gpu* gpu) {
  proc_remove(gpu->proc);
  gpu->proc = NULL;
}
