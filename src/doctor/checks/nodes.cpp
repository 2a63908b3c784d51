// SPDX-License-Identifier: Apache-2.0
// Device nodes: they exist and have the right numbers and mode.
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/checks/expected_nodes.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr std::string_view kNodesNotManaged =
    "The driver's parameter ModifyDeviceFiles is 0: another tool must create the nodes.";

constexpr std::string_view kByHand = "ModifyDeviceFiles is 0: another tool must create the nodes";

std::string shown(const sys::FileInfo& node) {
  return fmt::format("c {}:{} mode {:04o}", node.major, node.minor, node.mode);
}

bool right_numbers(const sys::FileInfo& is, const sys::FileInfo& wanted) {
  return is.kind == sys::FileKind::CharDevice && is.major == wanted.major &&
         is.minor == wanted.minor;
}

// nothing: there is no such group on this machine
Finding judge_missing(const Facts& f, NodeGroup group, std::string_view nothing) {
  std::vector<Evidence> missing;
  std::vector<Evidence> present;
  std::string command;
  for (const auto& expected : expected_nodes(f)) {
    if (expected.group != group) continue;
    const auto node = f.host().device(expected.path);
    if (node.ok()) {
      present.push_back({expected.path, shown(*node)});
      continue;
    }
    missing.push_back({expected.path, "(absent)"});
    command += fmt::format("{}sudo {}", command.empty() ? "" : " && ",
                           describe(MakeNode{expected.path, expected.node}));
  }
  if (missing.empty() && present.empty()) return skip(std::string(nothing));
  if (missing.empty()) {
    return ok(
        fmt::format("{} {}", present.size(), present.size() == 1 ? "node exists" : "nodes exist"),
        present);
  }
  std::vector<std::string> names;
  names.reserve(missing.size());
  for (const auto& node : missing) names.push_back(node.source);
  auto finding =
      fail(fmt::format("missing: {}", join_names(names)), missing)
          .advise(group == NodeGroup::Capability ? "sudo mkdir -p /dev/nvidia-caps && " + command
                                                 : command);
  if (!may_modify_nodes(f)) finding.cause = kNodesNotManaged;
  return finding;
}

Steps make_missing(const Facts& f, NodeGroup group) {
  std::vector<Action> actions;
  if (!may_modify_nodes(f)) return actions;
  for (const auto& expected : expected_nodes(f)) {
    if (expected.group != group || f.host().device(expected.path).ok()) continue;
    if (group == NodeGroup::Capability && actions.empty()) {
      actions.emplace_back(MakeDirectory{"/dev/nvidia-caps"});
    }
    auto node = expected.node;
    if (!is_usable_mode(node.mode) && group != NodeGroup::Capability) node.mode = 0666;
    actions.emplace_back(MakeNode{expected.path, node});
  }
  return actions;
}

template <NodeGroup group>
Steps fix_missing(const Facts& f) {
  return make_missing(f, group);
}

Finding judge_gpu(const Facts& f) {
  return judge_missing(f, NodeGroup::Gpu, "the nvidia module is not loaded");
}
Finding judge_uvm_nodes(const Facts& f) {
  return judge_missing(f, NodeGroup::Uvm, "nvidia_uvm is not loaded: see module.uvm")
      .unless_explained_by("node.missing");
}
Finding judge_modeset(const Facts& f) {
  return judge_missing(f, NodeGroup::Modeset, "nvidia_modeset is not loaded")
      .unless_explained_by("node.missing");
}
Finding judge_capabilities(const Facts& f) {
  return judge_missing(f, NodeGroup::Capability, "MIG is off").unless_explained_by("node.missing");
}
Finding judge_switch(const Facts& f) {
  return judge_missing(f, NodeGroup::Switch, "no NVSwitch in this machine")
      .unless_explained_by("node.missing");
}

Finding judge_numbers(const Facts& f) {
  Tally tally;
  std::string command;
  for (const auto& expected : expected_nodes(f)) {
    const auto node = f.host().device(expected.path);
    if (!node.ok()) continue;
    if (right_numbers(*node, expected.node)) {
      tally.good({expected.path, shown(*node)});
      continue;
    }
    tally.found(fmt::format("{} is {}:{} instead of {}:{}", expected.path, node->major, node->minor,
                            expected.node.major, expected.node.minor),
                {expected.path, shown(*node)});
    command += fmt::format("{}sudo rm {} && sudo {}", command.empty() ? "" : " && ", expected.path,
                           describe(MakeNode{expected.path, expected.node}));
  }
  if (tally.empty()) return skip("there are no nodes to compare");
  if (!tally.any_bad()) return ok("every node has the driver's numbers", tally.well);
  return fail(tally.who(), tally.bad).advise(command);
}

Steps fix_numbers(const Facts& f) {
  std::vector<Action> actions;
  if (!may_modify_nodes(f)) return actions;
  for (const auto& expected : expected_nodes(f)) {
    const auto node = f.host().device(expected.path);
    if (node.ok() && !right_numbers(*node, expected.node)) {
      actions.emplace_back(MakeNode{expected.path, expected.node});
    }
  }
  return actions;
}

