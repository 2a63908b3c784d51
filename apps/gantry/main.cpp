// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

#include <signal.h>

int main(int argc, char** argv) {
  // Ignored by whoever started us, it would make every child process vanish without a status.
  ::signal(SIGCHLD, SIG_DFL);
  return gantry::cli::main_program(argc, argv, stdout, stderr);
}
