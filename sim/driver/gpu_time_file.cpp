// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/file_lock_internal.hpp"
#include "sim/driver/gpu_time_file_internal.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace gantry::sim {
namespace {

constexpr uint64_t kTimeRegionMagic = 0x31656d6954796e47;
constexpr const char* kPrefix = "gantry-sim-";
// The locks are at offsets beyond any byte of the file.
constexpr int64_t kRegionLock = 1LL << 40U;
constexpr int64_t kPresenceLock = kRegionLock + 8;  // shared by every process that may take a slot
constexpr int64_t kSeatLock = kRegionLock + 16;

struct FileIdentity {
  uint64_t device, inode, links, size;
};

// Uses the system call, because libc's symbol for fstat has changed over the years.
bool file_identity(int fd, FileIdentity& identity) {
  struct stat found = {};
  if (syscall(SYS_fstat, fd, &found) != 0) return false;
  identity = {found.st_dev, found.st_ino, found.st_nlink, static_cast<uint64_t>(found.st_size)};
  return S_ISREG(found.st_mode);
}

bool file_identity(const char* path, FileIdentity& identity) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const bool known = file_identity(fd, identity);
  close(fd);
  return known;
}

const char* directory() {
  const char* named = getenv("GANTRY_SIM_SHARED");
  return named != nullptr && named[0] == '/' ? named : "/dev/shm";
}

bool path_of(const char* libcuda_file, char* out, size_t size) {
  FileIdentity library = {};
  if (!file_identity(libcuda_file, library)) return false;
  const int length = snprintf(out, size, "%s/%s%llx-%llx", directory(), kPrefix,
                              static_cast<unsigned long long>(library.device),
                              static_cast<unsigned long long>(library.inode));
  return length > 0 && static_cast<size_t>(length) < size;
}

bool anybody_in(int fd) {
  struct flock found = {};
  return lock_call(fd, kOfdGetLock, F_WRLCK, kRegionLock, 0, &found) == 0 &&
         found.l_type != F_UNLCK;
}

// Removes a file that no process uses. A process that opened it meanwhile sees that its name is
// gone and starts again.
void remove_if_left(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  if (!anybody_in(fd) && lock_call(fd, kOfdSetLock, F_WRLCK, kRegionLock, 1) == 0 &&
      !anybody_in(fd))
    unlink(path);
  close(fd);
}

void remove_left_files(const char* own) {
  DIR* all = opendir(directory());
  if (all == nullptr) return;
  int looked = 0;
  while (const struct dirent* entry = readdir(all)) {
    if (strncmp(entry->d_name, kPrefix, strlen(kPrefix)) != 0) continue;
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", directory(), entry->d_name);
    if (length <= 0 || static_cast<size_t>(length) >= sizeof path || strcmp(path, own) == 0)
      continue;
    remove_if_left(path);
    if (++looked == 64) break;  // the next process continues
  }
  closedir(all);
}

uint32_t wanted_speed() {
  const char* text = getenv("GANTRY_SIM_SPEED");
  const long speed = text == nullptr ? 1 : strtol(text, nullptr, 10);
  return speed < 1 ? 1 : speed > 100 ? 100 : static_cast<uint32_t>(speed);
}

bool is_sound(const TimeRegion& region) {
  return region.magic == kTimeRegionMagic && region.size == sizeof(TimeRegion) &&
         region.speed >= 1 && region.speed <= 100;
}

// With the region's lock: initialises a new file.
TimeRegion* map_region(int fd, TimeFileMode how) {
  FileIdentity file = {};
  if (!file_identity(fd, file)) return nullptr;
  if (file.size != sizeof(TimeRegion)) {
    if (how == TimeFileMode::Find || ftruncate(fd, 0) != 0 ||
        ftruncate(fd, static_cast<off_t>(sizeof(TimeRegion))) != 0)
      return nullptr;
  }
  void* at = mmap(nullptr, sizeof(TimeRegion), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* region = static_cast<TimeRegion*>(at);
  if (!is_sound(*region) && how == TimeFileMode::Make) {
    region->speed = wanted_speed();
    region->size = sizeof(TimeRegion);
    region->slot_count = 0;
    region->magic = kTimeRegionMagic;
  }
  if (is_sound(*region)) return region;
  munmap(at, sizeof(TimeRegion));
  return nullptr;
}

OpenTimeFile try_open(const char* path, TimeFileMode how, bool& again) {
  OpenTimeFile file = {-1, nullptr, {}};
  const int make = how == TimeFileMode::Make ? O_CREAT : 0;
  file.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | make, 0666);
  if (file.fd < 0) return file;
  if (how == TimeFileMode::Make) fchmod(file.fd, 0666);  // containers run as any user
  if (lock_region(file.fd)) {
    FileIdentity opened = {};
    again = file_identity(file.fd, opened) && opened.links == 0;
    if (!again) file.region = map_region(file.fd, how);
    if (how == TimeFileMode::Make) lock_call(file.fd, kOfdSetLock, F_RDLCK, kPresenceLock, 1);
    unlock_region(file.fd);
  }
  if (file.region == nullptr) close_time_file(file);
  return file;
}

}  // namespace

OpenTimeFile open_time_file(const char* libcuda_file, TimeFileMode how) {
  OpenTimeFile file = {-1, nullptr, {}};
  char path[sizeof file.path];
  if (!path_of(libcuda_file, path, sizeof path)) return file;
  if (how == TimeFileMode::Make) remove_left_files(path);
  for (int tries = 0; tries < 8; ++tries) {
    bool again = false;
    file = try_open(path, how, again);
    if (!again) break;
  }
  memcpy(file.path, path, sizeof path);
  return file;
}

void close_time_file(OpenTimeFile& file) {
  if (file.region != nullptr) munmap(file.region, sizeof(TimeRegion));
  if (file.fd >= 0) close(file.fd);
  file = {-1, nullptr, {}};
}

void leave_time_file(const OpenTimeFile& file) {
  FileIdentity named = {};
  FileIdentity opened = {};
  if (file.fd < 0 || !file_identity(file.path, named) || !file_identity(file.fd, opened)) return;
  // A query through an open file does not see its own locks.
  if (named.inode == opened.inode && named.device == opened.device && !anybody_in(file.fd))
    unlink(file.path);
}

bool is_removed(const OpenTimeFile& file) {
  FileIdentity opened = {};
  return file.fd >= 0 && file_identity(file.fd, opened) && opened.links == 0;
}

bool lock_region(int fd) {
  for (int tries = 0; tries < 20000; ++tries) {
    if (lock_call(fd, kOfdSetLock, F_WRLCK, kRegionLock, 1) == 0) return true;
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return false;
    const struct timespec pause = {0, tries < 100 ? 5000 : 50000};
    nanosleep(&pause, nullptr);
  }
  return false;
}

void unlock_region(int fd) {
  lock_call(fd, kOfdSetLock, F_UNLCK, kRegionLock, 1);
}

bool lock_slot(int fd, uint32_t slot) {
  return lock_call(fd, kOfdSetLock, F_WRLCK, kSeatLock + static_cast<int64_t>(slot) * 2, 1) == 0;
}

bool is_slot_locked(int fd, uint32_t slot) {
  struct flock found = {};
  const int64_t start = kSeatLock + static_cast<int64_t>(slot) * 2;
  return lock_call(fd, kOfdGetLock, F_WRLCK, start, 1, &found) != 0 || found.l_type != F_UNLCK;
}

}  // namespace gantry::sim
