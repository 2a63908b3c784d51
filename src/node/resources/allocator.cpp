// SPDX-License-Identifier: Apache-2.0
#include "node/resources/allocator.hpp"

#include "base/core/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::resources {
namespace {

constexpr std::string_view kVisible = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kDeviceMounts = "/var/run/nvidia-container-devices";
constexpr std::size_t kMaxIdsShown = 8;

Error unknown_id(std::string_view resource, std::string_view id,
                 const std::map<std::string, std::size_t, std::less<>>& known) {
  std::string list;
  std::size_t shown = 0;
  for (const auto& [name, unit] : known) {
    if (shown++ == kMaxIdsShown) break;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  }
  if (known.size() > kMaxIdsShown) list += fmt::format(" and {} more", known.size() - kMaxIdsShown);
  return {
      Errc::NotFound,
      fmt::format(
          "{} has no device `{}`; it has {}. The device is gone or is now offered in another way; "
          "delete the pod, and the kubelet chooses again (`gantry list` shows the devices)",
          resource, id, list.empty() ? "none" : list)};
}

bool has_node(const model::ContainerAllocateResponse& answer, const model::DeviceNodeEdit& node) {
  return std::any_of(answer.nodes.begin(), answer.nodes.end(),
                     [&](const auto& other) { return other.host_path == node.host_path; });
}

}  // namespace

