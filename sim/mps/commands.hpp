// SPDX-License-Identifier: Apache-2.0
// The commands of nvidia-cuda-mps-control and their answers, which are the vendor's word for word
// (recorded on an H200, tests/golden/mps-control.txt).
#pragma once

#include "sim/mps/daemon.hpp"

namespace mps {

// Runs one line that `user` sent and answers it.
void run_line(Daemon& daemon, Connection& user, const char* line);

}  // namespace mps
