// SPDX-License-Identifier: Apache-2.0
// How `gantry driver` reaches the machine: the kernel, the CDI files and the agent.
#include "base/core/printable.hpp"
#include "base/sys/shell_command.hpp"
#include "container/driver_dir/garbage.hpp"
#include "container/plan/driver_paths.hpp"
#include "container/publish/refresh.hpp"
#include "gantry/cdi_options.hpp"
#include "gantry/driver_commands.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "gpu/probe/snapshot.hpp"
#include "install/driver_setup/live_effects.hpp"
#include "node/owner_lease/lease_socket.hpp"
#include "node/owner_lease/protocol.hpp"
#include "node/owner_lease/with_ownership.hpp"
#include "vm/pci/read_bus.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

namespace gantry::cli {
namespace {

Result<sys::UniqueFd> connect_to_agent(const sys::Host& host) {
  return owner_lease::connect(host.outside(owner_lease::kOwnerSocket));
}

// As `gantry cdi refresh` does without options. The agent does it itself.
Status refresh_containers(const sys::Host& host, const Context& context) {
  if (connect_to_agent(host).ok()) return {};
  GANTRY_TRY(const auto machine, open_machine(SpecFlags{}, context));
  publish::RefreshOptions options;
  GANTRY_TRY(options.spec, spec_options(SpecFlags{}, machine));
  GANTRY_TRY(const auto done, publish::refresh(machine.host, options));
  return {};
}

Status remove_file(const sys::Host& host, std::string_view path) {
  GANTRY_TRY(const auto parent, host.resolve(path.substr(0, path.rfind('/'))));
  const auto outside = host.outside(parent + std::string(path.substr(path.rfind('/'))));
  if (::unlink(outside.c_str()) == 0 || errno == ENOENT) return {};
  const int err = errno;
  return Error::sys(err, fmt::format("remove {}", outside));
}

// Directories that are empty then go, too: nothing else had a reason to make them.
void remove_directory_of(const sys::Host& host, std::string_view path) {
  const auto real = host.resolve(path.substr(0, path.rfind('/')));
  if (real.ok()) ::rmdir(host.outside(*real).c_str());
}

Status remove_containers_files(const sys::Host& host) {
  for (const auto path : {publish::kSpecPath, probe::kInventoryPath}) {
    auto removed = remove_file(host, path);
    if (!removed.ok() && removed.error().code() != Errc::NotFound) return removed;
    remove_directory_of(host, path);
  }
  const auto done = driver_dir::unpublish(host);
  if (!done.ok() && done.error().code() != Errc::NotFound) return done.error();
  if (done.ok() && !done->in_use.empty())
    return Error(Errc::Busy, "containers have the driver's files mounted")
        .advise("when they have ended: sudo gantry node down");
  // What is left is the lock of the writers.
  for (const auto& name : host.list(plan::kDriverDirectories).value_or({})) {
    const auto path = fmt::format("{}/{}", plan::kDriverDirectories, name);
    if (!name.starts_with('.') && name != "lock") continue;
    GANTRY_CHECK(remove_file(host, path));
  }
  remove_directory_of(host, fmt::format("{}/x", plan::kDriverDirectories));
  return {};
}

// It reads the machine again. One that waits for a driver notices by itself.
Status tell_running_agent(const sys::Host& host) {
  const auto socket = connect_to_agent(host);
  if (!socket.ok()) return {};
  struct ucred peer {};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
    return {};  // in another process namespace
  if (::kill(peer.pid, SIGHUP) == 0 || errno == ESRCH) return {};
  const int err = errno;
  return Error::sys(err, fmt::format("send SIGHUP to the agent, process {}", peer.pid));
}

// GPUs of virtual machines stay with them: no module of this driver holds them.
Result<std::vector<ownership::OwnerChange>> changes_for(const sys::Host& host,
                                                        const std::string& command) {
  GANTRY_TRY(const auto bus, pci::read_bus(host));
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  std::vector<ownership::OwnerChange> changes;
  for (const auto& function : bus.functions) {
    if (!function.is_gpu() || function.physfn || pci::is_vfio_driver(function.driver)) continue;
    const auto* known = ledger.find(function.address);
    if (known != nullptr && known->owner == ownership::Owner::Vm) continue;
    changes.push_back({.gpu = function.address,
                       .to = known == nullptr ? ownership::Owner::Plugin : known->owner,
                       .use = known == nullptr ? model::AllocationMode::Whole : known->use,
                       .what = command});
  }
  return changes;
}

// The agent withdraws the GPUs, lets go of them and offers them again afterwards. Without an agent
// nothing has to be withdrawn, and the ledger is left alone.
Status with_leased_gpus(const sys::Host& host, const Context& context,
                        const preflight::DriverRequest& request, const std::string& command,
                        const std::function<Status()>& act) {
  if (!connect_to_agent(host).ok()) return act();
  GANTRY_TRY(const auto changes, changes_for(host, command));
  if (changes.empty()) return act();
  const owner_lease::LeaseOptions options{
      .wait = std::chrono::seconds(request.drain ? request.drain_seconds : 0),
      .progress = [&](const std::string& text) { print_note(printable(text), context); },
      .yielding = {"nvidia-persiste", "nv-fabricmanage", "nvidia-topology", "nvidia-gridd",
                   "nvidia-imex", "nvidia-powerd", "nv-hostengine"},
      .cancel = context.caught ? context.caught->termination().fd() : -1};
  return owner_lease::with_ownership(
      host, changes, options, [&]() -> owner_lease::JointOutcome { return {.status = act()}; });
}

std::string program_here(const sys::Host& host) {
  std::array<char, 4096> path{};
  const auto size = host.is_live() ? ::readlink("/proc/self/exe", path.data(), path.size()) : -1;
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "";
}

}  // namespace

void catch_termination(Context& context) {
  if (!context.caught) context.caught = std::make_shared<const sys::CaughtTermination>();
}

Result<std::unique_ptr<driver_setup::InstallEffects>> driver_effects(
    const sys::Host& host, const Context& context, driver_package::DownloadProgress* progress) {
  return driver_setup::live_effects(
      host, {.refresh_cdi = [&host, &context] { return refresh_containers(host, context); },
             .remove_cdi = [&host] { return remove_containers_files(host); },
             .tell_agent = [&host] { return tell_running_agent(host); },
             .progress = progress,
             .stop = context.caught ? context.caught->termination().fd() : -1});
}

driver_setup::SetupOptions driver_options(const sys::Host& host, Context& context,
                                          const preflight::DriverRequest& request,
                                          std::string_view command) {
  driver_setup::SetupOptions options;
  options.read_facts = [&host, request] {
    return preflight::read_facts(host, preflight::live_sources(host, request));
  };
  const auto finishing = fmt::format("{}{}", command, sys::root_flag(host));
  options.exclusively = [&host, &context, request, finishing](const std::function<Status()>& act) {
    return with_leased_gpus(host, context, request, finishing, act);
  };
  options.progress = [&context](std::string_view text) {
    if (!context.json) fmt::print(context.err, "{} ...\n", printable(text));
  };
  options.program = program_here(host);
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  if (context.caught) options.stop = &context.caught->termination();
  return options;
}

}  // namespace gantry::cli
