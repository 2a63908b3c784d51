// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/usage_internal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gantry::sim {
namespace {

// "pid:[4026531836]" as the link reads; 0 when it may not be read.
uint64_t namespace_of(const char* link) {
  char text[64];
  const ssize_t length = readlink(link, text, sizeof text - 1);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* open = strchr(text, '[');
  return open == nullptr ? 0 : strtoull(open + 1, nullptr, 10);
}

bool read_status(long pid, char* text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/status", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t length = read(fd, text, size - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  return true;
}

}  // namespace

uint64_t own_pid_namespace() {
  return namespace_of("/proc/self/ns/pid");
}

bool innermost_pid(const char* status, int32_t& pid, int& depth) {
  const char* line = strstr(status, "\nNSpid:");
  if (line == nullptr) return false;
  line += 7;
  depth = 0;
  for (;;) {
    while (*line == ' ' || *line == '\t') ++line;
    char* after = nullptr;
    const long number = strtol(line, &after, 10);
    if (after == line) return depth > 0;
    pid = static_cast<int32_t>(number);
    ++depth;
    line = after;
  }
}

namespace {

// The pid of a process in its own namespace, and that namespace; 0 if it cannot be read.
struct ProcessIdentity {
  int32_t pid = 0;
  uint64_t space = 0;
};

// False for a process of our own namespace and for one that does not exist.
bool process_identity(long seen, ProcessIdentity& identity) {
  char status[4096];
  int depth = 0;
  if (!read_status(seen, status, sizeof status)) return false;
  if (!innermost_pid(status, identity.pid, depth) || depth < 2) return false;
  char link[64];
  snprintf(link, sizeof link, "/proc/%ld/ns/pid", seen);
  identity.space = namespace_of(link);
  return true;
}

// Remembers where processes were seen last. Without it every query would walk over all of /proc,
// which with some hundred containers takes longer than the time until the next query. An entry is
// only a hint and is checked before use, so threads, forks and exits need no special handling.
constexpr size_t kPlaces = 4096;
constexpr size_t kTries = 8;
constinit int32_t places[kPlaces] = {};

int32_t* remembered_place(const ProcessIdentity& identity, size_t attempt) {
  const uint64_t mixed = (identity.space ^ static_cast<uint64_t>(identity.pid) << 32U) *
                         0x9e3779b97f4a7c15U;  // the high bits of a product depend on all others
  return &places[((mixed >> 48U) + attempt) % kPlaces];
}

int32_t remembered_pid(const ProcessIdentity& wanted) {
  for (size_t attempt = 0; attempt < kTries; ++attempt) {
    const int32_t seen = __atomic_load_n(remembered_place(wanted, attempt), __ATOMIC_RELAXED);
    ProcessIdentity found;
    if (seen != 0 && process_identity(seen, found) && found.pid == wanted.pid &&
        found.space == wanted.space)
      return seen;
  }
  return 0;
}

void remember_pid(const ProcessIdentity& identity, int32_t seen) {
  int32_t* place = remembered_place(identity, static_cast<size_t>(seen) % kTries);
  for (size_t attempt = 0; attempt < kTries; ++attempt) {
    int32_t* other = remembered_place(identity, attempt);
    const int32_t there = __atomic_load_n(other, __ATOMIC_RELAXED);
    if (there == seen) return;
    if (there == 0) {
      place = other;
      break;
    }
  }
  __atomic_store_n(place, seen, __ATOMIC_RELAXED);
}

// We may not be allowed to read the namespace link; then a match of the pid alone counts, if there
// is exactly one.
int32_t find_in_proc(const ProcessIdentity& wanted) {
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return 0;
  int32_t exact = 0;
  int32_t likely = 0;
  int likely_count = 0;
  while (const struct dirent* entry = readdir(proc)) {
    const auto seen = static_cast<int32_t>(strtol(entry->d_name, nullptr, 10));
    ProcessIdentity found;
    if (seen <= 0 || !process_identity(seen, found)) continue;
    if (found.space != 0) remember_pid(found, seen);
    if (found.pid != wanted.pid || (found.space != 0 && found.space != wanted.space)) continue;
    if (found.space == wanted.space) exact = seen;
    likely = seen;
    ++likely_count;
  }
  closedir(proc);
  if (exact != 0) return exact;
  return likely_count == 1 ? likely : 0;
}

}  // namespace

int32_t pid_in_own_namespace(int32_t pid, uint64_t space) {
  if (pid <= 0) return 0;
  if (space == own_pid_namespace()) return pid;
  const ProcessIdentity wanted{pid, space};
  const int32_t known = space == 0 ? 0 : remembered_pid(wanted);
  return known != 0 ? known : find_in_proc(wanted);
}

}  // namespace gantry::sim
