// SPDX-License-Identifier: Apache-2.0
// Shared by all commands of `gantry`. A command is a struct of options, a function that does the
// work, and an add_*() function that declares its flags, help and examples.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/termination.hpp"

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
class Validator;
}  // namespace CLI

namespace gantry::cli {

class SafeOutput;

// Exit status: 0 success, 1 failure or a problem was found, 2 wrong usage; 128 + N: ended by signal
// N.
constexpr int kOk = 0;
constexpr int kProblem = 1;
constexpr int kUsage = 2;

// The member `schema` of a command's --json, if its document has not got a number of its own. A
// change that breaks readers gets another number; a new key does not.
constexpr int kFirstSchema = 1;

struct Context {
  // main_program() sets it from GANTRY_ROOT; --root overrides it. CLI11's envname() is not used: it
  // also applies the environment for commands that were not named, after the flag of the named one.
  std::string root = "/";
  bool json = false;
  // Both make foreign text safe for a terminal: see safe_output.hpp.
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  // The stream behind `out`: for binary data, and for our own escape sequences.
  std::FILE* raw_out = stdout;
  std::FILE* raw_err = stderr;
  bool terminal = false;    // raw_out is a terminal that understands escape sequences
  bool color = false;       // and NO_COLOR is not set
  std::size_t width = 100;  // of the terminal, in columns
  std::size_t columns = 0;  // the same; 0 if raw_out is not a terminal, and lines need not fit
  // Only for nvidia-ctk.
  bool quiet = false;       // print errors only
  std::string config_file;  // nvidia-container-runtime's config.toml; "" = the default path
  std::shared_ptr<SafeOutput> safe_out, safe_err;  // own `out` and `err`
  // Of a command that takes back what it began when it is asked to end. If one was asked and fails,
  // the exit status is 128 + the number of the signal.
  std::shared_ptr<const sys::CaughtTermination> caught;

  // For text that has our own colours. Its foreign parts must have passed printable().
  std::FILE* painted_out() const { return color ? raw_out : out; }

  // Reads the width of the terminal, which may have been resized.
  void measure_terminal();
};

// If an action fails, its error is printed as "gantry COMMAND: text" and the exit status is
// kProblem.
using Action = std::function<Result<int>(Context&)>;

// Declares one command. When the command is named, its callback sets `chosen`.
using AddCommand = void (*)(CLI::App& app, Context& context, Action& chosen);

// Reads the environment: GANTRY_ROOT, NO_COLOR, TERM.
Context context_of_process(std::FILE* out, std::FILE* err);

// Parses the command line and runs the named command. `app` already has its name, commands and
// version flag.
int run_program(CLI::App& app, int argc, char** argv, Context& context, const Action& chosen);

// add_root_option adds --root DIR (environment: GANTRY_ROOT); add_machine_options adds --json as
// well.
void add_root_option(CLI::App& command, Context& context);
void add_machine_options(CLI::App& command, Context& context);

// For ->transform(absolute_path()): makes a relative path absolute from the caller's directory, not
// from the machine's root. "" and "-" stay unchanged.
CLI::Validator absolute_path();

// --deadline SECONDS: how long to wait for NVML.
struct Deadline {
  double seconds = 10;
  std::chrono::milliseconds duration() const {
    return std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  }
};
void add_deadline(CLI::App& command, Deadline& deadline);

// Adds examples below a command's options, one "command  # comment" per line.
void add_examples(CLI::App& command, const std::string& examples);

// Prints "Note: TEXT" to stderr. The commands in the text get the machine's --root.
void print_note(std::string_view text, const Context& context);

// "Run `gantry doctor` for causes and remedies."
void point_to_doctor(const Context& context);

// Opens the machine that the flags name. The error says which directory is missing.
Result<sys::Host> open_host(const Context& context);

}  // namespace gantry::cli
