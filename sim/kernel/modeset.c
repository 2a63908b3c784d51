// SPDX-License-Identifier: GPL-2.0 OR MIT
/* nvidia-modeset.ko: only a reference to nvidia.ko, so that the modules must be unloaded in order.
 */
#include "simulated.h"

#include <linux/module.h>

static int __init modeset_init(void) {
  sim_hold();
  return 0;
}

static void __exit modeset_exit(void) {}

module_init(modeset_init);
module_exit(modeset_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simulated nvidia-modeset of Gantry");
