// SPDX-License-Identifier: Apache-2.0
#include "sim/mps/log.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace mps {

int open_log(const char* name) {
  const char* said = getenv("CUDA_MPS_LOG_DIRECTORY");
  const char* directory = said != nullptr && said[0] != '\0' ? said : "/var/log/nvidia-mps";
  if (mkdir(directory, 0755) != 0 && errno != EEXIST) return -1;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void write_log(int fd, const char* who, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 misses the va_start
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local = {};
  localtime_r(&now.tv_sec, &local);
  char stamp[32];
  strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &local);
  dprintf(fd, "[%s.%03ld %-7s %5d] %s\n", stamp, now.tv_nsec / 1000000, who,
          static_cast<int>(getpid()), text);
}

}  // namespace mps
