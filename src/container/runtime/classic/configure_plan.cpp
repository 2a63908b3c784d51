// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/plan/device_selection.hpp"
#include "container/plan/edits.hpp"
#include "container/plan/requirement.hpp"
#include "container/runtime/classic/configure.hpp"
#include "container/runtime/injection/injection.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::runtime {
namespace {

bool names(const model::MountEdit& mount, std::string_view part) {
  return contains(mount.host_path, part);
}

void leave_out_sockets(const ConfigureOptions& options, std::vector<model::MountEdit>& mounts) {
  std::erase_if(mounts, [&](const model::MountEdit& mount) {
    return (options.no_persistenced && names(mount, "/nvidia-persistenced/")) ||
           (options.no_fabricmanager && names(mount, "/nvidia-fabricmanager/"));
  });
}

// A device may have been added after the inventory was written: refresh once before failing.
Result<Machine> machine_with(const sys::Host& host, const model::ContainerRequest& request,
                             const RefreshFunction& refresh) {
  bool refreshed = false;
  const RefreshFunction once = [&] {
    refreshed = true;
    return refresh();
  };
  GANTRY_TRY(auto machine, open_machine(host, once).in("initialization error"));
  const auto known = plan::select(machine.inventory, request.devices);
  if (known.ok() || refreshed || !once().ok()) return machine;
  return open_machine(host, once).in("initialization error");
}

}  // namespace

Result<ConfigurePlan> plan_configure(const sys::Host& host, const ConfigureOptions& options,
                                     const RefreshFunction& refresh, const Log& log) {
  const auto& request = options.request;
  GANTRY_TRY(const Machine machine, machine_with(host, request, refresh));
  for (const auto& note : machine.notes)
    log.info(kConfigureComponent, "machine is limited", {{"why", note}});
  GANTRY_TRY(const auto selection,
             plan::select(machine.inventory, request.devices).in("device error"));
  GANTRY_CHECK(plan::check_requirements(request.requirements, machine.inventory, selection.devices)
                   .in("requirement error"));
  plan::PlanOptions how{.flavour = plan::Flavour::Shim,
                        .engine_root = engine_root(host),
                        .prepared = machine.prepared.directory,
                        .groups = plan::AdditionalGroups::AllNodes};
  GANTRY_TRY(auto edits, plan::edits_for(machine.inventory, request, how).in("detection error"));
  how.flavour = plan::Flavour::NoHooks;
  GANTRY_TRY(auto plain, plan::edits_for(machine.inventory, request, how).in("detection error"));
  // Without an inventory the names of the libraries are unknown: there is nothing to merge and no
  // fallback.
  if (machine.from_procfs) edits = plain;
  leave_out_sockets(options, edits.mounts);
  std::erase_if(plain.mounts, [&](const model::MountEdit& mount) {
    const auto places = plan::loader_directories();
    return std::find(places.begin(), places.end(), mount.container_path) == places.end();
  });
  return ConfigurePlan{.edits = std::move(edits),
                       .loader_mounts = std::move(plain.mounts),
                       .driver = machine.inventory.driver};
}

}  // namespace gantry::runtime
