// SPDX-License-Identifier: Apache-2.0
// gantry share explain: says which limits each backend enforces, and why a backend is used.
#include "base/core/printable.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/share_table.hpp"
#include "gantry/sim_commands.hpp"
#include "sharing/backend/backends.hpp"
#include "sharing/backend/shares.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::cli {
namespace {

constexpr const char* kRow = "  {:<8} {:<20} {:<8} {}\n";

struct ExplainOptions {
  std::string name;
  std::string backend;
};

std::string json_of(const backend::BackendInfo& facts, const std::string& chosen) {
  std::string rows;
  for (const auto& promise : facts.guarantees) {
    rows +=
        fmt::format("{}\n      {{\"what\": {}, \"against\": {}, \"holds\": {}, \"how\": {}}}",
                    rows.empty() ? "" : ",", json_text(promise.what), json_text(promise.against),
                    json_text(promise.holds), json_text(promise.how));
  }
  return fmt::format(
      "  {{\"backend\": {}, \"here\": {}, \"why\": {}, \"chosen\": {}, \"promises\": [{}\n    ]}}",
      json_text(facts.name), facts.here ? "true" : "false", json_text(facts.why),
      facts.name == chosen ? "true" : "false", rows);
}

std::string describe(const backend::BackendInfo& facts) {
  auto text = fmt::format("{}: {}\n  {}: {}\n", facts.name, facts.sentence,
                          facts.here ? "Here" : "Not available here", facts.why);
  text += fmt::format(kRow, "WHAT", "AGAINST", "HOLDS", "HOW");
  for (const auto& promise : facts.guarantees) {
    text += fmt::format(kRow, promise.what, promise.against, promise.holds, promise.how);
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

std::string facts_text(const std::string& only, const std::vector<backend::BackendInfo>& all,
                       const std::string& chosen, bool json) {
  std::string text;
  for (const auto& facts : all) {
    if (!only.empty() && facts.name != only) continue;
    if (!text.empty()) text += json ? ",\n" : "\n";
    text += json ? json_of(facts, chosen) : describe(facts);
  }
  return text;
}

std::string refuse_unknown(const std::string& backend) {
  constexpr std::array kNames{"fence", "mps", "mig", "time-slicing", "dmem"};
  if (std::find(kNames.begin(), kNames.end(), backend) != kNames.end()) return "";
  return fmt::format("there is no backend `{}`; use one of {}", printable_lines(backend),
                     fmt::join(kNames, ", "));
}

Result<int> explain(const ExplainOptions& options, Context& context) {
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
  const auto text = facts_text(only, backend::list_backends(machine, host), chosen, context.json);
  if (context.json) {
    fmt::print(context.out, "[\n{}\n]\n", text);
    return kOk;
  }
  if (named) fmt::print(context.out, "{}\n", printable_lines(shares_table({state})));
  fmt::print(context.out, "{}\n{}: {} is used, because {}.\n", text,
             named ? options.name : "A share here", chosen, choice.why);
  if (named) return kOk;
  if (const auto shares = backend::list_all_shares(host); shares.ok())
    fmt::print(context.out, "{}", printable_lines(foreign_processes_text(*shares)));
  return kOk;
}

}  // namespace

void add_share_explain(CLI::App& share, Context& context, Action& chosen) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = share.add_subcommand(
      "explain", "Show what each backend guarantees against whom, and which one is used here");
  add_machine_options(*command, context);
  command->add_option("name", options->name, "A share of `gantry share ls`")->type_name("NAME");
  command->add_option("--backend", options->backend, "Show only this backend")
      ->type_name("WORD")
      ->check(CLI::Validator(refuse_unknown, ""));
  add_examples(*command,
               "  gantry share explain\n"
               "  gantry share explain blue\n"
               "  gantry share explain --backend mps --json\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return explain(*options, c); }; });
}

}  // namespace gantry::cli
