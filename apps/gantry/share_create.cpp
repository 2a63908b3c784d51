// SPDX-License-Identifier: Apache-2.0
// gantry share create and rm: shares that have a name and a CDI device.
#include "gantry/share_backend.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/share_device.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

void print_made(const keeper::ShareState& made, const Context& context) {
  if (context.json) {
    fmt::print(context.out, "{}\n", keeper::to_json(made));
    return;
  }
  fmt::print(context.out, "{} is there. Try: podman run --device {} IMAGE nvidia-smi\n",
             made.share.name, device_name(made.share.name));
}

Result<int> create(const ShareFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, machine_of(host));
  GANTRY_TRY(const auto words, words_of(flags, machine));
  GANTRY_TRY(auto asked, share::share_from(words));
  GANTRY_TRY(const auto share, with_backend(std::move(asked), machine, host));
  GANTRY_TRY(auto keeper, keeper::Client::connect_or_start(host, keeper_program()));
  GANTRY_TRY(const auto made, keeper.create(share, flags.overcommitted()));
  if (auto written = write_devices(keeper, host, machine); !written.ok()) {
    (void)keeper.remove(made.share.name);  // no share that no container can have
    return std::move(written).error();
  }
  print_made(made, context);
  return kOk;
}

Result<int> remove(const std::vector<std::string>& names, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(auto keeper, running_keeper(host));
  for (const auto& name : names) {
    GANTRY_CHECK(keeper.remove(name));
    GANTRY_CHECK(withdraw_device(host, name));
  }
  return kOk;
}

}  // namespace

void add_share_create(CLI::App& share, Context& context, Action& chosen) {
  auto flags = std::make_shared<ShareFlags>();
  auto* command = share.add_subcommand(
      "create", "Make a named share, which containers get as the CDI device gantry.dev/share=NAME");
  add_machine_options(*command, context);
  command->add_option("name", flags->text.name, "Letters, digits, '-', '_' and '.'")
      ->type_name("NAME")
      ->required();
  add_limit_flags(*command, *flags);
  add_gpu_flag(*command, *flags);
  add_examples(*command,
               "  gantry share create blue --memory 20GiB --compute 30%\n"
               "  podman run --rm --device gantry.dev/share=blue IMAGE nvidia-smi\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return create(*flags, c); }; });
}

void add_share_rm(CLI::App& share, Context& context, Action& chosen) {
  auto names = std::make_shared<std::vector<std::string>>();
  auto* command = share.add_subcommand("rm", "Remove named shares and their CDI devices");
  add_root_option(*command, context);
  command->add_option("name", *names, "Of `gantry share ls`")->type_name("NAME...")->required();
  add_examples(*command, "  gantry share rm blue\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return remove(*names, c); }; });
}

}  // namespace gantry::cli
