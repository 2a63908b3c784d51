// SPDX-License-Identifier: Apache-2.0
// The parts of the answers, prepared once for an inventory and its offer.
#include "base/core/text.hpp"
#include "container/plan/capabilities.hpp"
#include "container/plan/driver_paths.hpp"
#include "container/plan/edits.hpp"
#include "node/resources/allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::resources {
namespace {

using model::ContainerEdits;
using model::DeviceGroup;

const std::vector<std::string> writable_mount{"rbind", "rprivate"};

model::CapabilityMask mask_for(std::initializer_list<model::Capability> capabilities) {
  return model::expand_capabilities(std::vector<model::Capability>(capabilities));
}

struct GroupRow {
  bool options::Options::*enabled;
  DeviceGroup group;
  std::string_view variable;
  std::string_view cdi;
};
constexpr std::array kGroups{
    GroupRow{&options::Options::gdrcopy, DeviceGroup::Gdrcopy, "NVIDIA_GDRCOPY",
             "nvidia.com/gdrcopy=all"},
    GroupRow{&options::Options::gds, DeviceGroup::Gds, "NVIDIA_GDS", "nvidia.com/gds=all"},
    GroupRow{&options::Options::mofed, DeviceGroup::Mofed, "NVIDIA_MOFED", "nvidia.com/mofed=all"},
};

}  // namespace

class AllocatorBuilder {
 public:
  AllocatorBuilder(const model::Inventory& machine, const options::Options& options,
                   const Offer& offer, const AllocatorOptions& setting)
      : machine_(machine), options_(options), offer_(offer) {
    plan_.flavour = plan::Flavour::NoHooks;
    plan_.engine_root = setting.engine_root;
    // If a daemon is not running, a directory would be created in place of its socket.
    plan_.sockets = false;
    plan_.groups = plan::AdditionalGroups::None;  // an AllocateResponse has no groups
    const auto& asked = setting.strategies.empty() ? options.list_strategies : setting.strategies;
    const auto has = [&](options::ListStrategy strategy) {
      return std::find(asked.begin(), asked.end(), strategy) != asked.end();
    };
    gke_ = options.program == options::Program::Gke;
    direct_ = !gke_ && (asked.empty() || has(options::ListStrategy::Direct));
    if (!gke_) {
      made_.methods_ = {.envvar = has(options::ListStrategy::EnvVar),
                        .volume_mounts = has(options::ListStrategy::VolumeMounts),
                        .annotations = has(options::ListStrategy::CdiAnnotations),
                        .cri = has(options::ListStrategy::CdiCri)};
    }
    made_.annotation_prefix_ = options.cdi_annotation_prefix;
  }

  Result<Allocator> run() {
    if (gke_) {
      add_gke();
    } else if (direct_) {
      GANTRY_CHECK(add_direct());
    } else if (options_.pass_device_specs) {
      add_control_nodes(mask_for(
          {model::Capability::Compute, model::Capability::Utility, model::Capability::Graphics}));
    }
    if (!gke_) {
      add_groups();
      GANTRY_CHECK(add_channels());
    }
    for (const auto& resource : offer_.resources) add_resource(resource);
    move_nodes(made_.common_.nodes);
    for (auto& unit : made_.units_) {
      move_nodes(unit.nodes);
      move_nodes(unit.own);
    }
    return std::move(made_);
  }

 private:
  bool wants_nodes() const { return gke_ || direct_ || options_.pass_device_specs; }

  void add_common(const ContainerEdits& edits) {
    auto& common = made_.common_;
    common.nodes.insert(common.nodes.end(), edits.nodes.begin(), edits.nodes.end());
    common.mounts.insert(common.mounts.end(), edits.mounts.begin(), edits.mounts.end());
    for (const auto& variable : edits.env) {
      const auto equals = variable.find('=');
      common.env[variable.substr(0, equals)] =
          variable.substr(std::min(equals, variable.size() - 1) + 1);
    }
    made_.notes_.insert(made_.notes_.end(), edits.notes.begin(), edits.notes.end());
  }

  void add_control_nodes(model::CapabilityMask closed) {
    auto edits = plan::common_edits(machine_, closed, plan_);
    if (!edits.ok()) {
      made_.missing_ = edits.error().text();
      return;
    }
    edits->mounts.clear();
    edits->env.clear();
    edits->notes.clear();
    add_common(*edits);
  }

