// SPDX-License-Identifier: Apache-2.0
#include "base/core/nearest.hpp"
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "command_line/parse_arguments.hpp"
#include "gantry/command.hpp"
#include "gantry/safe_output.hpp"
#include "gantry/terminal.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

namespace gantry::cli {
namespace {

constexpr std::size_t kHelpColumn = 34;  // of the descriptions

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

// "; did you mean `x`?", or "" if no name is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(word, names);
  return nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest);
}

std::string suggest_command(const CLI::App& parent, std::string_view word) {
  std::vector<std::string> names;
  for (const auto* command : parent.get_subcommands({})) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return suggestion(word, names);
}

// For the first word that is an option; a word of another kind has no near name.
std::string suggest_option(const CLI::App& command, const std::vector<std::string>& words) {
  const auto option = std::find_if(words.begin(), words.end(),
                                   [](const auto& word) { return word.starts_with("--"); });
  if (option == words.end()) return "";
  std::vector<std::string> names;
  for (const auto* known : command.get_options()) {
    if (known->get_group().empty()) continue;
    for (const auto& name : known->get_lnames()) names.push_back("--" + name);
  }
  return suggestion(option->substr(0, option->find('=')), names);
}

// In the order in which they were typed; CLI11 has another order.
std::string unexpected(const CLI::App& app, const std::string& otherwise) {
  auto words = app.remaining(true);
  std::erase(words, "--");
  if (words.empty()) return otherwise;
  return fmt::format("unexpected argument: {}{}", fmt::join(words, " "),
                     suggest_option(deepest_of(app), words));
}

void print_help(const CLI::App& command, const Context& context) {
  fmt::print(context.out, "{}",
             wrap_help(command.help(words_before(command)), kHelpColumn, context.columns));
}

// CLI11 throws an exception for --help and --version, too.
int report(const CLI::App& app, const CLI::ParseError& stop, Context& context) {
  if (dynamic_cast<const CLI::CallForHelp*>(&stop) != nullptr ||
      dynamic_cast<const CLI::CallForAllHelp*>(&stop) != nullptr) {
    // Print the help of the innermost command that was named, not of the program.
    const auto& named = deepest_of(app);
    print_help(named, context);
    return kOk;
  }
  if (dynamic_cast<const CLI::CallForVersion*>(&stop) != nullptr) {
    fmt::print(context.out, "{}\n", stop.what());
    return kOk;
  }
  // CLI11 reports a missing command before it reports an unknown one.
  const auto& named = deepest_of(app);
  const auto words = app.remaining(true);
  const bool unknown = dynamic_cast<const CLI::RequiredError*>(&stop) != nullptr &&
                       !words.empty() && !named.get_subcommands({}).empty();
  std::string why = stop.what();
  if (unknown)
    why = fmt::format("there is no command `{}`{}", words.front(),
                      suggest_command(named, words.front()));
  if (dynamic_cast<const CLI::ExtrasError*>(&stop) != nullptr) why = unexpected(app, why);
  fmt::print(context.err, "{}: {}\n", app.get_name(), why);
  fmt::print(context.err, "{}\n", advice(app, stop));
  return kUsage;
}

// A user without the right gets the command to type. sudo drops GANTRY_ROOT.
std::string way_to_root(const Error& error, int argc, char** argv, const Context& context) {
  const bool denied = error.sys_errno() == EACCES || error.sys_errno() == EPERM;
  if (!denied || ::geteuid() == 0 || contains(error.remedy(), "sudo ")) return "";
  std::string command = "sudo";
  for (const std::string_view word : std::span(argv, static_cast<std::size_t>(argc))) {
    command += " " + sys::shell_word(word);
  }
  return "; run it as root: " + sys::with_root(command, context.root);
}

int failure_status(const Context& context) {
  constexpr int kSignalStatus = 128;
  const int signal = context.caught ? context.caught->termination().signal() : 0;
  return signal == 0 ? kProblem : kSignalStatus + signal;
}

}  // namespace

Context context_of_process(std::FILE* out, std::FILE* err) {
  Context context;
  context.safe_out = std::make_shared<SafeOutput>(out);
  context.safe_err = std::make_shared<SafeOutput>(err);
  context.out = context.safe_out->file();
  context.err = context.safe_err->file();
  context.raw_out = out;
  context.raw_err = err;
  if (const char* root = std::getenv("GANTRY_ROOT"); root != nullptr && *root != '\0') {
    std::error_code unknown;
    const auto whole = std::filesystem::absolute(root, unknown).lexically_normal();
    context.root = unknown ? root : whole.string();
  }
  context.terminal = is_smart_terminal(out);
  context.color = shows_color(out);
  context.measure_terminal();
  return context;
}

void Context::measure_terminal() {
  columns = terminal_width(raw_out);
  if (columns != 0) width = std::min<std::size_t>(columns, 160);
}

int run_program(CLI::App& app, int argc, char** argv, Context& context, const Action& chosen) {
  app.require_subcommand(1);
  app.get_formatter()->column_width(kHelpColumn);
  if (argc == 1) {
    print_help(app, context);
    return kOk;
  }
  try {
    command_line::parse_arguments(app, argc, argv);
  } catch (const CLI::ParseError& stop) {
    return report(app, stop, context);
  }
  const auto status = chosen(context);
  if (!status.ok()) {
    const auto text = sys::with_root(status.error().text(), context.root) +
                      way_to_root(status.error(), argc, argv, context);
    fmt::print(context.err, "{} {}: {}\n", app.get_name(),
               app.get_subcommands().front()->get_name(), text);
    return failure_status(context);
  }
  return *status;
}

}  // namespace gantry::cli
