// SPDX-License-Identifier: GPL-2.0 OR MIT
/* nvidia-peermem.ko of a package: only a reference to nvidia.ko. */
#include "package.h"

#include <linux/module.h>

static int __init peermem_init(void) {
  sim_hold();
  return 0;
}

static void __exit peermem_exit(void) {}

module_init(peermem_init);
module_exit(peermem_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simulated nvidia-peermem of Gantry");
MODULE_VERSION(SIM_MODULE_VERSION);