  // Only files below `current` of the prepared directory: an answer must not contain a file that a
  // driver upgrade renames or removes.
  Status add_direct() {
    GANTRY_TRY(const auto capabilities, plan::parse_capabilities(options_.direct_capabilities));
    auto edits = plan::common_edits(machine_, model::expand_capabilities(capabilities), plan_);
    if (!edits.ok()) {
      made_.missing_ = edits.error().text();
      return {};
    }
    const auto below =
        fmt::format("{}{}/", plan_.engine_root == "/" ? "" : plan_.engine_root, plan_.prepared);
    std::vector<model::MountEdit> kept;
    for (auto& mount : edits->mounts) {
      if (is_configuration(mount))
        mount.host_path = fmt::format("{}{}{}", below, plan::kConfigName, mount.container_path);
      const bool stable = mount.host_path.starts_with(below) && !is_versioned(mount);
      if (stable) {
        kept.push_back(std::move(mount));
      } else {
        made_.notes_.push_back(
            fmt::format("direct leaves {} out: it is not below {}, and the answer must stay valid "
                        "when the driver version changes; CDI includes it",
                        mount.container_path, plan_.prepared));
      }
    }
    edits->mounts = std::move(kept);
    add_common(*edits);
    return {};
  }

  // Files of OpenCL, Vulkan and EGL: the prepared directory has them under their paths.
  bool is_configuration(const model::MountEdit& mount) const {
    return std::any_of(machine_.files.begin(), machine_.files.end(), [&](const auto& file) {
      return file.kind == model::DriverFileKind::Config &&
             plan::config_path_in_container(file) == mount.container_path;
    });
  }

  bool is_versioned(const model::MountEdit& mount) const {
    for (const auto& version : {machine_.driver.version, machine_.driver.library_version}) {
      if (version.empty()) continue;
      if (contains(mount.host_path, version) || contains(mount.container_path, version))
        return true;
    }
    return false;
  }

  void add_gke() {
    add_control_nodes(mask_for(
        {model::Capability::Compute, model::Capability::Utility, model::Capability::Graphics}));
    const auto& gke = options_.gke;
    made_.common_.mounts.push_back({.host_path = plan_.engine_root + gke.host_path,
                                    .container_path = gke.container_path,
                                    .why = "the driver's directory"});
    made_.common_.mounts.push_back({.host_path = plan_.engine_root + gke.host_vulkan_icd_path,
                                    .container_path = gke.container_vulkan_icd_path,
                                    .why = "Vulkan's configuration"});
    if (options_.gke_config.sharing != options::SharingKind::Mps) return;
    made_.mps_clients_ = static_cast<std::uint64_t>(options_.gke_config.clients_per_gpu);
    made_.common_.mounts.push_back({.host_path = plan_.engine_root + "/tmp/nvidia-mps",
                                    .container_path = "/tmp/nvidia-mps",
                                    .options = writable_mount,
                                    .why = "the MPS daemon"});
  }

  void add_groups() {
    for (const auto& row : kGroups) {
      if (!(options_.*row.enabled)) continue;
      const auto edits = plan::group_edits(machine_, row.group, plan_);
      if (!edits.ok()) {
        made_.notes_.push_back(edits.error().text());
        continue;
      }
      if (direct_) {
        add_common(*edits);
        continue;
      }
      made_.common_.env[std::string(row.variable)] = "enabled";
      made_.common_cdi_.emplace_back(row.cdi);
    }
  }

  Status add_channels() {
    std::string list;
    for (const auto channel : options_.imex_channels) {
      const auto edits = plan::imex_edits(machine_, static_cast<std::uint32_t>(channel), plan_);
      if (!edits.ok()) {
        if (options_.imex_required) return Error(edits.error()).in("--imex-required");
        made_.notes_.push_back(edits.error().text());
        continue;
      }
      if (wants_nodes()) add_common(*edits);
      list += fmt::format("{}{}", list.empty() ? "" : ",", channel);
      made_.common_cdi_.push_back(fmt::format("nvidia.com/imex-channel={}", channel));
      if (!made_.methods_.volume_mounts) continue;
      made_.common_.mounts.push_back(
          {.host_path = "/dev/null",
           .container_path = fmt::format("/var/run/nvidia-container-devices/imex/{}", channel),
           .options = writable_mount,
           .why = "an IMEX channel by its name"});
    }
    if (!list.empty() && made_.methods_.envvar) made_.common_.env["NVIDIA_IMEX_CHANNELS"] = list;
    return {};
  }

