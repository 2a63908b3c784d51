// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/machine.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/trusted.hpp"
#include "container/runtime/injection/low_level_runtime.hpp"
#include "container/runtime/injection/procfs_inventory.hpp"
#include "gpu/model/inventory_json.hpp"
#include "gpu/procfs/mig.hpp"
#include "gpu/procfs/version.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::runtime {
namespace {

constexpr std::string_view kInventory = "/run/gantry/inventory.json";
constexpr std::string_view kBootId = "/proc/sys/kernel/random/boot_id";

bool same_instances(const sys::Host& host, const model::Gpu& gpu) {
  std::set<std::int64_t> known;
  for (const auto& instance : gpu.mig.instances) known.insert(instance.gpu_instance);
  const auto shown = procfs::gpu_instances(host, *gpu.minor);
  return std::set<std::int64_t>(shown.begin(), shown.end()) == known;
}

Result<model::Inventory> read_inventory(const sys::Host& host) {
  GANTRY_TRY(const auto text, sys::read_trusted(host, kInventory, model::kInventoryJsonLimit));
  return model::inventory_from_json(text).in(host.outside(kInventory));
}

// The current inventory and prepared directory, if they are valid.
Result<Machine> read_machine(const sys::Host& host) {
  GANTRY_TRY(auto inventory, read_inventory(host));
  if (auto stale = stale_reason(host, inventory); !stale.empty()) {
    return Error(Errc::Corrupt, std::move(stale));
  }
  GANTRY_TRY(auto prepared, driver_dir::current(host));
  if (!driver_dir::serves_driver(prepared, inventory.driver.version)) {
    return Error(Errc::Corrupt,
                 fmt::format("the prepared driver directory is for {}, but {} is running",
                             prepared.version, inventory.driver.version));
  }
  return Machine{.inventory = std::move(inventory), .prepared = std::move(prepared)};
}

Result<Machine> machine_from_procfs(const sys::Host& host, const Error& why) {
  GANTRY_TRY(auto prepared, driver_dir::current(host));
  if (!runs_driver(host, prepared.version)) return why;
  GANTRY_TRY(auto inventory, procfs_inventory(host, prepared));
  return Machine{.inventory = std::move(inventory),
                 .prepared = std::move(prepared),
                 .from_procfs = true,
                 .notes = {fmt::format("there is no inventory ({}): only whole GPUs, from procfs, "
                                       "are available; run `gantry cdi refresh`",
                                       why.text())}};
}

}  // namespace

bool runs_driver(const sys::Host& host, std::string_view known) {
  const auto running = procfs::read_version(host);
  return running.ok() && !known.empty() && running->version == known;
}

std::string stale_reason(const sys::Host& host, const model::Inventory& inventory) {
  const auto boot = host.read_value(kBootId);
  if (boot && *boot != inventory.boot_id) return "the inventory is from another boot";
  if (!runs_driver(host, inventory.driver.version)) {
    return host.exists(procfs::kVersionPath)
               ? fmt::format("the inventory is for driver {}, but another one is running",
                             inventory.driver.version)
               : std::string("the NVIDIA driver is not loaded (no /proc/driver/nvidia/version)");
  }
  for (const auto& gpu : inventory.gpus) {
    if (!gpu.minor || gpu.mig.current == model::MigMode::Unsupported) continue;
    if (!same_instances(host, gpu)) {
      return fmt::format("the MIG instances of GPU {} have changed", gpu.index);
    }
  }
  return {};
}

Result<Machine> open_machine(const sys::Host& host, const RefreshFunction& refresh) {
  auto machine = read_machine(host);
  if (machine.ok()) return machine;
  const auto reason = machine.error();
  if (!host.exists(procfs::kVersionPath)) {
    return Error(Errc::NotFound, "GPUs were requested, but the NVIDIA driver is not loaded")
        .advise("run `gantry doctor`");
  }
  const auto refreshed = refresh();
  if (refreshed.ok()) {
    machine = read_machine(host);
    if (machine.ok()) {
      machine->notes.push_back(
          fmt::format("inventory and driver directory were rebuilt: {}", reason.text()));
      return machine;
    }
  }
  const auto& latest = refreshed.ok() ? machine.error() : refreshed.error();
  // Another user could change what containers get: fail instead of using the fallback.
  if (reason.code() == Errc::Denied) {
    const auto then = fmt::format(", then run `gantry cdi refresh` (tried: {})", latest.text());
    if (reason.remedy().empty()) return Error(Errc::Denied, reason.text() + then);
    return Error(Errc::Denied, reason.cause()).advise(reason.remedy() + then);
  }
  auto fallback = machine_from_procfs(host, latest);
  if (fallback.ok()) return fallback;
  return Error(Errc::NotFound,
               fmt::format("there is no valid inventory of this machine ({}), and a refresh failed "
                           "({})",
                           reason.text(), latest.text()))
      .advise("run `gantry cdi refresh`");
}

Status refresh_by_gantry(const std::string& root, std::int64_t deadline_seconds) {
  const auto beside = sibling_program_path("gantry");
  const std::vector<std::string> argv{beside.empty() ? "gantry" : beside, "cdi", "refresh",
                                      "--root", root};
  GANTRY_TRY(
      const auto result,
      sys::run_command(argv, std::chrono::seconds(deadline_seconds)).in("gantry cdi refresh"));
  if (result.status == 0) return {};
  return Error(Errc::Internal, fmt::format("gantry cdi refresh ended with {}: {}", result.status,
                                           trim(result.output)));
}

}  // namespace gantry::runtime
