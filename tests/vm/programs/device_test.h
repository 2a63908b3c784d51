// SPDX-License-Identifier: GPL-2.0 OR MIT
// What both VFIO programs do with a simulated GPU once they have its descriptor. Each step prints
// one line; the first failure ends the program.
#ifndef GANTRY_TESTS_VM_DEVICE_TEST_H
#define GANTRY_TESTS_VM_DEVICE_TEST_H

#include "sim/pci/registers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  kMapped = 1 << 20,  // bytes that the device may reach
  kIova = 1 << 20,    // where it sees them
  kFirst = 0,         // places in the mapped memory
  kSecond = kMapped / 2,
};
static const char kText[] = "through the IOMMU";

struct device {
  int fd;
  uint64_t config, bar0, bar1;  // offsets of the regions; bar1 is 0 if the device has none
  char* memory;                 // kMapped bytes at kIova
};

static inline void step(int good, const char* what) {
  const int error = errno;
  printf("%s %s\n", good ? "  ok" : "  FAILED", what);
  fflush(stdout);
  if (good) return;
  if (error != 0) printf("  %s\n", strerror(error));
  exit(1);
}

static inline uint32_t get(const struct device* d, uint64_t at) {
  uint32_t value = 0;
  if (pread(d->fd, &value, sizeof value, (off_t)at) != sizeof value) step(0, "read a register");
  return value;
}

static inline void put(const struct device* d, uint64_t at, uint32_t value) {
  if (pwrite(d->fd, &value, sizeof value, (off_t)at) != sizeof value) step(0, "write a register");
}

static inline uint64_t region(int fd, uint32_t index, uint64_t* size) {
  struct vfio_region_info info = {.argsz = sizeof info, .index = index};
  if (ioctl(fd, VFIO_DEVICE_GET_REGION_INFO, &info) != 0) step(0, "ask for a region");
  if (size != NULL) *size = info.size;
  return info.size == 0 ? 0 : info.offset;
}

static inline void enable(const struct device* d) {
  put(d, d->config + PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

static inline void find_regions(struct device* d) {
  d->config = region(d->fd, VFIO_PCI_CONFIG_REGION_INDEX, NULL);
  d->bar0 = region(d->fd, VFIO_PCI_BAR0_REGION_INDEX, NULL);
  d->bar1 = region(d->fd, VFIO_PCI_BAR1_REGION_INDEX, NULL);
  enable(d);
  step((get(d, d->config + PCI_VENDOR_ID) & 0xffff) == 0x10de,
       "configuration space has NVIDIA's vendor id");
  step(get(d, d->bar0 + GANTRY_GPU_MAGIC) == GANTRY_GPU_MAGIC_VALUE, "BAR 0 can be read");
  put(d, d->bar0 + GANTRY_GPU_SCRATCH, 0x12345678);
  step(get(d, d->bar0 + GANTRY_GPU_SCRATCH) == 0x12345678, "BAR 0 can be written");
}

static inline uint32_t copy(const struct device* d, uint32_t command, uint64_t iova) {
  put(d, d->bar0 + GANTRY_GPU_DMA_ADDRESS, (uint32_t)iova);
  put(d, d->bar0 + GANTRY_GPU_DMA_ADDRESS + 4, (uint32_t)(iova >> 32));
  put(d, d->bar0 + GANTRY_GPU_DMA_LENGTH, sizeof kText);
  put(d, d->bar0 + GANTRY_GPU_DMA_COMMAND, command);
  return get(d, d->bar0 + GANTRY_GPU_DMA_STATUS);
}

static inline void test_dma(const struct device* d) {
  strcpy(d->memory + kFirst, kText);
  memset(d->memory + kSecond, 0, sizeof kText);
  step(copy(d, GANTRY_GPU_DMA_FROM_MEMORY, kIova + kFirst) == 0,
       "the device reads memory through the IOMMU");
  step(copy(d, GANTRY_GPU_DMA_TO_MEMORY, kIova + kSecond) == 0 &&
           strcmp(d->memory + kSecond, kText) == 0,
       "the device writes memory through the IOMMU");
}

// To be called after the memory was unmapped.
static inline void test_stopped_dma(const struct device* d) {
  memset(d->memory + kSecond, 0, sizeof kText);
  copy(d, GANTRY_GPU_DMA_TO_MEMORY, kIova + kSecond);
  step(d->memory[kSecond] == 0, "the IOMMU stops a write to memory that is not mapped");
}

static inline void test_interrupt(const struct device* d) {
  union {
    struct vfio_irq_set set;
    char room[sizeof(struct vfio_irq_set) + sizeof(int)];
  } request;
  const int event = eventfd(0, EFD_CLOEXEC);
  struct pollfd waiting = {.fd = event, .events = POLLIN};
  request.set.argsz = sizeof request;
  request.set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  request.set.index = VFIO_PCI_MSI_IRQ_INDEX;
  request.set.start = 0;
  request.set.count = 1;
  memcpy(request.set.data, &event, sizeof event);
  step(event >= 0 && ioctl(d->fd, VFIO_DEVICE_SET_IRQS, &request.set) == 0,
       "an MSI can be received");
  put(d, d->bar0 + GANTRY_GPU_RAISE_MSI, 1);
  step(poll(&waiting, 1, 5000) == 1, "the device raises an MSI");
  request.set.flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
  request.set.count = 0;
  request.set.argsz = sizeof request.set;
  step(ioctl(d->fd, VFIO_DEVICE_SET_IRQS, &request.set) == 0, "the MSI can be given back");
  close(event);
}

// A function without FLR that shares its slot cannot be reset by itself.
static inline int can_reset(const struct device* d) {
  struct vfio_device_info info = {.argsz = sizeof info};
  step(ioctl(d->fd, VFIO_DEVICE_GET_INFO, &info) == 0, "the device tells what it can do");
  return (info.flags & VFIO_DEVICE_FLAGS_RESET) != 0;
}

static inline void test_reset(const struct device* d) {
  uint32_t before;
  if (!can_reset(d)) {
    printf("  it cannot be reset by itself\n");
    return;
  }
  before = get(d, d->bar0 + GANTRY_GPU_RESETS);
  put(d, d->bar0 + GANTRY_GPU_WEDGE, 1);
  step(get(d, d->bar0 + GANTRY_GPU_MAGIC) == UINT32_MAX, "a wedged device answers all ones");
  step(ioctl(d->fd, VFIO_DEVICE_RESET) == 0, "the device can be reset");
  enable(d);
  step(get(d, d->bar0 + GANTRY_GPU_RESETS) > before && get(d, d->bar0 + GANTRY_GPU_SCRATCH) == 0,
       "the reset reached the device and cleared it");
}

static inline void test_mapped_bar(const struct device* d) {
  volatile char* bar;
  if (d->bar1 == 0) return;
  bar = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, (off_t)d->bar1);
  step(bar != MAP_FAILED, "BAR 1 can be mapped");
  bar[5] = 77;
  step(bar[5] == 77, "mapped BAR 1 keeps what is written");
}

static inline char* memory_for_device(void) {
  char* memory = mmap(NULL, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  step(memory != MAP_FAILED, "memory for the device");
  return memory;
}

// Keeps everything open until standard input ends, so that a test decides how long.
static inline void hold(void) {
  char byte;
  printf("holding\n");
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

#endif
