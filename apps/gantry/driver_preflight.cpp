// SPDX-License-Identifier: Apache-2.0
// gantry driver preflight: whether a driver can be installed, and what is in the way.
#include "base/json/writer.hpp"
#include "gantry/driver_commands.hpp"
#include "gantry/table.hpp"
#include "install/preflight/judge.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

struct PreflightFlags {
  DriverFlags driver;
  bool list = false;
  bool markdown = false;
};

std::string_view may_ignore(const preflight::KnownFinding& known) {
  return known.ignorable == preflight::Ignorable::Yes ? "yes" : "no";
}

std::string findings_json() {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.array("findings", preflight::known_findings(), [&](const preflight::KnownFinding& known) {
      out.object([&] {
        out.member("code", known.code);
        out.member("meaning", known.meaning);
        out.member("helps", known.helps);
        out.member("ignorable", known.ignorable == preflight::Ignorable::Yes);
      });
    });
  });
  return std::move(out).text() + "\n";
}

int list_findings(const PreflightFlags& flags, const Context& context) {
  if (flags.markdown || context.json) {
    fmt::print(context.out, "{}",
               flags.markdown ? preflight::known_findings_markdown() : findings_json());
    return kOk;
  }
  Table table({"FINDING", "--ignore", "WHAT IT SAYS", "WHAT HELPS"});
  for (const auto& known : preflight::known_findings())
    table.add({std::string(known.code), std::string(may_ignore(known)), std::string(known.meaning),
               std::string(known.helps)});
  fmt::print(context.out, "{}", table.text(context.columns));
  return kOk;
}

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
  const auto flags = std::make_shared<PreflightFlags>();
  auto* command = driver.add_subcommand(
      "preflight", "Whether a driver can be installed here, and what is in the way");
  add_driver_machine(*command, context);
  add_driver_flags(*command, flags->driver);
  auto* list = command->add_flag("--list", flags->list, "List all findings and what helps");
  command->add_flag("--markdown", flags->markdown, "With --list: print the table of docs/driver.md")
      ->needs(list);
  add_examples(*command,
               "  gantry driver preflight --version 580.159.04\n"
               "  gantry driver preflight --source packages --version 580 --json\n"
               "  gantry driver preflight --version 460.56 --host-root /host\n"
               "  gantry driver preflight --list\n");
  command->callback([=, &chosen] {
    chosen = [=](Context& c) {
      return flags->list ? Result<int>(list_findings(*flags, c)) : show_preflight(flags->driver, c);
    };
  });
}

}  // namespace gantry::cli
