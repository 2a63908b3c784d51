// SPDX-License-Identifier: GPL-2.0 OR MIT
// vfio_cdev ADDRESS [hold]: as vfio_group, by /dev/vfio/devices/vfioN and /dev/iommu.
#include "device_test.h"

#include <dirent.h>
#include <linux/iommufd.h>

static int open_device(const char* address) {
  char directory[256], path[320] = "";
  struct dirent* entry;
  DIR* list;
  int fd;
  snprintf(directory, sizeof directory, "/sys/bus/pci/devices/%s/vfio-dev", address);
  list = opendir(directory);
  step(list != NULL, directory);
  while ((entry = readdir(list)) != NULL) {
    if (entry->d_name[0] != '.') snprintf(path, sizeof path, "/dev/vfio/devices/%s", entry->d_name);
  }
  closedir(list);
  fd = open(path, O_RDWR | O_CLOEXEC);
  step(fd >= 0, path);
  return fd;
}

static uint32_t attach(int iommu, int device) {
  struct vfio_device_bind_iommufd bind = {.argsz = sizeof bind, .iommufd = iommu};
  struct iommu_ioas_alloc space = {.size = sizeof space};
  struct vfio_device_attach_iommufd_pt attach = {.argsz = sizeof attach};
  step(ioctl(device, VFIO_DEVICE_BIND_IOMMUFD, &bind) == 0, "the device is bound to iommufd");
  step(ioctl(iommu, IOMMU_IOAS_ALLOC, &space) == 0, "there is an address space");
  attach.pt_id = space.out_ioas_id;
  step(ioctl(device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach) == 0, "the device is attached to it");
  return space.out_ioas_id;
}

int main(int argc, char** argv) {
  struct device d = {.fd = -1};
  int iommu;
  if (argc < 2) return 2;
  d.fd = open_device(argv[1]);
  iommu = open("/dev/iommu", O_RDWR | O_CLOEXEC);
  step(iommu >= 0, "/dev/iommu");
  const uint32_t space = attach(iommu, d.fd);
  if (argc > 2 && strcmp(argv[2], "hold") == 0) {
    hold();
    return 0;
  }
  d.memory = memory_for_device();
  struct iommu_ioas_map map = {
      .size = sizeof map,
      .flags = IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE,
      .ioas_id = space,
      .user_va = (uintptr_t)d.memory,
      .length = kMapped,
      .iova = kIova,
  };
  step(ioctl(iommu, IOMMU_IOAS_MAP, &map) == 0, "memory is mapped for the device");
  find_regions(&d);
  test_dma(&d);
  struct iommu_ioas_unmap unmap = {
      .size = sizeof unmap, .ioas_id = space, .iova = kIova, .length = kMapped};
  step(ioctl(iommu, IOMMU_IOAS_UNMAP, &unmap) == 0, "memory is unmapped");
  test_stopped_dma(&d);
  test_interrupt(&d);
  test_reset(&d);
  test_mapped_bar(&d);
  return 0;
}
