// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"
#include "node/agent/retired.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <string_view>

int main(int argc, char** argv) {
  ::umask(022);  // published files are readable by all users and writable by root
  // If the parent process ignores SIGCHLD, every child of ours would end without a status.
  ::signal(SIGCHLD, SIG_DFL);
  if (argc > 1 && std::string_view(argv[1]) == gantry::agent::kRetiredCommand)
    return gantry::agent::retired_main(argc, argv);
  return gantry::cli::main_program(argc, argv, stdout, stderr);
}
