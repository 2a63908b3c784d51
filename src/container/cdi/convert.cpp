// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/convert.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cdi {
namespace {

DeviceNode node_from(const model::DeviceNodeEdit& node, DeviceNumbers numbers) {
  DeviceNode out{.path = node.path, .type = node.type, .permissions = node.permissions};
  if (node.host_path != node.path) out.host_path = node.host_path;
  if (numbers == DeviceNumbers::Write) {
    out.major = node.major;
    out.minor = node.minor;
    if (out.major && out.type.empty()) out.type = "c";
    out.file_mode = node.mode;
    out.uid = node.uid;
    out.gid = node.gid;
  }
  return out;
}

template <class Wide>
std::optional<std::uint32_t> narrow(const std::optional<Wide>& number) {
  if (!number || *number < 0 || *number > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

model::DeviceNodeEdit node_to(const DeviceNode& node, std::string_view why) {
  return {.path = node.path,
          .host_path = node.host_path.empty() ? node.path : node.host_path,
          .major = narrow(node.major),
          .minor = narrow(node.minor),
          .mode = node.file_mode,
          .gid = node.gid,
          .permissions = node.permissions.empty() ? "rwm" : node.permissions,
          .why = std::string(why),
          .type = node.type,
          .uid = node.uid};
}

template <class Item>
void append_new(std::vector<Item>& list, const std::vector<Item>& more) {
  for (const auto& item : more) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }
}

template <class Item>
void remove_common(std::vector<Item>& list, const std::vector<Item>& common) {
  std::erase_if(list, [&](const Item& item) {
    return std::find(common.begin(), common.end(), item) != common.end();
  });
}

Edits without(Edits edits, const Edits& common) {
  remove_common(edits.env, common.env);
  remove_common(edits.device_nodes, common.device_nodes);
  remove_common(edits.net_devices, common.net_devices);
  remove_common(edits.hooks, common.hooks);
  remove_common(edits.mounts, common.mounts);
  remove_common(edits.additional_gids, common.additional_gids);
  return edits;
}

}  // namespace

ConvertedEdits from_container_edits(const model::ContainerEdits& edits, DeviceNumbers numbers) {
  ConvertedEdits out;
  out.edits.env = edits.env;
  out.edits.additional_gids = edits.additional_gids;
  for (const auto& node : edits.nodes) out.edits.device_nodes.push_back(node_from(node, numbers));
  for (const auto& mount : edits.mounts) {
    out.edits.mounts.push_back({mount.host_path, mount.container_path, mount.options, mount.type});
  }
  for (const auto& hook : edits.hooks) {
    out.edits.hooks.push_back({hook.stage, hook.path, hook.args, hook.env, hook.timeout});
  }
  for (const auto& file : edits.files) {
    out.dropped.push_back(fmt::format("{} is not written: CDI cannot create files", file.path));
  }
  if (!edits.libraries.empty() && edits.hooks.empty()) {
    out.dropped.push_back(fmt::format(
        "{} libraries are not added to the image's ld.so.cache: CDI needs a hook for that",
        edits.libraries.size()));
  }
  return out;
}

model::ContainerEdits to_container_edits(const Edits& edits, std::string_view why) {
  model::ContainerEdits out;
  out.env = edits.env;
  out.additional_gids = edits.additional_gids;
  for (const auto& node : edits.device_nodes) out.nodes.push_back(node_to(node, why));
  for (const auto& mount : edits.mounts) {
    out.mounts.push_back({.host_path = mount.host_path,
                          .container_path = mount.container_path,
                          .options = mount.options,
                          .why = std::string(why),
                          .type = mount.type});
  }
  for (const auto& hook : edits.hooks) {
    out.hooks.push_back({.stage = hook.hook_name,
                         .path = hook.path,
                         .args = hook.args,
                         .env = hook.env,
                         .why = std::string(why),
                         .timeout = hook.timeout});
  }
  for (const auto& device : edits.net_devices) {
    out.notes.push_back(fmt::format("{}: network device {} is not moved into the container", why,
                                    device.host_interface_name));
  }
  if (edits.intel_rdt) out.notes.push_back(fmt::format("{}: intelRdt is not applied", why));
  return out;
}

void append(Edits& edits, const Edits& more) {
  append_new(edits.env, more.env);
  append_new(edits.device_nodes, more.device_nodes);
  append_new(edits.net_devices, more.net_devices);
  append_new(edits.hooks, more.hooks);
  append_new(edits.mounts, more.mounts);
  append_new(edits.additional_gids, more.additional_gids);
  if (more.intel_rdt) edits.intel_rdt = more.intel_rdt;
}

void remove_duplicates(Spec& spec) {
  for_each_edits(spec, [](Edits& edits) {
    Edits once;
    append(once, edits);
    edits = std::move(once);
  });
  for (auto& device : spec.devices) {
    auto own = without(device.edits, spec.edits);
    if (!own.empty()) device.edits = std::move(own);
  }
}

}  // namespace gantry::cdi
