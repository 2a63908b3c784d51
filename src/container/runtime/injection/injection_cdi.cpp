// SPDX-License-Identifier: Apache-2.0
// CDI names in a request. A name means what its specification says, as for every engine.
#include "container/cdi/registry.hpp"
#include "container/oci/device_list.hpp"
#include "container/plan/capabilities.hpp"
#include "container/plan/requirement.hpp"
#include "container/runtime/injection/injection.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::runtime {
namespace {

constexpr std::string_view kGpuKind = "nvidia.com/gpu";

std::vector<std::string> bare_names(const std::vector<std::string>& names) {
  std::vector<std::string> bare;
  for (const auto& name : names) bare.emplace_back(oci::split_qualified_name(name).name);
  return bare;
}

bool has_all(const cdi::Registry& registry, const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const auto& name) { return registry.devices().contains(name); });
}

bool has_conflict(const cdi::Registry& registry, const std::string& name) {
  return std::any_of(registry.conflicts().begin(), registry.conflicts().end(),
                     [&](const cdi::Conflict& conflict) { return conflict.name == name; });
}

}  // namespace

std::vector<std::string> Injector::gpu_names(const model::ContainerRequest& request) const {
  std::vector<std::string> names;
  for (const auto& name : request.cdi_devices) {
    const auto kind = oci::split_qualified_name(name).kind;
    if (kind == kGpuKind || kind == context_.settings.runtime.cdi_default_kind)
      names.push_back(name);
  }
  return names;
}

Status Injector::check_requirements(const model::ContainerRequest& request,
                                    const std::vector<std::string>& names) {
  if (request.requirements.empty()) return {};
  GANTRY_TRY(const auto* known, machine());
  GANTRY_CHECK(check_known(request, *known));
  const auto selection = plan::select(known->inventory, bare_names(names));
  if (!selection.ok()) return {};  // names that only a specification knows
  return plan::check_requirements(request.requirements, known->inventory, selection->devices);
}

Result<model::ContainerRequest> Injector::resolve_gpu_names(const model::ContainerRequest& asked) {
  const auto names = gpu_names(asked);
  if (names.empty()) return asked;
  // Refreshes an inventory that is out of date, and with it our specification. A machine may have
  // another tool's specification and no inventory.
  (void)machine().ok();
  const auto& directories = context_.settings.runtime.cdi_spec_dirs;
  auto registry = cdi::Registry::load(context_.host, directories);
  if (!has_all(registry, names) && !refreshed_) {
    refreshed_ = true;
    if (context_.refresh().ok()) {
      machine_.reset();
      registry = cdi::Registry::load(context_.host, directories);
    }
  }
  GANTRY_CHECK(check_requirements(asked, names));
  auto request = asked;
  for (const auto& name : names) {
    if (registry.devices().contains(name) || has_conflict(registry, name)) continue;
    std::erase(request.cdi_devices, name);
    request.devices.emplace_back(oci::split_qualified_name(name).name);
    request.capabilities = plan::specification_capabilities();
  }
  return request;
}

// Another tool's specification may define names of our kind that no GPU has. Every device that
// `gantry cdi list` shows can be requested.
std::optional<model::ContainerRequest> Injector::with_cdi_names(
    const model::ContainerRequest& request) const {
  const auto& runtime = context_.settings.runtime;
  const auto registry = cdi::Registry::load(context_.host, runtime.cdi_spec_dirs);
  auto changed = request;
  std::erase_if(changed.devices, [&](const std::string& id) {
    auto name = fmt::format("{}={}", runtime.cdi_default_kind, id);
    if (!registry.devices().contains(name)) return false;
    if (machine_ && plan::select_one(machine_->inventory, id).ok()) return false;
    changed.cdi_devices.push_back(std::move(name));
    return true;
  });
  if (changed.devices.size() == request.devices.size()) return std::nullopt;
  return changed;
}

// Our specification mounts the driver where most loaders look. The shim can serve the others, too:
// musl, and images whose loader cache already has a libcuda.
Status Injector::add_loader_edits(model::ContainerEdits& edits) {
  const auto known = machine();
  if (!known.ok() || (*known)->from_procfs) return {};
  const plan::PlanOptions options{.flavour = plan::Flavour::Shim,
                                  .engine_root = engine_root(context_.host)};
  const auto closed = model::expand_capabilities(plan::specification_capabilities());
  GANTRY_TRY(const auto planned, plan::common_edits((*known)->inventory, closed, options));
  for (const auto& mount : planned.mounts) {
    if (mount.container_path != plan::kContainerLibraryDirectory) continue;
    const bool is_there =
        std::any_of(edits.mounts.begin(), edits.mounts.end(), [&](const model::MountEdit& other) {
          return other.host_path == mount.host_path && other.container_path == mount.container_path;
        });
    if (!is_there) return {};  // another tool's specification, or one with other capabilities
  }
  edits.libraries = planned.libraries;
  edits.files = planned.files;
  return {};
}

Status Injector::add_cdi_edits(const model::ContainerRequest& request, plan::Flavour flavour,
                               model::ContainerEdits& edits) {
  if (request.cdi_devices.empty()) return {};
  const auto registry = cdi::Registry::load(context_.host, context_.settings.runtime.cdi_spec_dirs);
  GANTRY_TRY(auto foreign, registry.edits_for(request.cdi_devices));
  // Specifications of a simulated machine already have its root before their paths.
  GANTRY_CHECK(fill_device_numbers(context_.host, engine_root(context_.host), foreign));
  if (flavour == plan::Flavour::Shim && !gpu_names(request).empty())
    GANTRY_CHECK(add_loader_edits(foreign));
  plan::append(edits, foreign);
  return {};
}

}  // namespace gantry::runtime
