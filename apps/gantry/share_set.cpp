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
Status check_nobody_is_stopped(const daemon::ShareState& before,
                               const policy::ShareChanges& changes) {
  if (changes.violation.value_or(before.share.violation) != policy::ViolationPolicy::Stop)
    return {};
  if (!changes.memory || changes.memory == policy::MemoryLimit{}) return {};
  for (const auto& gpu : before.gpus) {
    const auto held = std::max(gpu.memory_held, gpu.memory_used);
    if (held <= changes.memory->on(gpu.memory_total)) continue;
    return Error(Errc::Busy,
                 fmt::format("{} uses {} now, and with --policy stop a limit of {} would kill its "
                             "processes; set a higher limit or use --policy report",
                             before.share.name, human_bytes(held), to_string(*changes.memory)));
  }
  return {};
}

// A limit below the memory in use takes nothing away: say so, because nothing else shows it.
void print_excess(const daemon::ShareState& state, std::FILE* err) {
  for (const auto& gpu : state.gpus) {
    const auto held = std::max(gpu.memory_held, gpu.memory_used);
    if (held <= gpu.memory_limit) continue;
    fmt::print(err,
               "gantry share set: note: {} uses {} of {}, more than its limit of {}; its processes "
               "keep that memory, and their next allocations fail until they have freed {}\n",
               state.share.name, human_bytes(held), gpu.uuid.text, human_bytes(gpu.memory_limit),
               human_bytes(held - gpu.memory_limit));
  }
}

Result<int> set(const ShareFlags& flags, const std::string& name, Context& context) {
  GANTRY_TRY(const auto changes, policy::parse_changes(flags.words()));
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
             context.json
                 ? daemon::to_document(state) + "\n"
                 : shares_table({state}, {.width = context.columns, .root = context.root}));
  print_excess(state, context.err);
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
