// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "gantry/command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace gantry::cli {
namespace {

const CLI::App& deepest_of(const CLI::App& app) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  return *deepest;
}

// "gantry sim" for create, so that usage shows the whole command
std::string words_before(const CLI::App& command) {
  std::string before;
  for (const CLI::App* parent = command.get_parent(); parent != nullptr;
       parent = parent->get_parent()) {
    before = fmt::format("{}{}{}", parent->get_name(), before.empty() ? "" : " ", before);
  }
  return before;
}

// What to type instead. A command that runs another command would take that command's options for
// its own unless `--` separates them.
std::string advice(const CLI::App& app, const CLI::ParseError& stop) {
  const auto& named = deepest_of(app);
  if (&named == &app)
    return fmt::format(
        "Run `{0} --help` for the list of commands, `{0} COMMAND --help` for one command.",
        app.get_name());
  const auto words = fmt::format("{} {}", words_before(named), named.get_name());
  if (dynamic_cast<const CLI::ExtrasError*>(&stop) != nullptr &&
      named.get_option_no_throw("command") != nullptr)
    return fmt::format("Options of the command come after `--`: {} [OPTIONS] -- COMMAND...", words);
  return fmt::format("Run `{} --help` for {}.", words,
                     named.get_subcommands({}).empty() ? "its options" : "its commands");
}

// In the order in which they were typed; CLI11 has another order.
std::string unexpected(const CLI::App& app, const std::string& otherwise) {
  auto words = app.remaining(true);
  std::erase(words, "--");
  if (words.empty()) return otherwise;
  return fmt::format("unexpected argument: {}", fmt::join(words, " "));
}

// CLI11 throws an exception for --help and --version, too.
int report(const CLI::App& app, const CLI::ParseError& stop, Context& context) {
  if (dynamic_cast<const CLI::CallForHelp*>(&stop) != nullptr ||
      dynamic_cast<const CLI::CallForAllHelp*>(&stop) != nullptr) {
    // Print the help of the innermost command that was named, not of the program.
    const auto& named = deepest_of(app);
    fmt::print(context.out, "{}", named.help(words_before(named)));
    return kOk;
  }
  if (dynamic_cast<const CLI::CallForVersion*>(&stop) != nullptr) {
    fmt::print(context.out, "{}\n", stop.what());
    return kOk;
  }
  // CLI11 reports a missing command before it reports an unknown one.
  const auto& named = deepest_of(app);
  const auto words = named.remaining();
  const bool unknown = dynamic_cast<const CLI::RequiredError*>(&stop) != nullptr &&
                       !words.empty() && !named.get_subcommands({}).empty();
  std::string why = stop.what();
  if (unknown) why = fmt::format("there is no command `{}`", words.front());
  if (dynamic_cast<const CLI::ExtrasError*>(&stop) != nullptr) why = unexpected(app, why);
  fmt::print(context.err, "{}: {}\n", app.get_name(), why);
  fmt::print(context.err, "{}\n", advice(app, stop));
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
