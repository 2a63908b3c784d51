/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The driver of a package (`gantry sim package`) is built with NV_VERSION_STRING, as NVIDIA's
 * Kbuild does it. Its version, flavour and parameters are its own and not those of the machine's
 * description, and it refuses GPUs that the branch does not support. Without NV_VERSION_STRING
 * nothing of this is there.
 */
#ifndef GANTRY_SIM_KERNEL_PACKAGE_H
#define GANTRY_SIM_KERNEL_PACKAGE_H

#include "simulated.h"

#ifdef NV_VERSION_STRING
/* SIM_BRANCH, SIM_OPEN, SIM_BUILD, SIM_PARAMETERS: `gantry sim package` writes this file. */
#include "driver_facts.h"
#else
#define SIM_BRANCH 550
#endif

#if defined(NV_VERSION_STRING) && SIM_BRANCH < 550
#define SIM_DEVICE_NAME "nvidia-frontend"
#define SIM_CONTROL_NAME "nvidia-frontend"
#else
#define SIM_DEVICE_NAME "nvidia"
#define SIM_CONTROL_NAME "nvidiactl"
#endif

#if defined(NV_VERSION_STRING) && SIM_OPEN
#define SIM_MODULE_NAME "NVIDIA UNIX Open Kernel Module for x86_64"
#else
#define SIM_MODULE_NAME "NVIDIA UNIX x86_64 Kernel Module"
#endif

#ifdef NV_VERSION_STRING

#define SIM_MODULE_VERSION NV_VERSION_STRING
#define SIM_DESCRIPTION_REQUIRED false

/* package.c */
void sim_be_packaged_driver(struct sim_description* description);
int sim_check_supported(struct pci_dev* pdev); /* the device is enabled */
int sim_check_bound(bool any); /* -ENODEV: the vendor's driver does not load without a GPU */

#else

#define SIM_MODULE_VERSION "550.90.07"
#define SIM_DESCRIPTION_REQUIRED true

static inline void sim_be_packaged_driver(struct sim_description* description) {}
static inline int sim_check_supported(struct pci_dev* pdev) {
  return 0;
}
static inline int sim_check_bound(bool any) {
  return 0;
}

#endif
#endif
