// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A driver with nouveau's name: it takes every NVIDIA GPU and does nothing with it. */
#include <linux/module.h>
#include <linux/pci.h>

static int nouveau_probe(struct pci_dev* pdev, const struct pci_device_id* id) {
  return 0;
}

static const struct pci_device_id ids[] = {
    {PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID), .class = PCI_BASE_CLASS_DISPLAY << 16,
     .class_mask = 0xff0000},
    {},
};

static struct pci_driver nouveau_driver = {
    .name = "nouveau", .id_table = ids, .probe = nouveau_probe};

module_pci_driver(nouveau_driver);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Stand-in for nouveau in Gantry's tests");
