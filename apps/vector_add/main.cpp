// SPDX-License-Identifier: Apache-2.0
#include "vector_add/vector_add.hpp"

int main(int argc, char** argv) {
  return gantry::workload::run_program(
      {.about = "Add two vectors on a GPU and check the sums",
       .examples =
           "Status: 0 the sums are right, 1 they are not or no GPU could be used, 2 wrong "
           "usage.\n\n"
           "Examples:\n"
           "  gantry-vector-add\n"
           "  gantry-vector-add --device 1\n"
           "  gantry-vector-add --library /usr/local/nvidia/lib64/libcuda.so.1\n"
           "  docker run --rm --device nvidia.com/gpu=0 -v $(which gantry-vector-add):/vectorAdd "
           "debian:12 /vectorAdd",
       .takes_device = true,
       .run = gantry::workload::vector_add},
      argc, argv);
}
