// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The machine's description as text, one "key value" per line. `gantry sim boot` writes it from the
 * same YAML file that the simulated libraries come from (sim/machine/boot_description.cpp):
 *
 *   driver 550.90.07
 *   version NVRM version: ...          lines of /proc/driver/nvidia/version, in order
 *   param ModifyDeviceFiles: 1         lines of /proc/driver/nvidia/params
 *   gpu 0000:18:00.0                   the lines below are of this GPU
 *   model, uuid, vbios, firmware, minor, dma_bits, memory_mib, excluded
 *   vgpu 592 4096 NVIDIA A10-4Q        id, MiB, name
 *
 * An unknown key is an error: the two sides must not drift apart silently.
 */
#include "simulated.h"

#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/version.h>

#define MAX_FILE_SIZE (64 * 1024)

static int append_line(char** text, const char* line) {
  char* longer = kasprintf(GFP_KERNEL, "%s%s\n", *text ? *text : "", line);

  if (!longer) return -ENOMEM;
  kfree(*text);
  *text = longer;
  return 0;
}

static int copy_text(char* to, size_t size, const char* from) {
  return strscpy(to, from, size) < 0 ? -EINVAL : 0;
}

static int add_gpu(struct sim_description* out, const char* address) {
  struct sim_gpu_description* gpu;

  if (out->gpu_count >= SIM_MAX_GPUS) return -E2BIG;
  gpu = &out->gpus[out->gpu_count++];
  gpu->minor = out->gpu_count - 1;
  return copy_text(gpu->address, sizeof(gpu->address), address);
}

/* "592 4096 NVIDIA A10-4Q" */
static int add_vgpu_type(struct sim_gpu_description* gpu, char* value) {
  struct sim_vgpu_type* type;
  char* id = strsep(&value, " ");
  char* memory = strsep(&value, " ");

  if (gpu->type_count >= SIM_MAX_VGPU_TYPES) return -E2BIG;
  if (!value || kstrtouint(memory, 10, &gpu->types[gpu->type_count].memory_mib)) return -EINVAL;
  type = &gpu->types[gpu->type_count++];
  if (type->memory_mib == 0) return -EINVAL;
  return copy_text(type->id, sizeof(type->id), id)
             ?: copy_text(type->name, sizeof(type->name), value);
}

static int read_gpu_line(struct sim_gpu_description* gpu, const char* key, char* value) {
  if (!strcmp(key, "model")) return copy_text(gpu->model, sizeof(gpu->model), value);
  if (!strcmp(key, "uuid")) return copy_text(gpu->uuid, sizeof(gpu->uuid), value);
  if (!strcmp(key, "vbios")) return copy_text(gpu->vbios, sizeof(gpu->vbios), value);
  if (!strcmp(key, "firmware")) return copy_text(gpu->firmware, sizeof(gpu->firmware), value);
  if (!strcmp(key, "minor")) return kstrtoint(value, 10, &gpu->minor);
  if (!strcmp(key, "dma_bits")) return kstrtouint(value, 10, &gpu->dma_bits);
  if (!strcmp(key, "memory_mib")) return kstrtouint(value, 10, &gpu->memory_mib);
  if (!strcmp(key, "excluded")) return kstrtobool(value, &gpu->excluded);
  if (!strcmp(key, "vgpu")) return add_vgpu_type(gpu, value);
  return -EINVAL;
}

static int read_line(struct sim_description* out, char* line) {
  char* value = line;
  const char* key = strsep(&value, " ");

  if (*key == '\0') return 0;
  if (!value) return -EINVAL;
  if (!strcmp(key, "driver")) return copy_text(out->version, sizeof(out->version), value);
  if (!strcmp(key, "version")) return append_line(&out->version_file, value);
  if (!strcmp(key, "param")) return append_line(&out->params, value);
  if (!strcmp(key, "override"))
    return 0; /* for the host's start script: which driver a function gets */
  if (!strcmp(key, "gpu")) return add_gpu(out, value);
  return out->gpu_count == 0 ? -EINVAL : read_gpu_line(&out->gpus[out->gpu_count - 1], key, value);
}

