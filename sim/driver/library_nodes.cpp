// SPDX-License-Identifier: Apache-2.0
// Which device nodes this process could use. The real driver opens them. In a simulated machine no
// driver is behind a node, so ENXIO from open() counts as success, while EPERM means that a cgroup
// denies it. Where a packaged driver is installed, the simulated nvidia.ko is behind it.

#include "sim/driver/library.h"
#include "sim/driver/library_internal.hpp"
#include "sim/driver/running_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

namespace gantry::sim {
namespace {

struct Owner {
  uint32_t mode, uid, gid;
};

bool in_group(gid_t group) {
  if (getegid() == group) return true;
  gid_t groups[1024];
  const int count = getgroups(1024, groups);
  for (int i = 0; i < count; ++i) {
    if (groups[i] == group) return true;
  }
  return false;
}

bool may_open(const Owner& owner, Access access) {
  if (has_capability(CAP_DAC_OVERRIDE)) return true;
  uint32_t bits = owner.mode & 7;
  if (geteuid() == owner.uid) {
    bits = (owner.mode >> 6) & 7;
  } else if (in_group(owner.gid)) {
    bits = (owner.mode >> 3) & 7;
  }
  const uint32_t wanted = access == Access::Read ? 4 : 6;
  return (bits & wanted) == wanted;
}

// The errno of opening the node for reading and writing; 0: it can be used.
int node_error(const char* path, uint32_t major_number, uint32_t minor_number, Access access) {
  const int mode = access == Access::Read ? R_OK : R_OK | W_OK;
  struct stat info = {};
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &info, 0) != 0) return errno;
  if (!S_ISCHR(info.st_mode)) return ENODEV;
  if (major(info.st_rdev) != major_number || minor(info.st_rdev) != minor_number) return ENXIO;
  if (syscall(SYS_faccessat2, AT_FDCWD, path, mode, AT_EACCESS) != 0) {
    // Kernels before 5.8 and some sandboxes do not have faccessat2.
    if (errno != ENOSYS && errno != EPERM) return errno;
    if (::access(path, mode) != 0) return errno;
  }
  const int fd = open(path, (access == Access::Read ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd < 0 && (errno == EPERM || gantry_sim_is_packaged() != 0) ? errno : 0;
}

// dev.table of a tree made without root: "/dev/nvidia0 c 195 0 0666 0 0" per line.
int table_error(const char* text, const char* path, uint32_t major_number, uint32_t minor_number,
                Access access) {
  const size_t length = strlen(path);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    const char* next = strchr(line, '\n');
    if (strncmp(line, path, length) == 0 && line[length] == ' ') {
      unsigned int numbers[2];
      Owner owner{};
      char type = 0;
      const int got = sscanf(line + length, " %c %u %u %o %u %u", &type, &numbers[0], &numbers[1],
                             &owner.mode, &owner.uid, &owner.gid);
      if (got != 6 || type != 'c') return ENODEV;
      if (numbers[0] != major_number || numbers[1] != minor_number) return ENXIO;
      return may_open(owner, access) ? 0 : EACCES;
    }
    line = next == nullptr ? nullptr : next + 1;
  }
  return ENOENT;
}

// The nodes that this process has open because it uses the driver.
struct HeldNodes {
  Lock lock;
  int32_t count = 0;
  int fd[GANTRY_SIM_MAX_GPUS + 2] = {};  // nvidiactl and nvidia-uvm besides the GPUs
};
constinit HeldNodes held{};

void hold_node(const char* node) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s", gantry_sim_root(), node);
  const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) held.fd[held.count++] = fd;
}

}  // namespace

bool has_capability(unsigned int capability) {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return geteuid() == 0;
  return (data[capability / 32].effective & (1U << (capability % 32))) != 0;
}

int device_error(const char* node, uint32_t major_number, uint32_t minor_number, Access access) {
  const int saved = errno;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s", gantry_sim_root(), node);
  int error = node_error(path, major_number, minor_number, access);
  if (error == ENOENT || error == ENODEV) {
    char table[65536];
    const int length = snprintf(path, sizeof path, "%s/dev.table", gantry_sim_root());
    if (length < PATH_MAX && read_small_file(path, table, sizeof table) > 0) {
      error = table_error(table, node, major_number, minor_number, access);
    }
  }
  errno = saved;
  return error;
}

int control_error() {
  const auto* image = gantry_sim_image();
  return image == nullptr ? ENODEV
                          : device_error("/dev/nvidiactl", image->machine.nvidia_major, 255);
}

int gpu_error(uint32_t gpu) {
  const auto* image = gantry_sim_image();
  if (image == nullptr || gpu >= image->machine.gpu_count) return ENODEV;
  if (__atomic_load_n(&image->state.gpu[gpu].draining, __ATOMIC_RELAXED) != 0) return ENODEV;
  const uint32_t number = image->machine.gpu[gpu].minor;
  char node[32];
  snprintf(node, sizeof node, "/dev/nvidia%u", number);
  return device_error(node, image->machine.nvidia_major, number);
}

}  // namespace gantry::sim

int gantry_sim_control_visible(void) {
  return gantry::sim::control_error() == 0 ? 1 : 0;
}
int gantry_sim_gpu_visible(uint32_t gpu) {
  return gantry::sim::gpu_error(gpu) == 0 ? 1 : 0;
}

void gantry_sim_hold_nodes(int with_uvm) {
  if (gantry_sim_is_packaged() == 0) return;
  const int saved = errno;
  const auto* image = gantry_sim_image();
  const gantry::sim::Guard guard(gantry::sim::held.lock);
  if (image != nullptr && gantry::sim::held.count == 0) {
    gantry::sim::hold_node("/dev/nvidiactl");
    if (with_uvm != 0) gantry::sim::hold_node("/dev/nvidia-uvm");
    for (uint32_t gpu = 0; gpu < image->machine.gpu_count; ++gpu) {
      char node[32];
      snprintf(node, sizeof node, "/dev/nvidia%u", image->machine.gpu[gpu].minor);
      gantry::sim::hold_node(node);
    }
  }
  errno = saved;
}

void gantry_sim_release_nodes(void) {
  const gantry::sim::Guard guard(gantry::sim::held.lock);
  while (gantry::sim::held.count > 0) close(gantry::sim::held.fd[--gantry::sim::held.count]);
}
