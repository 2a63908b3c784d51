// SPDX-License-Identifier: Apache-2.0
// gantry share explain: says which limits each backend enforces, and why a backend is used.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/share_table.hpp"
#include "gantry/terminal.hpp"
#include "sharing/backend/backends.hpp"
#include "sharing/backend/shares.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::cli {
namespace {

constexpr const char* kRow = "  {:<8} {:<20} {:<8} {}\n";

struct ShareExplainOptions {
  std::string name;
  std::string backend;
};

void write_json(json::Writer& out, const backend::BackendInfo& facts, const std::string& chosen) {
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("backend", facts.name);
    out.member("here", facts.here);
    out.member("why", facts.why);
    out.member("chosen", facts.name == chosen);
    out.rows("promises", facts.guarantees, [&](const auto& guarantee) {
      out.object([&] {
        out.member("what", guarantee.what);
        out.member("against", guarantee.against);
        out.member("holds", guarantee.holds);
        out.member("how", guarantee.how);
      });
    });
  });
}

std::string describe(const backend::BackendInfo& facts) {
  auto text = fmt::format("{}: {}\n  {}: {}\n", facts.name, facts.sentence,
                          facts.here ? "Here" : "Not available here", facts.why);
  text += fmt::format(kRow, "WHAT", "AGAINST", "HOLDS", "HOW");
  for (const auto& guarantee : facts.guarantees) {
    text += fmt::format(kRow, guarantee.what, guarantee.against, guarantee.holds, guarantee.how);
  }
  return text;
}

// The share daemon knows the backend, but not whether the user asked for it.
backend::BackendChoice choice_of(const policy::Share& share, const model::Inventory& machine) {
  auto unasked = share;
  unasked.backend = policy::Backend::Auto;
  const auto usual = backend::choose_backend(unasked, machine);
  return usual.backend == share.backend ? usual : backend::choose_backend(share, machine);
}

std::string facts_json(const std::vector<backend::BackendInfo>& all, const std::string& chosen) {
  json::Writer out(json::Layout::Rows);
  out.array(all, [&](const auto& facts) { write_json(out, facts, chosen); });
  return out.text() + "\n";
}

std::string facts_text(const std::vector<backend::BackendInfo>& all) {
  std::string text;
  for (const auto& facts : all) text += (text.empty() ? "" : "\n") + describe(facts);
  return text;
}

std::string refuse_unknown(const std::string& backend) {
  constexpr std::array kNames{"fence", "mps", "mig", "time-slicing", "dmem"};
  if (std::find(kNames.begin(), kNames.end(), backend) != kNames.end()) return "";
  return fmt::format("there is no backend `{}`; use one of {}", printable_lines(backend),
                     fmt::join(kNames, ", "));
}

Result<int> explain_share(const ShareExplainOptions& options, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, read_machine(host, probe::NvmlUse::Use));
  const bool named = !options.name.empty();
  daemon::ShareState state;
  if (named) {
    GANTRY_TRY(state, backend::find_share(host, options.name));
  }
  const auto choice =
      named ? choice_of(state.share, machine) : backend::choose_backend({}, machine);
  const std::string chosen(to_string(choice.backend));
  // For an existing share, show only its own backend, except in JSON.
  const auto only = options.backend.empty() && named && !context.json ? chosen : options.backend;
  auto all = backend::list_backends(machine, host);
  std::erase_if(all, [&](const auto& facts) { return !only.empty() && facts.name != only; });
  for (auto& facts : all) facts.why = sys::with_root(facts.why, context.root);
  if (context.json) {
    fmt::print(context.out, "{}", facts_json(all, chosen));
    return kOk;
  }
  const Screen screen{.width = context.columns, .root = context.root};
  if (named) fmt::print(context.out, "{}\n", printable_lines(shares_table({state}, screen)));
  const auto text = fmt::format("{}\n{}: {} is used, because {}.\n", facts_text(all),
                                named ? options.name : "A share here", chosen,
                                sys::with_root(choice.why, context.root));
  fmt::print(context.out, "{}", wrap_lines(text, context.columns));
  if (named) return kOk;
  if (const auto shares = backend::list_all_shares(host); shares.ok())
    fmt::print(context.out, "{}", printable_lines(foreign_processes_text(*shares, screen)));
  return kOk;
}

}  // namespace

void add_share_explain(CLI::App& share, Context& context, Action& chosen) {
  auto options = std::make_shared<ShareExplainOptions>();
  auto* command = share.add_subcommand(
      "explain",
      "Show what each backend guarantees, and against which programs, and which one is used");
  add_machine_options(*command, context);
  command->add_option("name", options->name, "A share of `gantry share ls`")->type_name("NAME");
  command->add_option("--backend", options->backend, "Show only this backend")
      ->type_name("WORD")
      ->check(CLI::Validator(refuse_unknown, ""));
  add_examples(*command,
               "  gantry share explain\n"
               "  gantry share explain blue\n"
               "  gantry share explain --backend mps --json\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return explain_share(*options, c); }; });
}

}  // namespace gantry::cli
