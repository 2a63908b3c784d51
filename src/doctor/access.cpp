// SPDX-License-Identifier: Apache-2.0
// Who may open the device nodes.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"
#include "doctor/document.hpp"
#include "doctor/expected_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr std::string_view kToolkitConfig = "/etc/nvidia-container-runtime/config.toml";

struct Present {
  ExpectedNode wanted;
  sys::FileInfo is;
};

// Capability nodes have modes of their own: 0400 on purpose.
std::vector<Present> present_nodes(const Facts& f) {
  std::vector<Present> nodes;
  for (const auto& expected : expected_nodes(f)) {
    if (expected.group == NodeGroup::Capability) continue;
    const auto node = f.host().device(expected.path);
    if (node.ok()) nodes.push_back({expected, *node});
  }
  return nodes;
}

Evidence owner(const Facts& f, const Present& node) {
  return {node.wanted.path, fmt::format("mode {:04o} uid {} group {}", node.is.mode, node.is.uid,
                                        f.group_name(node.is.gid))};
}

std::uint32_t wanted_mode(const ExpectedNode& node) {
  return sane_mode(node.node.mode) ? node.node.mode : 0666;
}

Finding judge_mode(const Facts& f) {
  const auto nodes = present_nodes(f);
  if (nodes.empty()) return skip("there are no nodes");
  std::vector<Evidence> read;
  for (const auto& node : nodes) {
    read.push_back(owner(f, node));
    const auto wanted = wanted_mode(node.wanted);
    const auto remedy = fmt::format("sudo chmod {:04o} {}", wanted, node.wanted.path);
    if (!sane_mode(node.is.mode)) {
      return fail(fmt::format("{} has mode {:04o}: nobody can use it", node.wanted.path,
                              node.is.mode),
                  {read.back()})
          .advise(remedy);
    }
    if ((node.is.mode & wanted) != wanted) {
      return warn(fmt::format("{} has mode {:04o}, the driver asks for {:04o}", node.wanted.path,
                              node.is.mode, wanted),
                  {read.back(),
                   {"/proc/driver/nvidia/params DeviceFileMode",
                    fmt::format("{} (decimal)", wanted)}})
          .because("A udev rule or a person narrowed it.")
          .advise(remedy);
    }
  }
  return ok("every node has the mode that the driver asks for", read);
}

// Only unusable nodes: a narrower but sane mode may be somebody's wish.
std::vector<Action> fix_mode(const Facts& f) {
  std::vector<Action> actions;
  if (!may_modify_nodes(f)) return actions;
  for (const auto& node : present_nodes(f)) {
    if (!sane_mode(node.is.mode)) {
      actions.emplace_back(SetMode{node.wanted.path, wanted_mode(node.wanted)});
    }
  }
  return actions;
}

Finding judge_mode_option(const Facts& f) {
  const auto mode = f.param_number("DeviceFileMode");
  if (!mode) return skip("the driver's parameters cannot be read");
  const std::vector<Evidence> read{
      {"/proc/driver/nvidia/params", fmt::format("DeviceFileMode: {} = {:04o}", *mode, *mode)}};
  if (*mode <= 0777 && sane_mode(static_cast<std::uint32_t>(*mode))) {
    return ok(fmt::format("new nodes get mode {:04o}", *mode), read);
  }
  // 666 decimal was meant as 0666: read the digits as octal and say what they are in decimal.
  const auto meant = parse_u64(fmt::to_string(*mode), 8).value_or(0666);
  return fail(fmt::format("DeviceFileMode {} means {:04o}, not {}", *mode, *mode, *mode), read)
      .advise(fmt::format("sudo sed -i 's/NVreg_DeviceFileMode={}/NVreg_DeviceFileMode={}/' "
                          "/etc/modprobe.d/*.conf && sudo update-initramfs -u && sudo reboot",
                          *mode, meant));
}

std::string toolkit_user(const Facts& f) {
  const auto document = parse_toml(f.host().read(kToolkitConfig).value_or(""));
  if (!document.ok()) return "";
  return document->at("nvidia-container-cli").at("user").text();
}

Finding judge_group(const Facts& f) {
  auto nodes = present_nodes(f);
  if (nodes.empty()) return skip("there are no nodes");
  // The GPUs' own nodes are the better example.
  std::stable_partition(nodes.begin(), nodes.end(),
                        [](const Present& node) { return node.wanted.group == NodeGroup::Gpu; });
  const auto closed = std::find_if(nodes.begin(), nodes.end(), [](const Present& node) {
    return sane_mode(node.is.mode) && (node.is.mode & 0006U) != 0006U;
  });
  if (closed == nodes.end()) return ok("everybody may open the nodes", {owner(f, nodes.front())});
  const auto group = f.group_name(closed->is.gid);
  const auto user = toolkit_user(f);
  std::vector<Evidence> read{
      owner(f, *closed),
      {std::string(kToolkitConfig), user.empty() ? "user not set" : "user = " + user}};
  const auto colon = user.find(':');
  const bool helped =
      colon != std::string::npos &&
      (user.substr(colon + 1) == group || user.substr(colon + 1) == fmt::to_string(closed->is.gid));
  if (helped) return ok(fmt::format("the container toolkit runs as {}", user), read);
  const bool toolkit = f.host().exists(kToolkitConfig) || f.installed("nvidia-container-cli");
  const auto summary = fmt::format("only group {} may open {}", group, closed->wanted.path);
  const auto remedy = fmt::format(
      "in {} under [nvidia-container-cli]: user = \"root:{}\"; for people: sudo usermod -aG {} "
      "$USER; in containers: --group-add {}",
      kToolkitConfig, group, group, closed->is.gid);
  return (toolkit ? fail(summary, read) : warn(summary, read)).advise(remedy);
}

