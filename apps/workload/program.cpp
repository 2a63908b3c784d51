// SPDX-License-Identifier: Apache-2.0
#include "command_line/parse_arguments.hpp"
#include "workload/cuda.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <string_view>

namespace gantry::workload {

void print_error(std::FILE* err, const std::string& name, const Error& error) {
  fmt::print(err, "{}: {}\n", name, error.text());
}

int run_program(const Program& program, int argc, char** argv) {
  CLI::App app(program.about);
  Options options;
  if (argc > 0) {
    const std::string_view path = argv[0];
    options.called = path.substr(path.rfind('/') + 1);
    app.name(options.called);
  }
  app.add_option("--library", options.library,
                 "libcuda to use (default: the one that the loader finds)");
  if (program.takes_device) {
    app.add_option("--device", options.device, "Number of the GPU to use")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_option("--hold", options.hold_seconds,
                   "Keep the GPU for this many seconds afterwards, to inspect it with nvidia-smi")
        ->check(CLI::Range(0, 86400));
  }
  if (program.more) program.more(app);
  app.set_version_flag("--version", GANTRY_VERSION);
  app.footer(program.examples);
  try {
    command_line::parse_arguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return program.run(options, stdout, stderr);
}

}  // namespace gantry::workload
