// SPDX-License-Identifier: GPL-2.0 OR MIT
/* nvidia-drm.ko of a package: only a reference to nvidia-modeset.ko, for the order of unloading. */
#include "package.h"

#include <linux/module.h>

static int __init drm_init(void) {
  sim_hold_modeset();
  return 0;
}

static void __exit drm_exit(void) {}

module_init(drm_init);
module_exit(drm_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simulated nvidia-drm of Gantry");
MODULE_VERSION(SIM_MODULE_VERSION);
