// SPDX-License-Identifier: Apache-2.0
// gantry driver preflight: whether a driver can be installed, and what is in the way.
#include "gantry/driver_commands.hpp"
#include "install/preflight/judge.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

Result<int> show_preflight(const DriverFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto request, request_of(flags));
  GANTRY_TRY(const auto facts, preflight::read_facts(host, preflight::live_sources(host, request)));
  auto findings = preflight::judge(facts, request);
  preflight::address_remedies(host, findings);
  if (context.json) {
    fmt::print(context.out, "{}", preflight::to_json(facts, request, findings));
  } else {
    print_fitting(preflight::to_text(facts, request, findings), context);
  }
  return preflight::blocks(findings) ? kProblem : kOk;
}

}  // namespace

void add_driver_preflight(CLI::App& driver, Context& context, Action& chosen) {
  const auto flags = std::make_shared<DriverFlags>();
  auto* command = driver.add_subcommand(
      "preflight", "Whether a driver can be installed here, and what is in the way");
  add_driver_machine(*command, context);
  add_driver_flags(*command, *flags);
  add_examples(*command,
               "  gantry driver preflight --version 580.159.04\n"
               "  gantry driver preflight --source packages --version 580 --json\n"
               "  gantry driver preflight --version 460.56 --host-root /host\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return show_preflight(*flags, c); }; });
}

}  // namespace gantry::cli
