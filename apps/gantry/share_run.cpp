// SPDX-License-Identifier: Apache-2.0
// gantry share run: runs a command with a share of a GPU; everything else stays the same for it.
#include "base/core/printable.hpp"
#include "container/fence_mount/child_command.hpp"
#include "container/fence_mount/driver_libraries.hpp"
#include "container/fence_mount/fence_mounts.hpp"
#include "container/fence_mount/linked_fence.hpp"
#include "container/plan/device_selection.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/sim_commands.hpp"
#include "gpu/abi/fence.h"
#include "sharing/backend/backends.hpp"
#include "sharing/backend/fence_libraries.hpp"
#include "sharing/backend/mps_share.hpp"
#include "sharing/backend/share_device.hpp"
#include "sharing/backend/shares.hpp"
#include "sim/machine/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace gantry::cli {
namespace {

struct ShareRunOptions {
  ShareFlags limits;
  std::vector<std::string> command;
};

void add_all(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const auto& item : more) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Directories that the environment adds to the loader's search path.
std::vector<std::string> searched() {
  std::error_code ignored;
  const auto here = std::filesystem::current_path(ignored).string();
  auto directories = fence_mount::split_search_path(variable("LD_LIBRARY_PATH"), here);
  for (const char* prefix : {"CONDA_PREFIX", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH"}) {
    const auto place = variable(prefix);
    if (!place.starts_with('/')) continue;
    for (const char* below : {"/lib", "/lib64", "/compat", "/cuda-compat"})
      directories.push_back(place + below);
  }
  return directories;
}

// The path of a driver library, as this process sees it.
std::string real_library(const model::Inventory& machine, const sys::Host& host,
                         std::string_view soname) {
  for (const auto& file : machine.files) {
    if (file.kind == model::DriverFileKind::Library && file.soname == soname && !file.is_32bit)
      return host.outside(file.path);
  }
  return "";
}

// The device nodes of GPUs and MIG instances that do not belong to the share.
std::vector<std::string> other_nodes(const model::Inventory& machine, const policy::Share& share) {
  std::vector<plan::SelectedDevice> ours;
  for (const auto& uuid : share.gpus) {
    if (const auto device = plan::select_one(machine, uuid.text); device.ok())
      ours.push_back(*device);
  }
  const auto has = [&](const model::Gpu& gpu, const model::MigInstance* instance) {
    return std::any_of(ours.begin(), ours.end(), [&](const plan::SelectedDevice& one) {
      return one.gpu == &gpu && (instance == nullptr || one.mig == instance);
    });
  };
  std::vector<std::string> nodes;
  for (const auto& gpu : machine.gpus) {
    if (!has(gpu, nullptr) && gpu.minor) nodes.push_back(fmt::format("/dev/nvidia{}", *gpu.minor));
    for (const auto& instance : gpu.mig.instances) {
      if (!has(gpu, &instance))
        add_all(nodes, {instance.gpu_instance_node, instance.compute_instance_node});
    }
  }
  std::erase(nodes, "");
  return nodes;
}

Result<fence_mount::FenceMounts> fence_mounts_for(const daemon::ShareState& made,
                                                  const model::Inventory& machine,
                                                  const sys::Host& host) {
  GANTRY_TRY(const auto fence, backend::find_fence());
  GANTRY_TRY(const auto live, sys::Host::at("/"));
  fence_mount::FenceMounts e{.share = made.directory,
                             .fence_cuda = fence.cuda,
                             .fence_nvml = fence.nvml,
                             .real_cuda = real_library(machine, host, "libcuda.so.1"),
                             .real_nvml = real_library(machine, host, "libnvidia-ml.so.1"),
                             .hidden_nodes = other_nodes(machine, made.share)};
  if (e.real_cuda.empty()) {
    return Error(Errc::NotFound,
                 "the driver on this machine has no libcuda.so.1; run `gantry doctor`");
  }
  GANTRY_TRY(const auto places, fence_mount::find_driver_libraries(live, searched()));
  e.cover_cuda = places.cuda;
  e.cover_nvml = places.nvml;
  // A machine in a directory (--root) has its libraries below that directory.
  GANTRY_TRY(const auto own, fence_mount::find_driver_libraries(host));
  for (const auto& path : own.cuda) add_all(e.cover_cuda, {host.outside(path)});
  for (const auto& path : own.nvml) add_all(e.cover_nvml, {host.outside(path)});
  add_all(e.cover_cuda, {e.real_cuda});
  if (!e.real_nvml.empty()) add_all(e.cover_nvml, {e.real_nvml});
  if (!host.is_live()) {
    e.machine = host.root();
    const auto place = made.directory + "/machine";
    if (::mkdir(place.c_str(), 0755) != 0 && errno != EEXIST)
      return Error::sys(errno, fmt::format("mkdir {}", place));
  }
  return e;
}

// nullopt if this process cannot mount anything.
std::optional<fence_mount::NamespaceKind> way_here() {
  if (::geteuid() == 0 &&
      fence_mount::can_mount_fence(fence_mount::NamespaceKind::MountNamespace).ok())
    return fence_mount::NamespaceKind::MountNamespace;
  if (fence_mount::can_mount_fence(fence_mount::NamespaceKind::UserAndMountNamespace).ok())
    return fence_mount::NamespaceKind::UserAndMountNamespace;
  return std::nullopt;
}

std::string uuids_of(const policy::Share& share) {
  std::vector<std::string> uuids;
  for (const auto& gpu : share.gpus) uuids.push_back(gpu.text);
  return fmt::format("{}", fmt::join(uuids, ","));
}

struct ShareLocation {
  const sys::Host& host;
  const model::Inventory& machine;
  std::optional<fence_mount::NamespaceKind> way;
  std::FILE* err;
};

// Uses links instead of mounts. Works for programs that do not change LD_LIBRARY_PATH.
Result<int> run_with_links(fence_mount::ChildCommand command,
                           const fence_mount::FenceMounts& fence_mounts, std::FILE* err) {
  auto made = fence_mount::LinkedFence::make(fence_mounts, FENCE_DIRECTORY);
  if (!made.ok()) {
    return std::move(made).error().in(
        "a share needs a mount namespace, and this process may not create one; run this as root, "
        "allow user namespaces (sysctl user.max_user_namespaces=10000), or use a container with "
        "`gantry share create`");
  }
  fmt::print(err,
             "gantry share run: warning: this process cannot mount anything, so the fence is only "
             "in LD_LIBRARY_PATH: a program that changes this variable, or opens libcuda by its "
             "path, has no limits until the auditor finds it\n");
  const auto before = command.before;
  command.before = [&]() -> Status {
    const auto others = variable("LD_LIBRARY_PATH");
    const auto path = made->libraries() + (others.empty() ? "" : ":" + others);
    ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
    return before();
  };
  return fence_mount::run(command);
}

Result<int> run_with_mounts(const std::vector<std::string>& words, const policy::Share& share,
                            const fence_mount::FenceMounts& fence_mounts,
                            const ShareLocation& place,
                            const std::function<Status(pid_t)>& started = {}) {
  fence_mount::ChildCommand command{
      .words = words,
      .before = [&]() -> Status {
        ::setenv("CUDA_VISIBLE_DEVICES", uuids_of(share).c_str(), 1);
        ::setenv("GANTRY_SHARE", share.name.c_str(), 1);
        return place.way ? fence_mount::enter_fence(fence_mounts, *place.way) : Status();
      },
      .started = started};
  if (place.way) return fence_mount::run(command);
  return run_with_links(std::move(command), fence_mounts, place.err);
}

// If the auditor killed the command, say so: the caller sees only a signal.
void print_auditor_stop(daemon::Client& client, const std::string& name, std::FILE* err) {
  client.set_timeout(std::chrono::seconds(1));  // the command has ended, so do not wait long
  const auto state = client.show(name);
  if (!state.ok()) return;
  for (const auto& finding : state->findings) {
    if (finding.stopped)
      fmt::print(err, "gantry share run: stopped by the auditor (--policy stop): {}\n",
                 printable_lines(finding.text));
  }
}

Result<int> run_fenced(const ShareRunOptions& options, const policy::Share& share,
                       const ShareLocation& place) {
  GANTRY_TRY(auto client, daemon::Client::connect_or_start(place.host, backend::daemon_command()));
  GANTRY_TRY(const auto made, client.hold(share, options.limits.overcommitted()));
  GANTRY_TRY(const auto fence_mounts, fence_mounts_for(made, place.machine, place.host));
  auto status = run_with_mounts(options.command, made.share, fence_mounts, place,
                                [&](pid_t child) { return client.adopt(made.share.name, child); });
  print_auditor_stop(client, made.share.name, place.err);
  return status;
}

// Inside a share, libcuda is the fence: a second fence would not find the driver.
Status check_outside_of_shares() {
  std::error_code failed;
  if (!std::filesystem::exists(FENCE_REAL_CUDA, failed)) return {};
  const auto name = variable("GANTRY_SHARE");
  return Error(
      Errc::Unsupported,
      fmt::format("this process is already inside {}, and a share cannot be divided; leave it "
                  "first, or change it from outside: gantry share set {}",
                  name.empty() ? "a share" : "the share " + name, name.empty() ? "NAME" : name));
}

// The fence does not enforce these limits. The command gets its GPU and no other.
Result<int> run_unfenced(const ShareRunOptions& options, policy::Share share,
                         const ShareLocation& place) {
  if (!place.way) {
    return Error(Errc::Denied, fmt::format("{} needs a mount namespace, and this process may not "
                                           "create one; run this as root or use a container",
                                           to_string(share.backend)));
  }
  if (share.gpus.empty()) {
    GANTRY_TRY(const auto gpu, any_gpu(place.machine));
    share.gpus.push_back(gpu);
  }
  fence_mount::FenceMounts fence_mounts{.hidden_nodes = other_nodes(place.machine, share)};
  if (!place.host.is_live()) fence_mounts.machine = place.host.root();
  if (share.backend != policy::Backend::Mps)
    return run_with_mounts(options.command, share, fence_mounts, place);
  GANTRY_TRY(const auto plan,
             backend::mps_plan(share, place.machine, backend::declared_shares(place.host)));
  GANTRY_CHECK(backend::start_mps(place.host, plan));
  fence_mounts.bound = backend::mps_bind_mounts(place.host, share.name);
  auto status = run_with_mounts(options.command, share, fence_mounts, place);
  GANTRY_CHECK(backend::stop_mps(place.host, plan));
  return status;
}

Result<int> run_share(const ShareRunOptions& options, Context& context) {
  GANTRY_CHECK(check_outside_of_shares());
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, read_machine_for(options.limits, host));
  GANTRY_TRY(auto words, resolve_share_text(options.limits, machine));
  if (words.name.empty()) words.name = fmt::format("run-{}", ::getpid());
  GANTRY_TRY(auto asked, policy::parse_share(words));
  GANTRY_TRY(const auto share, backend::choose_and_check_backend(std::move(asked), machine, host));
  if (!options.limits.text.name.empty()) GANTRY_CHECK(backend::check_name_unused(host, share.name));
  if (!host.is_live()) GANTRY_CHECK(use_simulated_machine(host));
  print_if_unlimited(share, "run", context);
  std::fflush(context.out);
  const ShareLocation place{host, machine, way_here(), context.err};
  return share.backend == policy::Backend::Fence ? run_fenced(options, share, place)
                                                 : run_unfenced(options, share, place);
}

}  // namespace

void add_share_run(CLI::App& share, Context& context, Action& chosen) {
  auto options = std::make_shared<ShareRunOptions>();
  auto* command = share.add_subcommand("run", "Run a command with a share of a GPU");
  add_root_option(*command, context);
  command
      ->add_option("--name", options->limits.text.name,
                   "Name of the share, for `share ls`, `top` and `set`")
      ->type_name("NAME");
  add_limit_flags(*command, options->limits);
  add_backend_flags(*command, options->limits);
  command->add_option("command", options->command, "The command and its arguments")
      ->type_name("COMMAND...")
      ->required();
  add_examples(*command,
               "  gantry share run --memory 10GiB --compute 30% -- python3 train.py\n"
               "  gantry share run --memory 50% --gpu 1 --policy stop -- ./server\n"
               "  gantry share run --weight 200 --name mine -- bash   # `share set mine ...` "
               "meanwhile\n");
  command->callback([=, &chosen] {
    fail_usage(check_new_share(options->limits));
    chosen = [=](Context& c) { return run_share(*options, c); };
  });
}

}  // namespace gantry::cli
