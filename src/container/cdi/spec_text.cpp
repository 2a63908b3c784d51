// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/spec_text.hpp"

#include "container/cdi/output_tree_internal.hpp"
#include "container/cdi/version.hpp"

namespace gantry::cdi {
namespace {

template <class Items, class Convert>
OutputTree list_of(const Items& items, Convert convert) {
  auto list = OutputTree::list();
  for (const auto& item : items) list.always("", convert(item));
  return list;
}

OutputTree flag() {
  return {OutputTree::Kind::Literal, "true", {}, ""};
}

OutputTree tree_of(const DeviceNode& node) {
  OutputTree tree;
  tree.always("path", OutputTree::of(node.path))
      .put("hostPath", node.host_path)
      .put("type", node.type)
      .put("major", node.major)
      .put("minor", node.minor)
      .put("fileMode", node.file_mode)
      .put("permissions", node.permissions)
      .put("uid", node.uid)
      .put("gid", node.gid);
  return tree;
}

OutputTree tree_of(const NetDevice& device) {
  OutputTree tree;
  tree.always("hostInterfaceName", OutputTree::of(device.host_interface_name))
      .always("name", OutputTree::of(device.name));
  return tree;
}

OutputTree tree_of(const Hook& hook) {
  OutputTree tree;
  tree.always("hookName", OutputTree::of(hook.hook_name))
      .always("path", OutputTree::of(hook.path))
      .put("args", hook.args)
      .put("env", hook.env)
      .put("timeout", hook.timeout);
  return tree;
}

OutputTree tree_of(const Mount& mount) {
  OutputTree tree;
  tree.always("hostPath", OutputTree::of(mount.host_path))
      .always("containerPath", OutputTree::of(mount.container_path))
      .put("options", mount.options)
      .put("type", mount.type);
  return tree;
}

OutputTree tree_of(const IntelRdt& rdt) {
  OutputTree tree;
  tree.put("closID", rdt.clos_id)
      .put("l3CacheSchema", rdt.l3_cache_schema)
      .put("memBwSchema", rdt.mem_bw_schema)
      .put("schemata", rdt.schemata);
  if (rdt.enable_monitoring) tree.always("enableMonitoring", flag());
  if (rdt.enable_cmt) tree.always("enableCMT", flag());
  if (rdt.enable_mbm) tree.always("enableMBM", flag());
  return tree;
}

OutputTree tree_of(const Edits& edits) {
  const auto convert = [](const auto& item) { return tree_of(item); };
  OutputTree tree;
  tree.put("env", edits.env)
      .put("deviceNodes", list_of(edits.device_nodes, convert))
      .put("netDevices", list_of(edits.net_devices, convert))
      .put("hooks", list_of(edits.hooks, convert))
      .put("mounts", list_of(edits.mounts, convert));
  if (edits.intel_rdt) tree.always("intelRdt", tree_of(*edits.intel_rdt));
  return tree.put("additionalGids", list_of(edits.additional_gids, [](std::uint32_t gid) {
                    return OutputTree{OutputTree::Kind::Literal, fmt::to_string(gid), {}, ""};
                  }));
}

OutputTree tree_of(const Annotations& annotations) {
  OutputTree tree;
  for (const auto& [key, value] : annotations) tree.always(key, OutputTree::of(value));
  return tree;
}

OutputTree tree_of(const Device& device) {
  OutputTree tree;
  tree.always("name", OutputTree::of(device.name))
      .put("annotations", tree_of(device.annotations))
      .always("containerEdits", tree_of(device.edits));
  return tree;
}

OutputTree tree_of(const Spec& spec) {
  const auto version = spec.version.empty() ? to_string(lowest_version(spec)) : spec.version;
  OutputTree tree;
  tree.always("cdiVersion", OutputTree::of(version))
      .always("kind", OutputTree::of(spec.kind))
      .put("annotations", tree_of(spec.annotations))
      .always("devices", list_of(spec.devices, [](const Device& d) { return tree_of(d); }))
      .put("containerEdits", tree_of(spec.edits));
  return tree;
}

}  // namespace

Format format_of(std::string_view path) {
  return path.ends_with(".json") ? Format::Json : Format::Yaml;
}

std::string to_text(const Spec& spec, Format format) {
  const auto tree = tree_of(spec);
  return format == Format::Json ? print_json(tree) : print_yaml(tree);
}

}  // namespace gantry::cdi
