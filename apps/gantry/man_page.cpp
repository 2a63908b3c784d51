// SPDX-License-Identifier: Apache-2.0
// gantry man-page: gantry(1), generated from the declarations that parse the command line.
#include "base/core/text.hpp"
#include "gantry/commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

// In roff a leading dot or quote is a request, a backslash an escape, a plain hyphen may become
// another character that cannot be pasted.
std::string roff(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string option_text(const CLI::Option& option) {
  const bool positional = option.nonpositional() == false;
  const auto name = positional ? option.get_name(true) : option.get_name(false, true);
  const auto type =
      option.get_type_size() > 0 && !positional ? " " + option.get_type_name() : std::string();
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(name), roff(type),
                     roff(option.get_description()));
}

std::string command_text(const CLI::App& command, const std::string& path) {
  auto text = fmt::format(".SS {}\n{}\n", roff(path), roff(command.get_description()));
  for (const auto* option : command.get_options()) {
    if (option->get_name() != "--help") text += option_text(*option);
  }
  const std::string footer = command.get_footer();
  if (!footer.empty()) {
    text += ".P\n.nf\n";
    for (auto line : lines(footer)) text += roff(line) + "\n";
    text += ".fi\n";
  }
  for (const auto* inner : command.get_subcommands({})) {
    text += command_text(*inner, path + " " + inner->get_name());
  }
  return text;
}

std::string page(const CLI::App& app) {
  auto text = fmt::format(
      ".TH GANTRY 1 \"\" \"gantry {}\" \"User Commands\"\n.SH NAME\ngantry \\- make NVIDIA GPUs "
      "usable from "
      "containers, pods and virtual machines\n.SH SYNOPSIS\n.B gantry\n\\fICOMMAND\\fR "
      "[\\fIOPTION\\fR]...\n"
      ".SH COMMANDS\n",
      GANTRY_VERSION);
  for (const auto* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // hidden
    text += command_text(*command, "gantry " + command->get_name());
  }
  text +=
      ".SH ENVIRONMENT\n"
      ".TP\n"
      ".B GANTRY_ROOT\n"
      "The same as \\-\\-root.\n"
      ".TP\n"
      ".B NO_COLOR\n"
      "If set and not empty, output has no colour; neither has it if\n"
      ".B TERM\n"
      "is dumb.\n"
      ".SH EXIT STATUS\n"
      "0 success, 1 failure or a problem of the machine, 2 wrong usage.\n";
  return text;
}

}  // namespace

void add_man_page(CLI::App& app, Context&, Action& chosen) {
  auto* command = app.add_subcommand("man-page", "Print the manual page");
  add_examples(*command, "  gantry man-page | man -l -\n");
  command->callback([&app, &chosen] {
    chosen = [&app](Context& context) -> Result<int> {
      fmt::print(context.out, "{}", page(app));
      return kOk;
    };
  });
}

}  // namespace gantry::cli
