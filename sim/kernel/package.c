// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What the driver of a package has of its own: see package.h. */
#include "package.h"

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

/* Of the vendor's module parameters, those that change what user space does with device nodes. */
static unsigned int modify_files = 1, file_uid, file_gid, file_mode = 0666;
module_param_named(NVreg_ModifyDeviceFiles, modify_files, uint, 0444);
module_param_named(NVreg_DeviceFileUID, file_uid, uint, 0444);
module_param_named(NVreg_DeviceFileGID, file_gid, uint, 0444);
module_param_named(NVreg_DeviceFileMode, file_mode, uint, 0444);

#define PARAMETERS_SIZE 4096

static const struct parameter {
  const char *name, *value;
} parameters[] = {
#define SIM_PARAMETER(name, value) {name, value},
    SIM_PARAMETERS
#undef SIM_PARAMETER
};

static const struct {
  const char* name;
  const unsigned int* value;
} settable[] = {
    {"ModifyDeviceFiles", &modify_files},
    {"DeviceFileUID", &file_uid},
    {"DeviceFileGID", &file_gid},
    {"DeviceFileMode", &file_mode},
};

static const unsigned int* set_value(const char* name) {
  unsigned int i;

  for (i = 0; i < ARRAY_SIZE(settable); i++) {
    if (!strcmp(settable[i].name, name)) return settable[i].value;
  }
  return NULL;
}

/* The text of /proc/driver/nvidia/params. */
static char* parameters_text(void) {
  char* text = kzalloc(PARAMETERS_SIZE, GFP_KERNEL);
  unsigned int i;
  int at = 0;

  for (i = 0; text && i < ARRAY_SIZE(parameters); i++) {
    const unsigned int* value = set_value(parameters[i].name);

    at += scnprintf(text + at, PARAMETERS_SIZE - at, "%s: ", parameters[i].name);
    if (value)
      at += scnprintf(text + at, PARAMETERS_SIZE - at, "%u\n", *value);
    else
      at += scnprintf(text + at, PARAMETERS_SIZE - at, "%s\n", parameters[i].value);
  }
  return text;
}

void sim_be_packaged_driver(struct sim_description* description) {
  unsigned int i;

  strscpy(description->version, NV_VERSION_STRING, sizeof(description->version));
  kfree(description->version_file);
  description->version_file =
      kasprintf(GFP_KERNEL, "NVRM version: %s  %s  %s\nGCC version:  gcc version %s \n",
                SIM_MODULE_NAME, NV_VERSION_STRING, SIM_BUILD, __VERSION__);
  kfree(description->params);
  description->params = parameters_text();
  /* The open module needs the firmware; the other one uses it where the description has it. */
  for (i = 0; i < description->gpu_count; i++) {
    char* firmware = description->gpus[i].firmware;
    const bool used = SIM_OPEN || (*firmware && strcmp(firmware, "N/A"));

    strscpy(firmware,
            SIM_BRANCH < 470 ? ""
            : used           ? NV_VERSION_STRING
                             : "N/A",
            sizeof(description->gpus[i].firmware));
  }
}

/* The generations by the architecture in the first register, and the branches that support them. */
static const struct {
  unsigned int first, last; /* architecture */
  unsigned int since, until, open_since;
  const char* name;
} generations[] = {
    {0x0c, 0x0d, 1, 390, 0, "Fermi"},     {0x0e, 0x10, 304, 470, 0, "Kepler"},
    {0x11, 0x12, 334, 580, 0, "Maxwell"}, {0x13, 0x13, 367, 580, 0, "Pascal"},
    {0x14, 0x15, 384, 580, 0, "Volta"},   {0x16, 0x16, 410, 0, 515, "Turing"},
    {0x17, 0x17, 450, 0, 515, "Ampere"},  {0x18, 0x18, 515, 0, 515, "Hopper"},
    {0x19, 0x19, 520, 0, 520, "Ada"},     {0x1a, 0x1b, 570, 0, 570, "Blackwell"},
};
#define FIRST_WITH_OPEN_ONLY 0x1a

static int read_architecture(struct pci_dev* pdev, unsigned int* architecture) {
  void __iomem* registers = pci_iomap(pdev, 0, 4096);

  if (!registers) return -ENOMEM;
  *architecture = ioread32(registers) >> 24 & 0x1f;
  pci_iounmap(pdev, registers);
  return 0;
}

static int refuse(struct pci_dev* pdev, const char* generation, const char* why) {
  pr_err("NVRM: The NVIDIA GPU %s (PCI ID: %04x:%04x, %s)\n", pci_name(pdev), pdev->vendor,
         pdev->device, generation);
  pr_err("NVRM: installed in this system %s\n", why);
  return -ENODEV;
}

int sim_check_supported(struct pci_dev* pdev) {
  unsigned int architecture, i;
  int rc;

  if (pdev->is_virtfn) return 0;
  rc = read_architecture(pdev, &architecture);
  if (rc) return rc;
  for (i = 0; i < ARRAY_SIZE(generations); i++) {
    if (architecture < generations[i].first || architecture > generations[i].last) continue;
    if (generations[i].until && SIM_BRANCH > generations[i].until)
      return refuse(pdev, generations[i].name,
                    "is supported through the NVIDIA legacy drivers only; the " NV_VERSION_STRING
                    " driver will ignore it.");
    if (SIM_BRANCH < generations[i].since)
      return refuse(pdev, generations[i].name,
                    "is not supported by the NVIDIA " NV_VERSION_STRING " driver release.");
    if (SIM_OPEN && !generations[i].open_since)
      return refuse(pdev, generations[i].name,
                    "is not supported by open nvidia.ko: it has no GPU System Processor (GSP).");
    if (!SIM_OPEN && architecture >= FIRST_WITH_OPEN_ONLY)
      return refuse(pdev, generations[i].name, "requires use of the NVIDIA open kernel modules.");
  }
  return 0;
}

int sim_check_bound(bool any) {
  if (any) return 0;
  pr_err("NVRM: No NVIDIA GPU found.\n");
  return -ENODEV;
}
