// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

#include "gantry/commands.hpp"
#include "gantry/container_cli.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <system_error>

namespace gantry::cli {
namespace {

void add_commands(CLI::App& app, Context& context, Action& chosen) {
  add_info(app, context, chosen);
  add_list(app, context, chosen);
  add_topo(app, context, chosen);
  add_doctor(app, context, chosen);
  add_completion(app, context, chosen);
  add_man_page(app, context, chosen);
  add_sim(app, context, chosen);
}

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
      before = parent->get_name() + (before.empty() ? "" : " ") + before;
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
      context.err, "gantry: {}\n",
      unknown ? fmt::format("there is no command `{}`", app.remaining().front()) : stop.what());
  fmt::print(context.err,
             "Run `gantry --help` for the commands, `gantry COMMAND --help` for one.\n");
  return kUsage;
}

// fmt::print throws when the write fails; stdio keeps other failures until the flush.
int checked(const std::function<int()>& program, std::FILE* out, std::FILE* err) {
  int status = kProblem;
  std::string why;
  try {
    status = program();
    if (std::fflush(out) != 0 || std::ferror(out) != 0) why = std::strerror(errno);
  } catch (const std::system_error& failed) {
    why = failed.what();
  }
  if (why.empty()) return status;
  std::fprintf(err, "gantry: cannot write the output: %s\n", why.c_str());
  return kProblem;
}

int run_named(int argc, char** argv, std::FILE* out, std::FILE* err) {
  const std::string_view called = argv[0];
  if (called.substr(called.rfind('/') + 1) == "nvidia-container-cli") {
    return container_cli(argc, argv, out, err);
  }
  Context context{.out = out, .err = err};
  if (const char* root = std::getenv("GANTRY_ROOT"); root != nullptr) context.root = root;
  context.color = ::isatty(::fileno(out)) == 1 && std::getenv("NO_COLOR") == nullptr;

  CLI::App app("Makes NVIDIA GPUs usable from containers, pods and virtual machines.", "gantry");
  app.set_version_flag("--version", "gantry " GANTRY_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Action chosen;
  add_commands(app, context, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {
    return report(app, stop, context);
  }
  const auto status = chosen(context);
  if (!status.ok()) {
    fmt::print(err, "gantry {}: {}\n", app.get_subcommands().front()->get_name(),
               status.error().text());
    return kProblem;
  }
  return *status;
}

}  // namespace

int main_program(int argc, char** argv, std::FILE* out, std::FILE* err) {
  if (argc < 1) return kUsage;  // execve() allows it
  return checked([&] { return run_named(argc, argv, out, err); }, out, err);
}

}  // namespace gantry::cli