std::vector<std::string> stale_nodes(const Facts& f) {
  const auto wanted = expected_nodes(f);
  std::vector<std::string> stale;
  for (const auto& path : f.host().device_paths("/dev")) {
    const std::string_view prefix = "/dev/nvidia";
    if (!path.starts_with(prefix) || path.size() == prefix.size()) continue;
    const char digit = path[prefix.size()];
    if (digit < '0' || digit > '9') continue;
    const bool known = std::any_of(wanted.begin(), wanted.end(),
                                   [&](const auto& expected) { return expected.path == path; });
    if (!known) stale.push_back(path);
  }
  return stale;
}

Finding judge_stale_nodes(const Facts& f) {
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded");
  Tally tally;
  for (const auto& path : stale_nodes(f)) tally.found(path, {path, "no GPU has this minor"});
  if (!tally.any_bad()) return ok("every GPU node belongs to a GPU");
  return info(fmt::format("node without a GPU: {}", tally.who()), tally.bad)
      .advise(tally.command("sudo rm @"));
}

// Only if the minor of every GPU is known, so that no node of a GPU is removed.
Steps fix_stale_nodes(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  const bool all_known =
      !gpus.empty() &&
      std::all_of(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.minor.has_value(); });
  if (!all_known || !may_modify_nodes(f)) return {};
  Steps steps;
  for (const auto& path : stale_nodes(f)) steps.emplace_back(RemoveFile{path});
  return steps;
}

constexpr Check kNodesChecks[] = {
    {.id = "node.missing",
     .reference = "H22",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "/dev/nvidiactl and a node for each GPU exist",
     .reads = "/dev/nvidia*, /proc/devices, /proc/driver/nvidia/gpus/*/information",
     .cause = "Neither udev nor nvidia-modprobe created them. nvidia-smi says that it \"couldn't "
              "communicate with the NVIDIA driver\", or works only as root.",
     .remedy = "sudo nvidia-modprobe -c 0  # or: sudo gantry doctor --fix --only node.missing",
     .judge = judge_gpu,
     .fix = fix_missing<NodeGroup::Gpu>,
     .by_hand = kByHand},
    {.id = "node.uvm",
     .reference = "H23",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "/dev/nvidia-uvm and /dev/nvidia-uvm-tools exist",
     .reads = "/dev/nvidia-uvm*, /proc/devices",
     .cause =
         "The module was loaded without nvidia-modprobe. CUDA fails with 999 \"unknown error\".",
     .remedy = health::kMakeUvmNodes,
     .judge = judge_uvm_nodes,
     .fix = fix_missing<NodeGroup::Uvm>,
     .by_hand = kByHand},
    {.id = "node.modeset",
     .reference = "H22",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "/dev/nvidia-modeset exists if its module is loaded",
     .reads = "/dev/nvidia-modeset, /sys/module/nvidia_modeset",
     .cause = "No tool created the node; graphics in containers (EGL, Vulkan) fail.",
     .remedy = "sudo nvidia-modprobe -m",
     .judge = judge_modeset,
     .fix = fix_missing<NodeGroup::Modeset>,
     .by_hand = kByHand},
    {.id = "node.capabilities",
     .reference = "H22",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "MIG instances have their capability nodes",
     .reads = "/proc/driver/nvidia/capabilities, /dev/nvidia-caps",
     .cause =
         "Instances were created without nvidia-modprobe, or the nodes were lost when the driver "
         "was reloaded. The instance is listed but cannot be opened.",
     .remedy = "sudo nvidia-modprobe -f /proc/driver/nvidia/capabilities/gpu0/mig/gi0/access",
     .judge = judge_capabilities,
     .fix = fix_missing<NodeGroup::Capability>,
     .by_hand = kByHand},
    {.id = "node.nvswitch",
     .reference = "H22",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "NVSwitch nodes exist",
     .reads = "/dev/nvidia-nvswitch*, /proc/devices",
     .cause = "The fabric manager cannot open its switches without them.",
     .remedy = "sudo nvidia-modprobe -s -c 0",
     .judge = judge_switch,
     .fix = fix_missing<NodeGroup::Switch>,
     .by_hand = kByHand},
    {.id = "node.numbers",
     .reference = "H22",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "every node has the driver's device numbers",
     .reads = "/dev/nvidia*, /proc/devices",
     .cause = "Majors other than 195 can change at every boot; these nodes were created before or "
              "copied. "
              "Programs open another driver.",
     .remedy = "sudo rm NODE && sudo nvidia-modprobe -c 0 -u",
     .judge = judge_numbers,
     .fix = fix_numbers,
     .by_hand = kByHand},
    {.id = "node.stale",
     .reference = "H22",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "every GPU node belongs to a GPU",
     .reads = "/dev/nvidia[0-9]*",
     .cause = "A GPU was removed, lost or given to a VM, and its node stayed.",
     .remedy = "sudo rm NODE",
     .judge = judge_stale_nodes,
     .fix = fix_stale_nodes,
     .by_hand = "the minor of a GPU is unknown, or ModifyDeviceFiles is 0"},
};

}  // namespace

std::span<const Check> node_checks() {
  return kNodesChecks;
}

}  // namespace gantry::doctor