Result<std::vector<std::size_t>> Allocator::units_of(const Resource& resource,
                                                     std::string_view name,
                                                     std::span<const std::string> ids) const {
  std::vector<std::size_t> chosen;
  chosen.reserve(ids.size());
  for (const auto& id : ids) {
    const auto found = resource.units.find(id);
    if (found == resource.units.end()) return unknown_id(name, id, resource.units);
    const auto& unit = units_[found->second];
    if (!unit.missing.empty()) return Error(Errc::NotFound, unit.missing).in(id);
    chosen.push_back(found->second);
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

void Allocator::add_visible_devices(std::span<const std::size_t> chosen,
                                    model::ContainerAllocateResponse& answer) const {
  if (methods_.envvar) {
    std::string list;
    for (const auto unit : chosen) {
      if (!list.empty()) list += ',';
      list += units_[unit].visible;
    }
    answer.env.insert_or_assign(std::string(kVisible), std::move(list));
  }
  if (!methods_.volume_mounts) return;
  answer.env.insert_or_assign(std::string(kVisible), std::string(kDeviceMounts));
  for (const auto unit : chosen) {
    answer.mounts.push_back(
        {.host_path = "/dev/null",
         .container_path = fmt::format("{}/{}", kDeviceMounts, units_[unit].visible),
         .options = {"rbind", "rprivate"},
         .why = "a device by its name"});
  }
}

// Each resource of a container needs its own key: the kubelet keeps only the first value of a key.
void Allocator::add_cdi(std::string_view resource, std::vector<std::string> names,
                        model::ContainerAllocateResponse& answer) const {
  if (!methods_.cri && !methods_.annotations) return;
  names.insert(names.end(), common_cdi_.begin(), common_cdi_.end());
  if (methods_.annotations) {
    Hash hash;
    hash.add(resource);
    for (const auto& name : names) hash.add(name);
    answer.annotations.emplace(
        fmt::format("{}nvidia-device-plugin_{}", annotation_prefix_, hash.text()),
        fmt::format("{}", fmt::join(names, ",")));
  }
  if (methods_.cri) answer.cdi_devices = std::move(names);
}

void Allocator::add_gke_limits(std::size_t taken, const Unit& unit,
                               model::ContainerAllocateResponse& answer) const {
  answer.env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = fmt::to_string(taken * 100 / mps_clients_);
  answer.env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] =
      fmt::format("0={}M", taken * unit.memory_mib / mps_clients_);
}

Result<model::ContainerAllocateResponse> Allocator::answer(std::string_view name,
                                                           std::span<const std::string> ids) const {
  const auto found = resources_.find(name);
  if (found == resources_.end()) {
    return Error(Errc::NotFound, fmt::format("{} is not offered on this node", name));
  }
  const auto& resource = found->second;
  if (ids.empty()) return Error(Errc::Invalid, fmt::format("no device of {} was asked for", name));
  if (resource.only_one && ids.size() > 1) {
    return Error(Errc::Invalid,
                 fmt::format("invalid request for {} of {}: maximum request size for shared "
                             "resources is 1; a second replica would add neither memory nor time",
                             ids.size(), name));
  }
  GANTRY_TRY(const auto chosen, units_of(resource, name, ids));
  if (resource.tokens) return slot_answer(name, ids);
  if (!missing_.empty()) return Error(Errc::NotFound, missing_);
  model::ContainerAllocateResponse answer = common_;
  for (const auto unit : chosen) {
    const auto& nodes = units_[unit].nodes;
    for (const auto& node : nodes) {
      // Instances of one GPU share its node.
      const auto same = [&](const model::DeviceNodeEdit& other) { return other.path == node.path; };
      if (std::none_of(answer.nodes.begin(), answer.nodes.end(), same))
        answer.nodes.push_back(node);
    }
  }
  add_visible_devices(chosen, answer);
  std::vector<std::string> names;
  names.reserve(chosen.size() + common_cdi_.size());
  for (const auto unit : chosen) names.push_back("nvidia.com/gpu=" + units_[unit].visible);
  add_cdi(name, std::move(names), answer);
  for (const auto& [key, value] : resource.env) answer.env.insert_or_assign(key, value);
  answer.mounts.insert(answer.mounts.end(), resource.mounts.begin(), resource.mounts.end());
  if (mps_clients_ > 0) add_gke_limits(ids.size(), units_[chosen.front()], answer);
  return answer;
}

// Without the common part of the answers: the driver's files come with the slot, behind the fence.
// An engine without CDI gets the slot through the variable that its NVIDIA runtime reads.
model::ContainerAllocateResponse Allocator::slot_answer(std::string_view resource,
                                                        std::span<const std::string> ids) const {
  model::ContainerAllocateResponse answer;
  auto name = fmt::format("{}={}", kShareResource, slot_name(resource, ids));
  if (methods_.cri || methods_.annotations) {
    add_cdi(resource, {std::move(name)}, answer);
  } else {
    answer.env.emplace(kVisible, std::move(name));
  }
  return answer;
}

Status Allocator::check_stored_slot(std::string_view resource, std::span<const std::string> ids,
                                    const model::ContainerAllocateResponse& earlier) const {
  const auto name = fmt::format("{}={}", kShareResource, slot_name(resource, ids));
  const auto named = [&](const std::string& text) { return text.find(name) != text.npos; };
  const auto holds = [&](const auto& entry) { return named(entry.second); };
  if (earlier.nodes.empty() &&
      (std::any_of(earlier.cdi_devices.begin(), earlier.cdi_devices.end(), named) ||
       std::any_of(earlier.annotations.begin(), earlier.annotations.end(), holds) ||
       std::any_of(earlier.env.begin(), earlier.env.end(), holds)))
    return {};
  return Error(Errc::Denied,
               fmt::format("the container was admitted when {} was not a share, so it has no slot. "
                           "Delete the pod: its replacement gets a slot",
                           resource));
}

// A node of the earlier answer that does not belong to these units: the node of another unit, or,
// if the answer has no node of a unit, what it has instead.
std::string Allocator::unexpected_node(std::span<const std::size_t> chosen,
                                       const model::ContainerAllocateResponse& earlier) const {
  std::set<std::string_view> right;
  for (const auto unit : chosen) {
    for (const auto& node : units_[unit].own) right.insert(node.host_path);
  }
  for (const auto& unit : units_) {
    for (const auto& node : unit.own) {
      if (!right.contains(node.host_path) && has_node(earlier, node))
        return fmt::format("{}, which is now the node of {}", node.host_path, unit.visible);
    }
  }
  for (const auto unit : chosen) {
    const auto& own = units_[unit].own;
    const auto is_there = [&](const auto& node) { return has_node(earlier, node); };
    if (!own.empty() && std::none_of(own.begin(), own.end(), is_there))
      return fmt::format("nodes, but not {}", own.front().host_path);
  }
  return "";
}

Status Allocator::check_stored_answer(std::string_view name, std::span<const std::string> ids,
                                      const model::ContainerAllocateResponse& earlier) const {
  const auto found = resources_.find(name);
  if (found != resources_.end() && found->second.tokens)
    return check_stored_slot(name, ids, earlier);
  if (earlier.nodes.empty() || found == resources_.end()) return {};
  const auto chosen = units_of(found->second, name, ids);
  if (!chosen.ok()) return {};
  const auto strange = unexpected_node(*chosen, earlier);
  if (strange.empty()) return {};
  return Error(
      Errc::Denied,
      fmt::format("for {} the container was given {}: the numbers of the GPUs changed after it was "
                  "admitted. Delete the pod: its replacement gets the right nodes",
                  fmt::join(ids, ", "), strange));
}

}  // namespace gantry::resources
