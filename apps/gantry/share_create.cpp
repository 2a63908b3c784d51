// SPDX-License-Identifier: Apache-2.0
// gantry share create and rm: shares that have a name and a CDI device.
#include "base/core/printable.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/share_commands.hpp"
#include "sharing/backend/backends.hpp"
#include "sharing/backend/mps_share.hpp"
#include "sharing/backend/share_device.hpp"
#include "sharing/backend/shares.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace gantry::cli {
namespace {

void print_made(const policy::Share& share, const sys::Host& host, const Context& context) {
  if (context.json) {
    fmt::print(context.out, "{}\n", policy::to_document(share));
    return;
  }
  fmt::print(context.out, "Created the share {}. Try: podman run --device {} IMAGE nvidia-smi\n",
             share.name, backend::device_name(share.name));
  if (!host.is_live()) {
    fmt::print(context.out, "Engines look for it in /var/run/cdi: cp {} /var/run/cdi/\n",
               host.outside(std::string(publish::kShareSpecPath)));
  }
}

Result<policy::Share> create_fenced(const policy::Share& share, const ShareFlags& flags,
                                    const sys::Host& host, const model::Inventory& machine) {
  GANTRY_TRY(auto client, daemon::Client::connect_or_start(host, backend::daemon_command()));
  GANTRY_TRY(auto made, client.create(share, flags.overcommitted()));
  if (auto written = backend::write_share_devices(host, machine); !written.ok()) {
    (void)client.remove(made.share.name);  // a share that containers cannot get is useless
    return std::move(written).error();
  }
  return std::move(made.share);
}

Result<policy::Share> create_unfenced(policy::Share share, const sys::Host& host,
                                      const model::Inventory& machine) {
  if (share.gpus.empty()) {
    GANTRY_TRY(const auto gpu, any_gpu(machine));
    share.gpus.push_back(gpu);
  }
  if (share.backend != policy::Backend::Mps) {
    GANTRY_CHECK(backend::write_share_devices(host, machine, &share));
    return share;
  }
  GANTRY_TRY(const auto plan, backend::mps_plan(share, machine, backend::declared_shares(host)));
  GANTRY_CHECK(backend::start_mps(host, plan));
  if (auto written = backend::write_share_devices(host, machine, &share); !written.ok()) {
    (void)backend::stop_mps(host, plan).ok();  // a daemon that containers cannot use is useless
    return std::move(written).error();
  }
  return share;
}

Result<int> create_share(const ShareFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, read_machine_for(flags, host));
  GANTRY_TRY(const auto words, resolve_share_text(flags, machine));
  GANTRY_TRY(auto asked, policy::parse_share(words));
  GANTRY_TRY(auto share, backend::choose_and_check_backend(std::move(asked), machine, host));
  GANTRY_CHECK(backend::check_name_unused(host, share.name));
  if (share.backend == policy::Backend::Fence) {
    GANTRY_TRY(share, create_fenced(share, flags, host, machine));
  } else {
    GANTRY_TRY(share, create_unfenced(std::move(share), host, machine));
  }
  print_made(share, host, context);
  print_if_unlimited(share, "create", context);
  return kOk;
}

struct RemoveOptions {
  std::vector<std::string> names;
  bool force = false;
};

// Fails if the share has processes: after its removal they would get no more turns and no audit.
Status check_unused(daemon::Client& client, const std::string& name) {
  using namespace std::chrono_literals;
  for (int look = 0;; ++look) {
    GANTRY_TRY(const auto state, client.show(name));
    if (state.held)
      return Error(
          Errc::Busy,
          fmt::format("the share {0} belongs to a running command and is removed when the command "
                      "ends; end the command, or run `gantry share rm --force {0}`",
                      name));
    if (state.processes.empty()) return {};
    // The share daemon may not have noticed yet that a process ended.
    if (look == 10)
      return Error(
          Errc::Busy,
          fmt::format(
              "the share {0} is used by pid {1} ({2}){3}; end its processes (see `gantry share "
              "top`), or run `gantry share rm --force {0}`: they then get no more GPU time and "
              "cannot start CUDA again",
              name, state.processes.front().pid, state.processes.front().command,
              process_count(state) > 1 ? fmt::format(" and {} more", process_count(state) - 1)
                                       : ""));
    std::this_thread::sleep_for(20ms);
  }
}

Status remove_one(const std::string& name, const RemoveOptions& options, const sys::Host& host) {
  for (const auto& share : backend::declared_shares(host)) {
    if (share.name != name) continue;
    GANTRY_CHECK(backend::remove_share_device(host, name));
    if (share.backend != policy::Backend::Mps) return {};
    GANTRY_TRY(const auto machine, read_machine(host, probe::NvmlUse::Use));
    GANTRY_TRY(const auto plan, backend::mps_plan(share, machine, {}));
    return backend::stop_mps(host, plan);
  }
  GANTRY_TRY(auto client, backend::connect_to_daemon(host));
  if (!options.force) GANTRY_CHECK(check_unused(client, name));
  GANTRY_CHECK(client.remove(name));
  return backend::remove_share_device(host, name);
}

// Continues with the other shares if one cannot be removed.
Result<int> remove(const RemoveOptions& options, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  int result = kOk;
  for (const auto& name : options.names) {
    const auto removed = remove_one(name, options, host);
    if (removed.ok()) continue;
    fmt::print(context.err, "gantry share rm: {}\n",
               printable_lines(sys::with_root(removed.error().text(), context.root)));
    result = kProblem;
  }
  return result;
}

}  // namespace

void add_share_create(CLI::App& share, Context& context, Action& chosen) {
  auto flags = std::make_shared<ShareFlags>();
  auto* command = share.add_subcommand(
      "create", "Create a named share that containers get as the CDI device gantry.dev/share=NAME");
  add_machine_options(*command, context);
  command
      ->add_option("name", flags->text.name, "Name of the share: letters, digits, '-', '_' and '.'")
      ->type_name("NAME")
      ->required();
  add_limit_flags(*command, *flags);
  add_backend_flags(*command, *flags);
  add_examples(*command,
               "  gantry share create blue --memory 20GiB --compute 30%\n"
               "  podman run --rm --device gantry.dev/share=blue IMAGE nvidia-smi\n");
  command->callback([=, &chosen] {
    fail_usage(check_new_share(*flags));
    chosen = [=](Context& c) { return create_share(*flags, c); };
  });
}

void add_share_rm(CLI::App& share, Context& context, Action& chosen) {
  auto options = std::make_shared<RemoveOptions>();
  auto* command = share.add_subcommand("rm", "Remove named shares and their CDI devices");
  add_root_option(*command, context);
  command->add_option("name", options->names, "A share of `gantry share ls`")
      ->type_name("NAME...")
      ->required();
  command->add_flag("--force", options->force, "Remove it even while processes use it");
  add_examples(*command, "  gantry share rm blue\n  gantry share rm --force blue red\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return remove(*options, c); }; });
}

}  // namespace gantry::cli