bool may_open(const Caller& caller, const sys::FileInfo& node) {
  if (caller.uid == 0) return true;
  if (caller.uid == node.uid) return (node.mode & 0600U) == 0600U;
  const bool member =
      std::find(caller.groups.begin(), caller.groups.end(), node.gid) != caller.groups.end();
  return member ? (node.mode & 0060U) == 0060U : (node.mode & 0006U) == 0006U;
}

Finding judge_caller(const Facts& f) {
  const auto nodes = present_nodes(f);
  if (nodes.empty()) return skip("there are no nodes");
  for (const auto& node : nodes) {
    if (may_open(f.caller(), node.is)) continue;
    const auto group = f.group_name(node.is.gid);
    return warn(fmt::format("you (uid {}) may not open {}", f.caller().uid, node.wanted.path),
                {owner(f, node)})
        .advise(
            (node.is.mode & 0060U) == 0060U
                ? fmt::format("sudo usermod -aG {} $USER  # then log in again", group)
                : fmt::format("sudo chmod {:04o} {}", wanted_mode(node.wanted), node.wanted.path));
  }
  return ok(fmt::format("uid {} may open every node", f.caller().uid), {owner(f, nodes.front())});
}

std::string char_link(const sys::FileInfo& node) {
  return fmt::format("/dev/char/{}:{}", node.major, node.minor);
}

Finding judge_char_links(const Facts& f) {
  if (!f.host().exists("/run/systemd/system")) return skip("systemd does not run this machine");
  std::vector<Evidence> missing;
  for (const auto& node : present_nodes(f)) {
    const auto link = char_link(node.is);
    const auto target = f.host().link(link);
    if (!target.ok()) missing.push_back({link, "(absent)"});
  }
  if (present_nodes(f).empty()) return skip("there are no nodes");
  if (missing.empty()) return ok("every node has its link in /dev/char");
  return warn(fmt::format("{} node(s) have no link in /dev/char", missing.size()), missing);
}

std::vector<Action> fix_char_links(const Facts& f) {
  std::vector<Action> actions;
  for (const auto& node : present_nodes(f)) {
    const auto link = char_link(node.is);
    if (f.host().link(link).ok()) continue;
    if (actions.empty()) actions.emplace_back(MakeDirectory{"/dev/char"});
    actions.emplace_back(MakeSymlink{link, ".." + node.wanted.path.substr(4)});
  }
  return actions;
}

constexpr Check kChecks[] = {
    {.id = "node.mode",
     .reference = "H24",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "nodes have the mode that the driver asks for",
     .reads = "/dev/nvidia*, /proc/driver/nvidia/params",
     .cause = "The mode was written in the wrong base: ls shows c-w--wx-wT for 666 taken as a "
              "decimal number.",
     .remedy = "sudo chmod 0666 /dev/nvidia*",
     .judge = judge_mode,
     .fix = fix_mode},
    {.id = "node.mode-option",
     .reference = "H24",
     .area = Area::Nodes,
     .title = "the driver's DeviceFileMode makes sense",
     .reads = "/proc/driver/nvidia/params",
     .cause =
         "NVreg_DeviceFileMode is a decimal number: 438 is 0666, 432 is 0660. Written as 666 it "
         "gives c-w--wx-wT.",
     .remedy = "set NVreg_DeviceFileMode=0666 (octal with its 0) or 438 in /etc/modprobe.d",
     .judge = judge_mode_option},
    {.id = "node.group",
     .reference = "H24",
     .area = Area::Nodes,
     .title = "the container toolkit's helper may open the nodes",
     .reads = "/dev/nvidia*, /etc/nvidia-container-runtime/config.toml, /etc/group",
     .cause =
         "The nodes are for one group only (0660). nvidia-container-cli, even started by root, "
         "asks the driver from a process of user and group 65534 and finds no GPU: "
         "\"initialization error: cuda error: no cuda-capable device is detected\".",
     .remedy = "in /etc/nvidia-container-runtime/config.toml under [nvidia-container-cli]: user = "
               "\"root:video\"",
     .judge = judge_group},
    {.id = "node.caller",
     .reference = "H24",
     .area = Area::Nodes,
     .title = "you may open the nodes",
     .reads = "/dev/nvidia*, your user and groups",
     .cause =
         "You are not in the nodes' group: NVML says \"Insufficient Permissions\", CUDA 100 \"no "
         "device\".",
     .remedy = "sudo usermod -aG video $USER  # then log in again",
     .judge = judge_caller},
    {.id = "node.char-links",
     .reference = "C4",
     .area = Area::Nodes,
     .fix_class = FixClass::Automatic,
     .title = "nodes have their links in /dev/char",
     .reads = "/dev/char, /run/systemd/system",
     .cause =
         "systemd rebuilds a container's device rules from /dev/char on daemon-reload; without "
         "the links GPUs vanish from running containers (\"Failed to initialize NVML: Unknown "
         "Error\").",
     .remedy = "sudo nvidia-ctk system create-dev-char-symlinks --create-all",
     .judge = judge_char_links,
     .fix = fix_char_links},
};

}  // namespace

std::span<const Check> access_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
