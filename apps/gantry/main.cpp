// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"
#include "gpu/nvml_child/nvml_child.hpp"
#include "node/agent/retired.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <string_view>

int main(int argc, char** argv) {
  ::umask(022);  // what we publish is for everybody to read and for root to write
  // Ignored by whoever started us, it would make every child process vanish without a status.
  ::signal(SIGCHLD, SIG_DFL);
  // The agent's process with NVML: small, so before anything of the command line exists.
  if (argc > 1 && std::string_view(argv[1]) == gantry::nvml_child::kChildCommand)
    return gantry::nvml_child::child_main(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == gantry::agent::kRetiredCommand)
    return gantry::agent::retired_main(argc, argv);
  return gantry::cli::main_program(argc, argv, stdout, stderr);
}
