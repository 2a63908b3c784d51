// SPDX-License-Identifier: Apache-2.0
#include "sim/usage_internal.hpp"

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

// Of a process in another namespace the status says its number there. The namespace's own link may
// be closed to us; then a match of the number alone counts, if there is just one.
int32_t pid_seen_from_here(int32_t pid, uint64_t space) {
  if (pid <= 0) return 0;
  const uint64_t ours = own_pid_namespace();
  if (space == ours) return pid;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return 0;
  int32_t exact = 0;
  int32_t likely = 0;
  int likely_count = 0;
  while (const struct dirent* entry = readdir(proc)) {
    const long seen = strtol(entry->d_name, nullptr, 10);
    char status[4096];
    int32_t inner = 0;
    int depth = 0;
    if (seen <= 0 || !read_status(seen, status, sizeof status)) continue;
    if (!innermost_pid(status, inner, depth) || depth < 2 || inner != pid) continue;
    char link[64];
    snprintf(link, sizeof link, "/proc/%ld/ns/pid", seen);
    const uint64_t its = namespace_of(link);
    if (its != 0 && its != space) continue;
    if (its == space) exact = static_cast<int32_t>(seen);
    likely = static_cast<int32_t>(seen);
    ++likely_count;
  }
  closedir(proc);
  if (exact != 0) return exact;
  return likely_count == 1 ? likely : 0;
}

}  // namespace gantry::sim
