// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/harden.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace gantry::runtime {
namespace {

constexpr unsigned kFirst = 3;

void close_the_rest() {
  if (::syscall(SYS_close_range, kFirst, ~0U, 0U) == 0) return;
  // Before Linux 5.9: closes them one by one, up to a limit that covers every runtime.
  rlimit limit{};
  rlim_t end = 1024;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) end = std::min<rlim_t>(limit.rlim_cur, 65536);
  for (rlim_t fd = kFirst; fd < end; ++fd) ::close(static_cast<int>(fd));
}

}  // namespace

void harden() {
  ::clearenv();
  if (::chdir("/") != 0) std::abort();  // never happens; but "." must not be in the image
  close_the_rest();
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::umask(022);
}

}  // namespace gantry::runtime
