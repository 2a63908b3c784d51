// SPDX-License-Identifier: Apache-2.0
// gantry share set: changes the limits of a share while its processes run.
#include "base/core/text.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/share_table.hpp"
#include "sharing/backend/shares.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

// With `--policy stop`, lowering the limit kills every process that already uses more.
Status check_nobody_is_stopped(const daemon::ShareState& before, const policy::ShareText& changes) {
  const auto policy =
      changes.on_violation.empty() ? to_string(before.share.violation) : changes.on_violation;
  if (policy != to_string(policy::Violation::Stop)) return {};
  if (changes.memory.empty() || changes.memory == "none") return {};
  GANTRY_TRY(const auto memory, policy::parse_memory_limit(changes.memory));
  for (const auto& gpu : before.gpus) {
    const auto held = std::max(gpu.memory_held, gpu.memory_used);
    if (held <= memory.on(gpu.memory_total)) continue;
    return Error(Errc::Busy,
                 fmt::format("{} uses {} now, and with --policy stop a limit of {} would kill its "
                             "processes; set a higher limit or use --policy report",
                             before.share.name, human_bytes(held), changes.memory));
  }
  return {};
}

Result<int> set(const ShareFlags& flags, const std::string& name, Context& context) {
  const auto changes = flags.words();
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto before, backend::find_share(host, name));
  if (before.share.backend != policy::Backend::Fence)
    return Error(Errc::Unsupported,
                 fmt::format("{0} uses the backend {1}, whose shares cannot be changed; run "
                             "`gantry share rm {0}` and create it again",
                             name, to_string(before.share.backend)));
  GANTRY_CHECK(check_nobody_is_stopped(before, changes));
  GANTRY_TRY(auto client, backend::connect_to_daemon(host));
  GANTRY_TRY(const auto state, client.set(name, changes, flags.overcommitted()));
  fmt::print(context.out, "{}",
             context.json ? daemon::to_json(state) + "\n" : shares_table({state}));
  return kOk;
}

}  // namespace

void add_share_set(CLI::App& share, Context& context, Action& chosen) {
  auto flags = std::make_shared<ShareFlags>();
  auto name = std::make_shared<std::string>();
  auto* command = share.add_subcommand("set", "Change the limits of a share while it is in use");
  add_machine_options(*command, context);
  command->add_option("name", *name, "A share of `gantry share ls`")->type_name("NAME")->required();
  add_limit_flags(*command, *flags);
  add_examples(*command,
               "  gantry share set blue --memory 30GiB\n"
               "  gantry share set blue --compute 50% --work-conserving\n");
  command->callback([=, &chosen] {
    fail_usage(check_changes(*flags));
    chosen = [=](Context& c) { return set(*flags, *name, c); };
  });
}

}  // namespace gantry::cli
