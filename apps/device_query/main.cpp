// SPDX-License-Identifier: Apache-2.0
#include "device_query/device_query.hpp"

int main(int argc, char** argv) {
  return gantry::workload::run_program(
      {.about = "Print what CUDA reports about every GPU that it can use",
       .examples =
           "Exit status: 0 after \"Result = PASS\", 1 no GPU can be used, 2 wrong usage.\n\n"
           "Examples:\n"
           "  gantry-device-query\n"
           "  CUDA_VISIBLE_DEVICES=1 gantry-device-query\n"
           "  gantry-device-query --library /usr/local/nvidia/lib64/libcuda.so.1",
       .run = gantry::workload::device_query},
      argc, argv);
}
