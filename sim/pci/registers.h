/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* BAR 0 of the simulated GPU. The device, the kernel module and the test programs share this file.
 * Registers have 32 bits unless they say otherwise. */
#ifndef GANTRY_SIM_PCI_REGISTERS_H
#define GANTRY_SIM_PCI_REGISTERS_H

#define GANTRY_GPU_BOOT_ID 0x00     /* read: which chip this is, as the vendor's driver reads it */
#define GANTRY_GPU_SCRATCH 0x04     /* keeps what is written until a reset */
#define GANTRY_GPU_RESETS 0x08      /* read: resets since QEMU started */
#define GANTRY_GPU_MAGIC 0x0c       /* read: GANTRY_GPU_MAGIC_VALUE */
#define GANTRY_GPU_DMA_ADDRESS 0x10 /* 64 bits, as the device sees memory */
#define GANTRY_GPU_DMA_LENGTH 0x18  /* bytes, at most GANTRY_GPU_BUFFER_SIZE */
#define GANTRY_GPU_DMA_COMMAND 0x1c /* write: copies between memory and the buffer below */
#define GANTRY_GPU_DMA_STATUS 0x20  /* read: 0 if the last copy worked, 1 if the bus refused it */
#define GANTRY_GPU_RAISE_MSI 0x24   /* write: raises the interrupt */
#define GANTRY_GPU_WEDGE 0x28       /* write 1: reads answer all ones until a reset */
#define GANTRY_GPU_BOOT_ID_42 0xa00
#define GANTRY_GPU_BUFFER 0x1000
#define GANTRY_GPU_BUFFER_SIZE 0x1000

#define GANTRY_GPU_DMA_FROM_MEMORY 1
#define GANTRY_GPU_DMA_TO_MEMORY 2
#define GANTRY_GPU_MAGIC_VALUE 0x59524e47 /* "GNRY" */

#endif
