// SPDX-License-Identifier: Apache-2.0
// gantry share create and rm: shares that have a name and a CDI device.
#include "gantry/share_backend.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/share_device.hpp"
#include "gantry/share_mps.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

void print_made(const share::Share& share, const Context& context) {
  if (context.json) {
    fmt::print(context.out, "{}\n", share::to_json(share));
    return;
  }
  fmt::print(context.out, "{} is there. Try: podman run --device {} IMAGE nvidia-smi\n", share.name,
             device_name(share.name));
}

Result<share::Share> create_fenced(const share::Share& share, const ShareFlags& flags,
                                   const sys::Host& host, const model::Inventory& machine) {
  GANTRY_TRY(auto keeper, keeper::Client::connect_or_start(host, keeper_program()));
  GANTRY_TRY(auto made, keeper.create(share, flags.overcommitted()));
  if (auto written = write_devices(host, machine); !written.ok()) {
    (void)keeper.remove(made.share.name);  // no share that no container can have
    return std::move(written).error();
  }
  return std::move(made.share);
}

bool is_there(const std::string& name, const std::vector<share::Share>& shares) {
  return std::any_of(shares.begin(), shares.end(),
                     [&](const share::Share& share) { return share.name == name; });
}

Result<share::Share> create_unfenced(share::Share share, const sys::Host& host,
                                     const model::Inventory& machine) {
  const auto others = declared_shares(host);
  if (is_there(share.name, others)) {
    return Error(Errc::Exists, fmt::format("there is a share {} already; `gantry share ls`, or "
                                           "another name",
                                           share.name));
  }
  if (share.gpus.empty()) {
    GANTRY_TRY(const auto gpu, any_gpu(machine));
    share.gpus.push_back(gpu);
  }
  if (share.backend == share::Backend::Mps) {
    GANTRY_TRY(const auto plan, mps_plan(share, machine, others));
    GANTRY_CHECK(start_mps(host, plan));
  }
  GANTRY_CHECK(write_devices(host, machine, &share));
  return share;
}

Result<int> create(const ShareFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, machine_for(flags, host));
  GANTRY_TRY(const auto words, words_of(flags, machine));
  GANTRY_TRY(auto asked, share::share_from(words));
  GANTRY_TRY(auto share, with_backend(std::move(asked), machine, host));
  if (share.backend == share::Backend::Fence) {
    GANTRY_TRY(share, create_fenced(share, flags, host, machine));
  } else {
    GANTRY_TRY(share, create_unfenced(std::move(share), host, machine));
  }
  print_made(share, context);
  return kOk;
}

Status remove_one(const std::string& name, const sys::Host& host) {
  for (const auto& share : declared_shares(host)) {
    if (share.name != name) continue;
    GANTRY_CHECK(withdraw_device(host, name));
    if (share.backend != share::Backend::Mps) return {};
    GANTRY_TRY(const auto machine, machine_of(host, probe::UseNvml::Use));
    GANTRY_TRY(const auto plan, mps_plan(share, machine, {}));
    return stop_mps(host, plan);
  }
  GANTRY_TRY(auto keeper, running_keeper(host));
  GANTRY_CHECK(keeper.remove(name));
  return withdraw_device(host, name);
}

Result<int> remove(const std::vector<std::string>& names, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  for (const auto& name : names) GANTRY_CHECK(remove_one(name, host));
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
