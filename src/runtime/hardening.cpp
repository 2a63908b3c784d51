// SPDX-License-Identifier: Apache-2.0
#include "runtime/hardening.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace gantry::runtime {

void forget_surroundings() {
  ::clearenv();
  if (::chdir("/") != 0) std::abort();  // there is always a root
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::umask(022);
}

}  // namespace gantry::runtime
