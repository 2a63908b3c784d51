// SPDX-License-Identifier: Apache-2.0
// gantry share create and rm: shares that have a name and a CDI device.
#include "base/printable.hpp"
#include "gantry/share_backend.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/share_device.hpp"
#include "gantry/share_mps.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace gantry::cli {
namespace {

void print_made(const share::Share& share, const sys::Host& host, const Context& context) {
  if (context.json) {
    fmt::print(context.out, "{}\n", share::to_json(share));
    return;
  }
  fmt::print(context.out, "{} is there. Try: podman run --device {} IMAGE nvidia-smi\n", share.name,
             device_name(share.name));
  if (!host.is_live()) {
    fmt::print(context.out, "Engines look for it in /var/run/cdi: cp {} /var/run/cdi/\n",
               host.outside(std::string(refresh::kShareSpecPath)));
  }
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

Result<share::Share> create_unfenced(share::Share share, const sys::Host& host,
                                     const model::Inventory& machine) {
  if (share.gpus.empty()) {
    GANTRY_TRY(const auto gpu, any_gpu(machine));
    share.gpus.push_back(gpu);
  }
  if (share.backend != share::Backend::Mps) {
    GANTRY_CHECK(write_devices(host, machine, &share));
    return share;
  }
  GANTRY_TRY(const auto plan, mps_plan(share, machine, declared_shares(host)));
  GANTRY_CHECK(start_mps(host, plan));
  if (auto written = write_devices(host, machine, &share); !written.ok()) {
    (void)stop_mps(host, plan).ok();  // no daemon that no container can have
    return std::move(written).error();
  }
  return share;
}

Result<int> create(const ShareFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, machine_for(flags, host));
  GANTRY_TRY(const auto words, words_of(flags, machine));
  GANTRY_TRY(auto asked, share::share_from(words));
  GANTRY_TRY(auto share, with_backend(std::move(asked), machine, host));
  GANTRY_CHECK(check_name_is_free(host, share.name));
  if (share.backend == share::Backend::Fence) {
    GANTRY_TRY(share, create_fenced(share, flags, host, machine));
  } else {
    GANTRY_TRY(share, create_unfenced(std::move(share), host, machine));
  }
  print_made(share, host, context);
  return kOk;
}

struct RemoveOptions {
  std::vector<std::string> names;
  bool force = false;
};

// What is left of its processes: nobody gives them turns or looks at them any more.
Status check_unused(keeper::Client& keeper, const std::string& name) {
  using namespace std::chrono_literals;
  for (int look = 0;; ++look) {
    GANTRY_TRY(const auto state, keeper.show(name));
    if (state.held)
      return Error(
          Errc::Busy,
          fmt::format("the share {0} belongs to a command that runs, and goes with it; end "
                      "the command, or `gantry share rm --force {0}`",
                      name));
    if (state.processes.empty()) return {};
    // The keeper may be about to see the end of one.
    if (look == 10)
      return Error(
          Errc::Busy,
          fmt::format(
              "the share {0} is used by pid {1} ({2}){3}; end what uses it (`gantry share "
              "top`), or `gantry share rm --force {0}`: it then goes on without turns, "
              "and cannot start CUDA again",
              name, state.processes.front().pid, state.processes.front().command,
              processes_of(state) > 1 ? fmt::format(" and {} more", processes_of(state) - 1) : ""));
    std::this_thread::sleep_for(20ms);
  }
}

Status remove_one(const std::string& name, const RemoveOptions& options, const sys::Host& host) {
  for (const auto& share : declared_shares(host)) {
    if (share.name != name) continue;
    GANTRY_CHECK(withdraw_device(host, name));
    if (share.backend != share::Backend::Mps) return {};
    GANTRY_TRY(const auto machine, machine_of(host, probe::UseNvml::Use));
    GANTRY_TRY(const auto plan, mps_plan(share, machine, {}));
    return stop_mps(host, plan);
  }
  GANTRY_TRY(auto keeper, running_keeper(host));
  if (!options.force) GANTRY_CHECK(check_unused(keeper, name));
  GANTRY_CHECK(keeper.remove(name));
  return withdraw_device(host, name);
}

// One that cannot be removed is no reason to leave the others.
Result<int> remove(const RemoveOptions& options, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  int result = kOk;
  for (const auto& name : options.names) {
    const auto removed = remove_one(name, options, host);
    if (removed.ok()) continue;
    fmt::print(context.err, "gantry share rm: {}\n", printable_lines(removed.error().text()));
    result = kProblem;
  }
  return result;
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
  add_place_flags(*command, *flags);
  add_examples(*command,
               "  gantry share create blue --memory 20GiB --compute 30%\n"
               "  podman run --rm --device gantry.dev/share=blue IMAGE nvidia-smi\n");
  command->callback([=, &chosen] {
    refuse_wrong_words(check_new(*flags));
    chosen = [=](Context& c) { return create(*flags, c); };
  });
}

void add_share_rm(CLI::App& share, Context& context, Action& chosen) {
  auto options = std::make_shared<RemoveOptions>();
  auto* command = share.add_subcommand("rm", "Remove named shares and their CDI devices");
  add_root_option(*command, context);
  command->add_option("name", options->names, "Of `gantry share ls`")
      ->type_name("NAME...")
      ->required();
  command->add_flag("--force", options->force, "Also while processes use it");
  add_examples(*command, "  gantry share rm blue\n  gantry share rm --force blue red\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return remove(*options, c); }; });
}

}  // namespace gantry::cli
