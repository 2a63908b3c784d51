// SPDX-License-Identifier: GPL-2.0 OR MIT
/* nvidia-uvm.ko: two nodes under a dynamic major, and a reference to nvidia.ko. */
#include "package.h"

#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/module.h>

static dev_t first;
static struct cdev nodes;
static const struct file_operations uvm_fops = {.owner = THIS_MODULE};

static int __init uvm_init(void) {
  int rc = alloc_chrdev_region(&first, 0, 2, "nvidia-uvm");

  if (rc) return rc;
  sim_hold();
  cdev_init(&nodes, &uvm_fops);
  nodes.owner = THIS_MODULE;
  rc = cdev_add(&nodes, first, 2);
  if (rc) unregister_chrdev_region(first, 2);
  return rc;
}

static void __exit uvm_exit(void) {
  cdev_del(&nodes);
  unregister_chrdev_region(first, 2);
}

module_init(uvm_init);
module_exit(uvm_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simulated nvidia-uvm of Gantry");
MODULE_VERSION(SIM_MODULE_VERSION);
