// SPDX-License-Identifier: Apache-2.0
// What every command of `gantry` shares. A command is a struct of options, a function that does the
// work, and one add_*() that declares flags, help and examples.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
class Validator;
}  // namespace CLI

namespace gantry::cli {

// Exit status: 0 done and well, 1 done but something is wrong or it failed, 2 wrong usage.
constexpr int kOk = 0;
constexpr int kProblem = 1;
constexpr int kUsage = 2;

struct Context {
  // main_program() fills it from GANTRY_ROOT, a flag overrides it. Not left to CLI11's envname():
  // that one applies the environment for commands that were not named, too, after the flag of the
  // one that was.
  std::string root = "/";
  bool json = false;
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  bool color = false;  // out is a terminal and NO_COLOR is not set
  // Of the face nvidia-ctk alone.
  bool quiet = false;       // errors only
  std::string config_file;  // nvidia-container-runtime's config.toml; "" = where it belongs
};

// A failed action is printed as "gantry COMMAND: text" and ends with kProblem.
using Action = std::function<Result<int>(Context&)>;

// What the environment says: GANTRY_ROOT, NO_COLOR.
Context context_of_process(std::FILE* out, std::FILE* err);

// Parses and runs the command that was named; `app` has its name, commands and version flag.
int run_program(CLI::App& app, int argc, char** argv, Context& context, const Action& chosen);

// --root DIR (environment GANTRY_ROOT); with --json, for commands that look at a machine.
void add_root_option(CLI::App& command, Context& context);
void add_machine_options(CLI::App& command, Context& context);

// ->transform(absolute_path()): a relative file is beside the caller, not below the machine's root.
// Nothing and "-" stay as they are.
CLI::Validator absolute_path();

// --deadline SECONDS, how long NVML may take.
struct Deadline {
  double seconds = 10;
  std::chrono::milliseconds duration() const {
    return std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  }
};
void add_deadline(CLI::App& command, Deadline& deadline);

// Examples below a command's options, one "command  # comment" a line.
void add_examples(CLI::App& command, const std::string& examples);

// The machine the flags name, or an error that says which directory is missing.
Result<sys::Host> open_host(const Context& context);

}  // namespace gantry::cli
