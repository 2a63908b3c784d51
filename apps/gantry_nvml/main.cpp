// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/program.hpp"

int main(int argc, char** argv) {
  return gantry::nvml::program(argc, argv);
}
