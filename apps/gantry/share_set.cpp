// SPDX-License-Identifier: Apache-2.0
// gantry share set: other limits for a share, while its processes run.
#include "gantry/share_commands.hpp"
#include "gantry/share_table.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

Result<int> set(const ShareFlags& flags, const std::string& name, Context& context) {
  auto changes = flags.text;
  if (flags.hard) changes.excess = "cap";
  if (flags.work_conserving) changes.excess = "work-conserving";
  if (changes == share::ShareText{}) {
    return Error(Errc::Invalid,
                 "nothing to change: give --memory, --compute or another limit; see "
                 "`gantry share set --help`");
  }
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(auto keeper, running_keeper(host));
  GANTRY_TRY(const auto state, keeper.set(name, changes, flags.overcommitted()));
  fmt::print(context.out, "{}",
             context.json ? keeper::to_json(state) + "\n" : shares_table({state}));
  return kOk;
}

}  // namespace

void add_share_set(CLI::App& share, Context& context, Action& chosen) {
  auto flags = std::make_shared<ShareFlags>();
  auto name = std::make_shared<std::string>();
  auto* command = share.add_subcommand("set", "Change a share while it is used");
  add_machine_options(*command, context);
  command->add_option("name", *name, "Of `gantry share ls`")->type_name("NAME")->required();
  add_limit_flags(*command, *flags);
  add_examples(*command,
               "  gantry share set blue --memory 30GiB\n"
               "  gantry share set blue --compute 50% --work-conserving\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return set(*flags, *name, c); }; });
}

}  // namespace gantry::cli