static int read_text(struct sim_description* out, char* text) {
  char* line;
  int number = 0;

  while ((line = strsep(&text, "\n"))) {
    int rc = read_line(out, line);

    number++;
    if (rc) {
      pr_err("nvidia: line %d of the machine's description is wrong: \"%s\"\n", number, line);
      return rc;
    }
  }
  return 0;
}

/* Where the machine's first process sees it: who loads the module may be in a container, whose /run
 * is another one. */
static struct file* open_on_machine(const char* path) {
  struct task_struct* first;
  struct file* file;
  struct path root;

  rcu_read_lock();
  first = get_pid_task(find_pid_ns(1, &init_pid_ns), PIDTYPE_PID);
  rcu_read_unlock();
  if (!first) return ERR_PTR(-ESRCH);
  task_lock(first);
  if (first->fs) get_fs_root(first->fs, &root);
  file = first->fs ? NULL : ERR_PTR(-ESRCH);
  task_unlock(first);
  put_task_struct(first);
  if (file) return file;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 12, 0)
  file = file_open_root(&root, path, O_RDONLY, 0);
#else
  file = file_open_root(root.dentry, root.mnt, path, O_RDONLY, 0);
#endif
  path_put(&root);
  return file;
}

/* Not with kernel_read_file(): security modules want to know what it reads, and this is nothing
 * that they know. `text` has MAX_FILE_SIZE + 1 bytes, all zero. */
static int read_file(const char* path, char* text) {
  struct file* file = open_on_machine(path);
  loff_t at = 0;
  ssize_t got;

  if (IS_ERR(file)) return PTR_ERR(file);
  do {
    got = kernel_read(file, text + at, MAX_FILE_SIZE + 1 - at, &at);
  } while (got > 0 && at <= MAX_FILE_SIZE);
  filp_close(file, NULL);
  if (got < 0) return got;
  return at > MAX_FILE_SIZE ? -EFBIG : 0;
}

int sim_read_description(const char* path, bool required, struct sim_description* out) {
  char* text;
  int rc;

  memset(out, 0, sizeof(*out));
  copy_text(out->version, sizeof(out->version), "550.90.07");
  out->gpus = kvcalloc(SIM_MAX_GPUS, sizeof(*out->gpus), GFP_KERNEL);
  if (!out->gpus) return -ENOMEM;
  if (!path || *path == '\0') return 0;
  text = kvzalloc(MAX_FILE_SIZE + 1, GFP_KERNEL);
  rc = text ? read_file(path, text) : -ENOMEM;
  if (rc == -ENOENT && !required) rc = 0;
  if (rc) pr_err("nvidia: cannot read the machine's description %s: error %d\n", path, rc);
  if (!rc) rc = read_text(out, text);
  kvfree(text);
  if (rc) sim_free_description(out);
  return rc;
}

void sim_free_description(struct sim_description* description) {
  kfree(description->version_file);
  kfree(description->params);
  kvfree(description->gpus);
  memset(description, 0, sizeof(*description));
}

void sim_describe_gpu(const struct sim_description* all, struct pci_dev* pdev,
                      struct sim_gpu_description* out) {
  unsigned int i;

  for (i = 0; i < all->gpu_count; i++) {
    if (!strcmp(all->gpus[i].address, pci_name(pdev))) {
      *out = all->gpus[i];
      return;
    }
  }
  memset(out, 0, sizeof(*out));
  out->minor = -1;
  out->dma_bits = 47;
  copy_text(out->address, sizeof(out->address), pci_name(pdev));
  snprintf(out->model, sizeof(out->model), "NVIDIA Simulated %04x", pdev->device);
  snprintf(out->uuid, sizeof(out->uuid), "GPU-51a00000-%04x-4000-8000-%08x%04x", pdev->device,
           pci_domain_nr(pdev->bus), pci_dev_id(pdev));
  copy_text(out->vbios, sizeof(out->vbios), "00.00.00.00.00");
  copy_text(out->firmware, sizeof(out->firmware), "N/A");
}
