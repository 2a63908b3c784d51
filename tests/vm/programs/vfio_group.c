// SPDX-License-Identifier: GPL-2.0 OR MIT
// vfio_group ADDRESS [hold]: gives one simulated GPU to this process by the classic VFIO interface
// (container, group, type 1) and tries everything that a virtual machine monitor does with it.
// "hold" keeps the device open until standard input ends instead. Exit status: 0 everything worked,
// 1 a step failed, 3 the group is not viable.
#include "device_test.h"

static int open_group(const char* address) {
  char link[256], target[256], path[300];
  ssize_t size;
  const char* number;
  int fd;
  snprintf(link, sizeof link, "/sys/bus/pci/devices/%s/iommu_group", address);
  size = readlink(link, target, sizeof target - 1);
  step(size > 0, "the device has an IOMMU group");
  target[size] = '\0';
  number = strrchr(target, '/');
  snprintf(path, sizeof path, "/dev/vfio/%s", number == NULL ? target : number + 1);
  fd = open(path, O_RDWR | O_CLOEXEC);
  step(fd >= 0, path);
  return fd;
}

static void check_viable(int group) {
  struct vfio_group_status status = {.argsz = sizeof status};
  step(ioctl(group, VFIO_GROUP_GET_STATUS, &status) == 0, "the group tells its state");
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) != 0) return;
  printf("the group is not viable\n");
  exit(3);
}

static void map(int container, const struct device* d) {
  struct vfio_iommu_type1_dma_map map = {
      .argsz = sizeof map,
      .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
      .vaddr = (uintptr_t)d->memory,
      .iova = kIova,
      .size = kMapped,
  };
  step(ioctl(container, VFIO_IOMMU_MAP_DMA, &map) == 0, "memory is mapped for the device");
}

static void unmap(int container) {
  struct vfio_iommu_type1_dma_unmap unmap = {.argsz = sizeof unmap, .iova = kIova, .size = kMapped};
  step(ioctl(container, VFIO_IOMMU_UNMAP_DMA, &unmap) == 0, "memory is unmapped");
}

int main(int argc, char** argv) {
  struct device d = {.fd = -1};
  int container, group;
  if (argc < 2) return 2;
  container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
  step(container >= 0, "/dev/vfio/vfio");
  step(ioctl(container, VFIO_GET_API_VERSION) == VFIO_API_VERSION, "the interface has version 0");
  step(ioctl(container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) == 1, "there is a type 1 IOMMU");
  group = open_group(argv[1]);
  check_viable(group);
  step(ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) == 0, "the group joins the container");
  step(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0, "the container gets an IOMMU");
  d.memory = memory_for_device();
  map(container, &d);
  d.fd = ioctl(group, VFIO_GROUP_GET_DEVICE_FD, argv[1]);
  step(d.fd >= 0, "the group gives the device");
  if (argc > 2 && strcmp(argv[2], "hold") == 0) {
    hold();
    return 0;
  }
  find_regions(&d);
  test_dma(&d);
  unmap(container);
  test_stopped_dma(&d);
  test_interrupt(&d);
  test_reset(&d);
  test_mapped_bar(&d);
  return 0;
}
