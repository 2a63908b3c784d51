// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"
#include "gantry/command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace gantry::cli {
namespace {

// CLI11 wraps what --help and --version print in an exception, too.
int report(const CLI::App& app, const CLI::ParseError& stop, Context& context) {
  if (dynamic_cast<const CLI::CallForHelp*>(&stop) != nullptr ||
      dynamic_cast<const CLI::CallForAllHelp*>(&stop) != nullptr) {
    // Help of the deepest command that was named, not of the program.
    const CLI::App* deepest = &app;
    while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
    std::string before;  // "gantry sim" for create, so that usage shows the whole command
    for (const CLI::App* parent = deepest->get_parent(); parent != nullptr;
         parent = parent->get_parent()) {
      before = fmt::format("{}{}{}", parent->get_name(), before.empty() ? "" : " ", before);
    }
    fmt::print(context.out, "{}", deepest->help(before));
    return kOk;
  }
  if (dynamic_cast<const CLI::CallForVersion*>(&stop) != nullptr) {
    fmt::print(context.out, "{}\n", stop.what());
    return kOk;
  }
  // CLI11 misses the command before it minds the word that is none.
  const bool unknown =
      dynamic_cast<const CLI::RequiredError*>(&stop) != nullptr && !app.remaining().empty();
  fmt::print(
      context.err, "{}: {}\n", app.get_name(),
      unknown ? fmt::format("there is no command `{}`", app.remaining().front()) : stop.what());
  fmt::print(context.err, "Run `{0} --help` for the commands, `{0} COMMAND --help` for one.\n",
             app.get_name());
  return kUsage;
}

}  // namespace

Context context_of_process(std::FILE* out, std::FILE* err) {
  Context context{.out = out, .err = err};
  if (const char* root = std::getenv("GANTRY_ROOT"); root != nullptr) context.root = root;
  context.color = ::isatty(::fileno(out)) == 1 && std::getenv("NO_COLOR") == nullptr;
  return context;
}

int run_program(CLI::App& app, int argc, char** argv, Context& context, const Action& chosen) {
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {
    return report(app, stop, context);
  }
  const auto status = chosen(context);
  if (!status.ok()) {
    fmt::print(context.err, "{} {}: {}\n", app.get_name(),
               app.get_subcommands().front()->get_name(), printable_lines(status.error().text()));
    return kProblem;
  }
  return *status;
}

}  // namespace gantry::cli