  void add_resource(const model::AdvertisedResource& offer_of) {
    auto& resource = made_.resources_[offer_of.name];
    resource.only_one = offer_of.only_one;
    resource.tokens = offer_of.tokens;
    for (const auto& device : offer_of.devices)
      resource.units.emplace(device.id, offer_of.tokens ? token_unit() : unit_of(device));
    if (offer_of.tokens && direct_)
      made_.notes_.push_back(fmt::format(
          "{}: this engine has no CDI, so our runtime adds the share to a container; run `gantry "
          "runtime configure` on this node and `gantry scheduler --runtime-class=nvidia`, "
          "which sets runtimeClassName in pods that request GPUs; the default runtime stays",
          offer_of.name));
    if (offer_of.tokens) return;
    if (offer_of.use == model::AllocationMode::Shares && !gke_) add_mps(offer_of.name, resource);
  }

  // The directory layout of NVIDIA's MPS daemon.
  void add_mps(const std::string& name, Allocator::Resource& resource) const {
    const auto pipe = fmt::format("/mps/{}/pipe", name);
    resource.env["CUDA_MPS_PIPE_DIRECTORY"] = pipe;
    resource.mounts.push_back(
        {.host_path = fmt::format("{}{}/{}/pipe", plan_.engine_root, options_.mps_root, name),
         .container_path = pipe,
         .options = writable_mount,
         .why = "the MPS daemon's pipes"});
    resource.mounts.push_back(
        {.host_path = fmt::format("{}{}/shm", plan_.engine_root, options_.mps_root),
         .container_path = "/dev/shm",
         .options = writable_mount,
         .why = "the memory that MPS shares"});
  }

  // One unit for all tokens: it belongs to no GPU.
  std::size_t token_unit() {
    const auto [at, is_new] = places_.try_emplace("", made_.units_.size());
    if (is_new) made_.units_.emplace_back();
    return at->second;
  }

  std::size_t unit_of(const model::AdvertisedDevice& device) {
    const auto& id = device.mig.text.empty() ? device.gpu.text : device.mig.text;
    const auto [at, is_new] = places_.try_emplace(id, made_.units_.size());
    if (is_new) made_.units_.push_back(make_unit(id));
    return at->second;
  }

  Allocator::Unit make_unit(const std::string& id) const {
    Allocator::Unit unit;
    const auto device = plan::select_one(machine_, id);
    if (!device.ok()) {
      unit.missing = device.error().text();
      return unit;
    }
    unit.visible = id;
    if (options_.id_strategy == options::IdStrategy::Index) {
      unit.visible = device->mig == nullptr
                         ? fmt::to_string(device->gpu->index)
                         : fmt::format("{}:{}", device->gpu->index, device->mig->index);
    }
    unit.memory_mib = device->gpu->memory_bytes.value_or(0) >> 20U;
    // Without graphics: after a reboot /dev/dri/card1 may belong to another GPU.
    const auto closed = mask_for({model::Capability::Compute, model::Capability::Utility});
    auto edits = plan::device_edits(machine_, *device, closed, plan_);
    if (edits.ok()) {
      unit.own = std::move(edits->nodes);
      if (wants_nodes()) unit.nodes = unit.own;
    } else if (wants_nodes()) {
      unit.missing = edits.error().text();
    }
    return unit;
  }

  void move_nodes(std::vector<model::DeviceNodeEdit>& nodes) const {
    const bool elsewhere = !options_.dev_root.empty() && options_.dev_root != "/";
    for (auto& node : nodes) {
      if (elsewhere) node.host_path = options_.dev_root + node.path;
      // As in GKE's answers; the engine allows mknod of the same node.
      if (gke_) node.permissions = "mrw";
    }
  }

  const model::Inventory& machine_;
  const options::Options& options_;
  const Offer& offer_;
  plan::PlanOptions plan_;
  bool gke_ = false;
  bool direct_ = false;
  std::map<std::string, std::size_t> places_;  // UUID -> index in units_
  Allocator made_;
};

Result<Allocator> Allocator::make(const model::Inventory& machine, const options::Options& options,
                                  const Offer& offer, const AllocatorOptions& setting) {
  return AllocatorBuilder(machine, options, offer, setting).run();
}

}  // namespace gantry::resources
