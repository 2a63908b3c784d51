// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/injection.hpp"

#include "base/core/text.hpp"
#include "container/grants/grants.hpp"
#include "container/plan/device_selection.hpp"
#include "container/runtime/injection/low_level_runtime.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::runtime {
namespace {

using plan::Flavour;

Flavour wanted_flavour(const config::Settings& settings) {
  // If the cache must not be written, this applies to the shim as well as to the hook.
  if (config::has_disabled_hook(settings, "update-ldcache")) return Flavour::NoHooks;
  if (settings.gantry.flavour == "no-hooks") return Flavour::NoHooks;
  if (settings.gantry.flavour == "one-hook") return Flavour::OneHook;
  return Flavour::Shim;
}

// In the directory of the configuration's nvidia-ctk, else in our own: a configuration often stays
// after its toolkit is removed.
std::string cdi_hook(const config::Settings& settings) {
  const auto& ctk = settings.ctk_path;
  if (ctk.starts_with('/')) {
    auto hook = ctk.substr(0, ctk.rfind('/')) + "/nvidia-cdi-hook";
    if (::access(hook.c_str(), X_OK) == 0) return hook;
  }
  return own_program_path("nvidia-cdi-hook");
}

// Like plan, but from the current nodes: their mode may have changed since the inventory was made.
std::vector<std::uint32_t> groups_of(const std::vector<model::DeviceNodeEdit>& nodes) {
  std::vector<std::uint32_t> groups;
  for (const auto& node : nodes) {
    const bool for_everybody = (node.mode.value_or(0) & 06U) == 06U;
    const auto group = node.gid.value_or(0);
    if (for_everybody || group == 0) continue;
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

}  // namespace

std::string_view to_string(Flavour flavour) {
  switch (flavour) {
    case Flavour::NoHooks: return "no-hooks";
    case Flavour::OneHook: return "one-hook";
    case Flavour::Shim: return "shim";
  }
  return "?";
}

std::string engine_root(const sys::Host& host) {
  return host.is_live() ? std::string() : host.root();
}

Status fill_device_numbers(const sys::Host& host, std::string_view engine_root,
                           model::ContainerEdits& edits) {
  for (auto& node : edits.nodes) {
    std::string_view inside = node.host_path;
    if (inside.starts_with(engine_root)) inside.remove_prefix(engine_root.size());
    const auto info = host.device(inside);
    if (!info.ok()) {
      return Error(Errc::NotFound,
                   fmt::format("{}: {}; run `gantry doctor`", node.host_path, info.error().text()));
    }
    node.major = info->major;
    node.minor = info->minor;
    node.mode = info->mode;
    node.gid = info->gid;
  }
  return {};
}

Result<const Machine*> Injector::machine() {
  if (!machine_) {
    const auto once = [this] {
      refreshed_ = true;
      return context_.refresh();
    };
    GANTRY_TRY(machine_, open_machine(context_.host, once));
  }
  return &*machine_;
}

oci::RequestLookups Injector::lookups() {
  return {.grant =
              [this](const oci::PodContainer& pod) {
                return grants::read(context_.host, pod.uid, pod.container);
              },
          .uuid = [this](std::string_view id) -> std::string {
            const auto known = machine();
            if (!known.ok()) return {};
            const auto device = plan::select_one((*known)->inventory, id);
            if (!device.ok()) return {};
            return device->mig != nullptr ? device->mig->uuid.text : device->gpu->uuid.text;
          }};
}

// Without an inventory some checks are impossible; refuses the request instead of guessing.
Status Injector::check_known(const model::ContainerRequest& request, const Machine& machine) const {
  if (!machine.from_procfs) return {};
  if (!request.requirements.empty()) {
    return Error(Errc::NotFound,
                 fmt::format("the image requires {}, which cannot be checked without an inventory; "
                             "run `gantry cdi refresh`",
                             fmt::join(request.requirements, " and ")));
  }
  for (const auto& device : request.devices) {
    if (!device.starts_with("MIG-") && device.find(':') == std::string::npos) continue;
    if (model::PciAddress::parse(device)) continue;
    return Error(Errc::NotFound, fmt::format("{} is a MIG instance, which cannot be found without "
                                             "an inventory; run `gantry cdi refresh`",
                                             device));
  }
  return {};
}

plan::PlanOptions Injector::plan_options(Flavour flavour) const {
  const auto& settings = context_.settings;
  const bool no_groups = settings.features.no_additional_gids_for_device_nodes ||
                         config::has_feature_flag(settings, "no-additional-gids-for-device-nodes");
  plan::PlanOptions options{
      .flavour = flavour,
      .engine_root = engine_root(context_.host),
      .groups = no_groups ? plan::AdditionalGroups::None : plan::AdditionalGroups::AllNodes,
      .sockets = !config::has_feature_flag(settings, "disable-ipc-discoverer"),
      .node_hook = !config::has_disabled_hook(settings, "disable-device-node-modification")};
  if (auto hook = cdi_hook(settings); !hook.empty()) options.hook_path = std::move(hook);
  return options;
}

// Only where it has an effect: a hook is a process more for each container.
void Injector::add_node_hook(const oci::Container& container, Injection& injection) const {
  const auto options = plan_options(injection.flavour);
  const auto params = context_.host.read("/proc/driver/nvidia/params");
  if (!container.can_create_nodes || !options.node_hook || injection.edits.nodes.empty() ||
      !params.ok() || !contains(*params, "ModifyDeviceFiles: 1")) {
    return;
  }
  auto& hooks = injection.edits.hooks;
  auto hook = plan::node_creation_hook(options);
  // Another tool's specification may have the same hook.
  const bool is_there = std::any_of(hooks.begin(), hooks.end(), [&](const model::HookEdit& other) {
    return std::find(other.args.begin(), other.args.end(), hook.args[1]) != other.args.end();
  });
  if (!is_there) hooks.push_back(std::move(hook));
}

Result<model::ContainerEdits> Injector::gpu_edits(const model::ContainerRequest& request,
                                                  Flavour flavour) {
  GANTRY_TRY(const auto* known, machine());
  GANTRY_CHECK(check_known(request, *known));
  // procfs has no library names to merge.
  if (known->from_procfs && flavour == Flavour::Shim) flavour = Flavour::NoHooks;
  auto options = plan_options(flavour);
  options.prepared = known->prepared.directory;
  options.node_hook = false;  // add_node_hook() knows the container
  GANTRY_TRY(auto edits, plan::edits_for(known->inventory, request, options));
  GANTRY_CHECK(fill_device_numbers(context_.host, options.engine_root, edits));
  if (options.groups != plan::AdditionalGroups::None)
    edits.additional_gids = groups_of(edits.nodes);
  return edits;
}

Result<model::ContainerEdits> Injector::edits_with(const model::ContainerRequest& asked,
                                                   Flavour flavour) {
  GANTRY_TRY(const auto request, resolve_gpu_names(asked));
  model::ContainerEdits edits;
  const bool wants_gpus = !request.devices.empty() || !request.imex_channels.empty() ||
                          !request.groups.empty() || request.mig_config || request.mig_monitor;
  if (wants_gpus) {
    auto planned = gpu_edits(request, flavour);
    if (!planned.ok() && planned.error().code() == Errc::NotFound && !refreshed_) {
      // A GPU or instance may have been added after the inventory: refresh once before failing.
      refreshed_ = true;
      if (context_.refresh().ok()) {
        machine_.reset();
        planned = gpu_edits(request, flavour);
      }
    }
    if (!planned.ok() && planned.error().code() == Errc::NotFound) {
      if (const auto other = with_cdi_names(request)) return edits_with(*other, flavour);
    }
    GANTRY_TRY(edits, std::move(planned));
  }
  GANTRY_CHECK(add_cdi_edits(request, flavour, edits));
  return edits;
}

Result<oci::Decision> Injector::decide(const oci::Container& container) {
  return oci::decide_request(container, context_.settings, lookups());
}

// An image is made for many machines: a device group that this one lacks does not stop it.
void Injector::drop_missing_groups(oci::Decision& decision) {
  if (decision.request.groups.empty()) return;
  const auto known = machine();
  if (!known.ok()) return;  // edits_with() reports it
  std::erase_if(decision.request.groups, [&](model::DeviceGroup group) {
    const auto edits = plan::group_edits((*known)->inventory, group, {});
    if (edits.ok()) return false;
    decision.warnings.push_back(fmt::format(
        "{}, then `gantry cdi refresh`; the container starts without it", edits.error().text()));
    return true;
  });
}

Result<Injection> Injector::plan(oci::Decision decision, const oci::Container& container) {
  Injection injection{.decision = std::move(decision)};
  drop_missing_groups(injection.decision);
  const auto& request = injection.decision.request;
  if (request.is_empty()) return injection;
  injection.flavour = wanted_flavour(context_.settings);
  GANTRY_TRY(injection.edits, edits_with(request, injection.flavour));
  add_node_hook(container, injection);
  if (machine_) {
    injection.driver_version = machine_->inventory.driver.version;
    injection.cuda_version = machine_->inventory.driver.cuda_version;
    injection.notes = machine_->notes;
    if (machine_->from_procfs && injection.flavour == Flavour::Shim) {
      injection.flavour = Flavour::NoHooks;
    }
  }
  return injection;
}

}  // namespace gantry::runtime
