// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

#include <signal.h>
#include <sys/stat.h>

int main(int argc, char** argv) {
  ::umask(022);  // what we publish is for everybody to read and for root to write
  // Ignored by whoever started us, it would make every child process vanish without a status.
  ::signal(SIGCHLD, SIG_DFL);
  return gantry::cli::main_program(argc, argv, stdout, stderr);
}
