// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

int main(int argc, char** argv) {
  return gantry::cli::main_program(argc, argv, stdout, stderr);
}
