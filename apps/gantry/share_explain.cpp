// SPDX-License-Identifier: Apache-2.0
// gantry share explain: who holds which limit against whom, and why this backend.
#include "gantry/share_backend.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/sim_commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

struct ExplainOptions {
  std::string name;
  std::string backend;
};

std::string json_of(const BackendFacts& facts, const std::string& chosen) {
  std::string rows;
  for (const auto& promise : facts.promises) {
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

std::string text_of(const BackendFacts& facts) {
  auto text = fmt::format("{}: {}\n  {}: {}\n", facts.name, facts.sentence,
                          facts.here ? "Here" : "Not here", facts.why);
  for (const auto& promise : facts.promises) {
    text += fmt::format("  {:<8} {:<20} {:<8} {}\n", promise.what, promise.against, promise.holds,
                        promise.how);
  }
  return text;
}

Result<int> explain(const ExplainOptions& options, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, machine_of(host, probe::UseNvml::Use));
  share::Share share;
  if (!options.name.empty()) {
    GANTRY_TRY(auto keeper, running_keeper(host));
    GANTRY_TRY(auto state, keeper.show(options.name));
    share = std::move(state.share);
  }
  const auto choice = choose_backend(share, machine);
  const std::string chosen(to_string(choice.backend));
  const auto all = backends_here(machine, host);
  std::string text;
  bool known = options.backend.empty();
  for (const auto& facts : all) {
    if (!options.backend.empty() && facts.name != options.backend) continue;
    known = true;
    text += fmt::format("{}{}",
                        text.empty()   ? ""
                        : context.json ? ",\n"
                                       : "\n",
                        context.json ? json_of(facts, chosen) : text_of(facts));
  }
  if (!known) {
    return Error(Errc::Invalid,
                 fmt::format("there is no backend \"{}\"; there are fence, mps, mig, "
                             "time-slicing, dmem",
                             options.backend));
  }
  if (context.json) {
    fmt::print(context.out, "[\n{}\n]\n", text);
    return kOk;
  }
  fmt::print(context.out, "{}\n{}: {} is used, because {}.\n", text,
             options.name.empty() ? "A share here" : options.name, chosen, choice.why);
  return kOk;
}

}  // namespace

void add_share_explain(CLI::App& share, Context& context, Action& chosen) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = share.add_subcommand(
      "explain", "What each backend guarantees, against whom, and which one is used here");
  add_machine_options(*command, context);
  command->add_option("name", options->name, "A share of `gantry share ls`")->type_name("NAME");
  command->add_option("--backend", options->backend, "Only this one")->type_name("WORD");
  add_examples(*command,
               "  gantry share explain\n"
               "  gantry share explain blue\n"
               "  gantry share explain --backend mps --json\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return explain(*options, c); }; });
}

}  // namespace gantry::cli
