// SPDX-License-Identifier: Apache-2.0
#include "gantry/command.hpp"

#include "base/sys/shell_command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace gantry::cli {

CLI::Validator absolute_path() {
  return CLI::Validator(
      [](std::string& path) {
        if (path.empty() || path == "-" || path.front() == '/') return std::string();
        std::error_code problem;
        path = std::filesystem::absolute(path, problem).lexically_normal().string();
        return problem ? problem.message() : std::string();
      },
      "");
}

void add_root_option(CLI::App& command, Context& context) {
  command
      .add_option("--root", context.root,
                  "Look at the machine below this directory (environment: GANTRY_ROOT)")
      ->type_name("DIR")
      ->transform(absolute_path())
      ->capture_default_str();
}

void add_machine_options(CLI::App& command, Context& context) {
  add_root_option(command, context);
  command.add_flag("--json", context.json, "Print JSON");
}

void add_deadline(CLI::App& command, Deadline& deadline) {
  command.add_option("--deadline", deadline.seconds, "Seconds to wait for NVML")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.01, 3600.0).description(""))
      ->capture_default_str();
}

void add_examples(CLI::App& command, const std::string& examples) {
  command.footer("Examples:\n" + examples);
}

void print_note(std::string_view text, const Context& context) {
  fmt::print(context.err, "Note: {}\n", sys::with_root(text, context.root));
}

void point_to_doctor(const Context& context) {
  fmt::print(context.err, "Run `gantry doctor{}` for causes and remedies.\n",
             sys::root_flag(context.root));
}

Result<sys::Host> open_host(const Context& context) {
  return sys::Host::at(context.root).in("opening the machine");
}

}  // namespace gantry::cli
