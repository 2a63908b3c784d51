// SPDX-License-Identifier: Apache-2.0
// gantry node up, gantry node down: sets up one node by hand, and undoes that.
#include "base/sys/child.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/commands.hpp"
#include "gantry/table.hpp"
#include "gantry/terminal.hpp"
#include "node/setup/node_setup.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>

namespace gantry::cli {
namespace {

struct NodeFlags {
  setup::NodeOptions node;
  bool without_agent = false;
  Deadline deadline;
};

constexpr std::chrono::seconds kProgramDeadline{120};  // an engine's restart may take long

Result<std::string> run_on_machine(const std::vector<std::string>& words) {
  GANTRY_TRY(auto result, sys::run_command(words, kProgramDeadline));
  if (result.status == 0) return std::move(result.output);
  return Error(Errc::Internal, fmt::format("{} ended with {}: {}", fmt::join(words, " "),
                                           result.status, result.output));
}

// The path of this program, which the systemd unit needs.
std::string own_program() {
  std::array<char, 4096> path{};
  const auto size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "/usr/bin/gantry";
}

setup::NodeOptions options_of(const NodeFlags& flags, const sys::Host& host) {
  auto options = flags.node;
  options.agent = !flags.without_agent;
  options.deadline = flags.deadline.duration();
  if (host.is_live()) {
    options.program = own_program();
    options.run = run_on_machine;
  }
  return options;
}

int print_node_report(const setup::NodeReport& report, const Context& context) {
  Table table({"STEP", "WHERE", "OUTCOME"});
  for (const auto& step : report.steps) {
    table.add({step.step, step.where.empty() ? "-" : step.where,
               (step.failed ? "FAILED: " : "") + sys::with_root(step.outcome, context.root)});
  }
  fmt::print(context.out, "{}", table.text(context.columns));
  for (const auto& note : report.notes) print_note(note, context);
  return report.failed() ? kProblem : kOk;
}

Result<int> up(const NodeFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto report,
             while_waiting(context, [&] { return setup::node_up(host, options_of(flags, host)); }));
  const int status = print_node_report(report, context);
  if (!flags.node.dry_run)
    fmt::print(context.out, "To undo this: sudo gantry node down{}\n", sys::root_flag(host));
  return status;
}

Result<int> down(const NodeFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto report, setup::node_down(host, options_of(flags, host)));
  return print_node_report(report, context);
}

void add_common(CLI::App& command, Context& context, NodeFlags& flags) {
  add_root_option(command, context);
  command.add_flag("--dry-run", flags.node.dry_run, "Show what would be done without doing it");
  command.add_flag("--restart", flags.node.restart,
                   "Restart engines whose configuration changes; this may stop their containers");
}

}  // namespace

void add_node(CLI::App& app, Context& context, Action& chosen) {
  auto flags = std::make_shared<NodeFlags>();
  auto* node = app.add_subcommand("node", "Make this machine a GPU node, or undo that");
  node->require_subcommand(1);
  auto* rise = node->add_subcommand("up",
                                    "Prepare the driver's files and the CDI specification, "
                                    "configure the engines that need it, start the agent");
  add_common(*rise, context, *flags);
  rise->add_flag("--take-over", flags->node.take_over, "Rename another tool's CDI specification");
  rise->add_flag("--no-agent", flags->without_agent, "Set up containers only, without the agent");
  add_deadline(*rise, flags->deadline);
  add_examples(*rise,
               "  gantry node up --dry-run       # show what it would do\n"
               "  sudo gantry node up --restart  # do everything\n");
  rise->callback([=, &chosen] { chosen = [=](Context& c) { return up(*flags, c); }; });
  auto* fall = node->add_subcommand("down", "Undo what `gantry node up` did, and nothing else");
  add_common(*fall, context, *flags);
  add_examples(*fall, "  sudo gantry node down\n");
  fall->callback([=, &chosen] { chosen = [=](Context& c) { return down(*flags, c); }; });
}

}  // namespace gantry::cli
