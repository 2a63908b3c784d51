// SPDX-License-Identifier: Apache-2.0
#include "vector_add/vector_add.hpp"

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  std::uint64_t memory_mib = 0;
  const auto more = [&](CLI::App& app) {
    app.add_option("--memory", memory_mib,
                   "Also allocate this many MiB of GPU memory and keep them")
        ->type_name("MIB")
        ->check(CLI::Range(0U, 100'000'000U));
  };
  const auto run = [&](gantry::workload::Options options, std::FILE* out, std::FILE* err) {
    options.memory_mib = memory_mib;
    return gantry::workload::vector_add(options, out, err);
  };
  return gantry::workload::run_program(
      {.about = "Add two vectors on a GPU and check the sums",
       .examples =
           "Exit status: 0 the sums are right, 1 they are not or no GPU can be used, 2 wrong "
           "usage.\n\n"
           "Examples:\n"
           "  gantry-vector-add\n"
           "  gantry-vector-add --device 1\n"
           "  gantry-vector-add --memory 70000 --hold 60   # out of memory if its share has less\n"
           "  gantry-vector-add --library /usr/local/nvidia/lib64/libcuda.so.1\n"
           "  docker run --rm --device nvidia.com/gpu=0 -v $(which gantry-vector-add):/vectorAdd "
           "debian:12 /vectorAdd",
       .takes_device = true,
       .more = more,
       .run = run},
      argc, argv);
}
