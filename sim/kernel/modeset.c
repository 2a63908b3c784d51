// SPDX-License-Identifier: GPL-2.0 OR MIT
/* nvidia-modeset.ko: only a reference to nvidia.ko, so that the modules must be unloaded in order.
 */
#include "package.h"

#include <linux/module.h>

void sim_hold_modeset(void) {}
EXPORT_SYMBOL_GPL(sim_hold_modeset);

static int __init modeset_init(void) {
  sim_hold();
  return 0;
}

static void __exit modeset_exit(void) {}

module_init(modeset_init);
module_exit(modeset_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simulated nvidia-modeset of Gantry");
MODULE_VERSION(SIM_MODULE_VERSION);
