// SPDX-License-Identifier: Apache-2.0
// Who may open the device nodes.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/checks/expected_nodes.hpp"
#include "doctor/engine/document.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

namespace gantry::doctor {
namespace {

struct PresentNode {
  ExpectedNode wanted;
  sys::FileInfo is;
};

// Capability nodes have their own mode: 0400 on purpose.
std::vector<PresentNode> present_nodes(const Facts& f) {
  std::vector<PresentNode> nodes;
  for (const auto& expected : expected_nodes(f)) {
    if (expected.group == NodeGroup::Capability) continue;
    const auto node = f.host().device(expected.path);
    if (node.ok()) nodes.push_back({expected, *node});
  }
  return nodes;
}

Evidence owner(const Facts& f, const PresentNode& node) {
  return {node.wanted.path, fmt::format("mode {:04o} uid {} group {}", node.is.mode, node.is.uid,
                                        f.group_name(node.is.gid))};
}

std::uint32_t wanted_mode(const ExpectedNode& node) {
  return is_usable_mode(node.node.mode) ? node.node.mode : 0666;
}

Finding judge_mode(const Facts& f) {
  const auto nodes = present_nodes(f);
  if (nodes.empty()) return skip("there are no nodes");
  Tally tally;
  bool unusable = false;
  std::string commands;
  for (const auto& node : nodes) {
    const auto wanted = wanted_mode(node.wanted);
    if (is_usable_mode(node.is.mode) && (node.is.mode & wanted) == wanted) {
      tally.good(owner(f, node));
      continue;
    }
    unusable = unusable || !is_usable_mode(node.is.mode);
    tally.found(fmt::format("{} ({:04o}, not {:04o})", node.wanted.path, node.is.mode, wanted),
                owner(f, node));
    commands += fmt::format("{}sudo chmod {:04o} {}", commands.empty() ? "" : " && ", wanted,
                            node.wanted.path);
  }
  if (!tally.any_bad()) return ok("every node has the mode that the driver asks for", tally.well);
  if (unusable) {
    return fail(fmt::format("unusable mode: {}", tally.who()), tally.bad).advise(commands);
  }
  return warn(fmt::format("stricter mode than the driver asks for: {}", tally.who()), tally.bad)
      .because("A udev rule or an administrator made the mode stricter.")
      .advise(commands);
}

Steps fix_mode(const Facts& f) {
  Steps actions;
  if (!may_modify_nodes(f)) return actions;
  for (const auto& node : present_nodes(f)) {
    const auto wanted = wanted_mode(node.wanted);
    if (!is_usable_mode(node.is.mode) || (node.is.mode & wanted) != wanted) {
      actions.emplace_back(SetMode{node.wanted.path, wanted});
    }
  }
  return actions;
}

// 666 was meant as octal 0666: reads the digits as octal and returns the decimal number.
std::uint64_t meant_mode(std::uint64_t mode) {
  return parse_u64(fmt::to_string(mode), 8).value_or(0666);
}

Finding judge_mode_option(const Facts& f) {
  const auto mode = f.param_number("DeviceFileMode");
  if (!mode) return skip("the driver's parameters cannot be read");
  const std::vector<Evidence> read{
      {"/proc/driver/nvidia/params", fmt::format("DeviceFileMode: {} = {:04o}", *mode, *mode)}};
  if (*mode <= 0777 && is_usable_mode(static_cast<std::uint32_t>(*mode))) {
    return ok(fmt::format("new nodes get mode {:04o}", *mode), read);
  }
  const auto meant = meant_mode(*mode);
  return fail(fmt::format("DeviceFileMode {} means {:04o}, not {}", *mode, *mode, *mode), read)
      .advise(fmt::format("sudo sed -i 's/NVreg_DeviceFileMode={}/NVreg_DeviceFileMode={}/' "
                          "/etc/modprobe.d/*.conf && sudo update-initramfs -u && sudo reboot",
                          *mode, meant));
}

Steps fix_mode_option(const Facts& f) {
  const auto mode = f.param_number("DeviceFileMode");
  if (!mode) return {};
  const auto wrong = fmt::format("NVreg_DeviceFileMode={}", *mode);
  const auto right = fmt::format("NVreg_DeviceFileMode={}", meant_mode(*mode));
  Steps steps;
  std::set<std::string> files;
  for (const auto& line : f.modprobe_lines()) {
    if (!contains(line.value, wrong) || !files.insert(line.source).second) continue;
    add(steps, rewrite_lines(f, line.source, right, [&](std::string& text) {
          const auto at = text.find(wrong);
          if (at != std::string::npos) text.replace(at, wrong.size(), right);
        }));
  }
  if (!steps.empty()) add(steps, rebuild_initramfs(f));
  return steps;
}

std::string toolkit_user(const Facts& f) {
  const auto document = parse_toml(f.host().read(kToolkitConfig).value_or(""));
  if (!document.ok()) return "";
  return document->at("nvidia-container-cli").at("user").text();
}

// A node that not every user may open; prefers a GPU's node as the example.
std::optional<PresentNode> closed_node(const Facts& f) {
  auto nodes = present_nodes(f);
  std::stable_partition(nodes.begin(), nodes.end(), [](const PresentNode& node) {
    return node.wanted.group == NodeGroup::Gpu;
  });
  const auto closed = std::find_if(nodes.begin(), nodes.end(), [](const PresentNode& node) {
    return is_usable_mode(node.is.mode) && (node.is.mode & 0006U) != 0006U;
  });
  if (closed == nodes.end()) return std::nullopt;
  return *closed;
}

Finding judge_node_group(const Facts& f) {
  const auto nodes = present_nodes(f);
  if (nodes.empty()) return skip("there are no nodes");
  const auto closed = closed_node(f);
  if (!closed) return ok("every user may open the nodes", {owner(f, nodes.front())});
  const auto group = f.group_name(closed->is.gid);
  const auto user = toolkit_user(f);
  const std::vector<Evidence> read{
      owner(f, *closed),
      {std::string(kToolkitConfig), user.empty() ? "user not set" : "user = " + user}};
  const auto colon = user.find(':');
  const bool helped =
      colon != std::string::npos &&
      (user.substr(colon + 1) == group || user.substr(colon + 1) == fmt::to_string(closed->is.gid));
  if (helped) {
    return info(fmt::format("containers of root work (the toolkit runs as {}), containers of other "
                            "users need the group",
                            user),
                read)
        .because("Only one group may open the nodes, and the toolkit is configured for it.")
        .advise(fmt::format("podman or docker run --group-add {} ...", closed->is.gid));
  }
  return fail(fmt::format("only group {} may open {}", group, closed->wanted.path), read)
      .advise(
          fmt::format("sudo gantry config set nvidia-container-cli.user=root:{0}  "
                      "# user = \"root:{0}\" in {1}; for people: sudo usermod -aG {0} $USER; in "
                      "containers: --group-add {2}",
                      group, kToolkitConfig, closed->is.gid));
}

bool sets_user(std::string_view line) {
  line = trim(line);
  if (line.starts_with('#')) line = trim(line.substr(1));
  if (!line.starts_with("user")) return false;
  return trim(line.substr(4)).starts_with('=');
}

// The toolkit's configuration with that user. Replaces an existing line, commented out or not;
// otherwise adds a line to its section.
std::string with_user(std::string_view text, const std::string& setting) {
  constexpr std::string_view kSection = "[nvidia-container-cli]";
  std::string out;
  std::size_t after_header = std::string::npos;
  bool inside = false;
  bool done = false;
  for (auto line : lines(text)) {
    const auto word = trim(line);
    if (word.starts_with('[')) inside = word == kSection;
    const bool here = inside && !done && sets_user(line);
    out += here ? setting : std::string(line);
    out += '\n';
    done = done || here;
    if (word == kSection) after_header = out.size();
  }
  if (done) return out;
  if (after_header != std::string::npos) return out.insert(after_header, setting + "\n");
  return fmt::format("{}{}{}\n{}\n", out, out.empty() ? "" : "\n", kSection, setting);
}

Steps fix_node_group(const Facts& f) {
  const auto closed = closed_node(f);
  const auto text = f.host().read(kToolkitConfig).value_or("");
  if (!closed || (closed->is.mode & 0060U) != 0060U || !parse_toml(text).ok()) return {};
  const auto setting = fmt::format("user = \"root:{}\"", f.group_name(closed->is.gid));
  return {WriteFile{std::string(kToolkitConfig), with_user(text, setting), setting}};
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
  Tally tally;
  std::set<std::string> commands;
  for (const auto& node : nodes) {
    if (may_open(f.caller(), node.is)) {
      tally.good(owner(f, node));
      continue;
    }
    tally.found(node.wanted.path, owner(f, node));
    commands.insert(
        (node.is.mode & 0060U) == 0060U
            ? fmt::format("sudo usermod -aG {} $USER", f.group_name(node.is.gid))
            : fmt::format("sudo chmod {:04o} {}", wanted_mode(node.wanted), node.wanted.path));
  }
  if (!tally.any_bad()) {
    return ok(fmt::format("uid {} may open every node", f.caller().uid), tally.well);
  }
  return warn(fmt::format("you (uid {}) may not open {}", f.caller().uid, tally.who()), tally.bad)
      .advise(fmt::format("{}  # then log in again", fmt::join(commands, " && ")));
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
  return warn(fmt::format("{} {} no link in /dev/char", missing.size(),
                          missing.size() == 1 ? "node has" : "nodes have"),
              missing);
}

Steps fix_char_links(const Facts& f) {
  Steps actions;
  for (const auto& node : present_nodes(f)) {
    const auto link = char_link(node.is);
    if (f.host().link(link).ok()) continue;
    if (actions.empty()) actions.emplace_back(MakeDirectory{"/dev/char"});
    actions.emplace_back(MakeSymlink{link, ".." + node.wanted.path.substr(4)});
  }
  return actions;
}

constexpr Check kAccessChecks[] = {
    {.id = "node.mode",
     .reference = "H24",
     .area = Area::Nodes,
     .fix_class = FixClass::OnRequest,
     .title = "nodes have the mode that the driver asks for",
     .reads = "/dev/nvidia*, /proc/driver/nvidia/params",
     .cause = "The mode was written in the wrong base: ls shows c-w--wx-wT for 666 taken as a "
              "decimal number.",
     .remedy = "sudo chmod 0666 /dev/nvidia*",
     .judge = judge_mode,
     .fix = fix_mode,
     .by_hand = "ModifyDeviceFiles is 0: the driver does not manage the nodes"},
    {.id = "node.mode-option",
     .reference = "H24",
     .area = Area::Nodes,
     .fix_class = FixClass::OnRequest,
     .title = "the driver's DeviceFileMode is a usable mode",
     .reads = "/proc/driver/nvidia/params",
     .cause =
         "NVreg_DeviceFileMode is a decimal number: 438 is 0666, 432 is 0660. Written as 666 it "
         "gives c-w--wx-wT.",
     .remedy = "set NVreg_DeviceFileMode=0666 (octal with its 0) or 438 in /etc/modprobe.d",
     .judge = judge_mode_option,
     .fix = fix_mode_option,
     .by_hand = "modprobe's configuration does not set it: look at the kernel's command line",
     .afterwards = "reboot; for the nodes that exist: sudo gantry doctor --fix=node.mode"},
    {.id = "node.group",
     .reference = "H24",
     .area = Area::Nodes,
     .fix_class = FixClass::OnRequest,
     .title = "the container toolkit's helper may open the nodes",
     .reads = "/dev/nvidia*, /etc/nvidia-container-runtime/config.toml, /etc/group",
     .cause = "Only one group may open the nodes (0660). nvidia-container-cli, even when root "
              "starts it, "
              "asks the driver as user and group 65534 and finds no GPU: "
              "\"initialization error: cuda error: no cuda-capable device is detected\".",
     .remedy = "sudo gantry config set nvidia-container-cli.user=root:video  "
               "# user = \"root:video\"",
     .judge = judge_node_group,
     .fix = fix_node_group,
     .by_hand =
         "the group may not write to the nodes either, or the toolkit's configuration is not "
         "TOML",
     .afterwards = "users: sudo usermod -aG GROUP USER; other users' containers: --group-add"},
    {.id = "node.caller",
     .reference = "H24",
     .area = Area::Nodes,
     .fix_class = FixClass::OnRequest,
     .title = "you may open the nodes",
     .reads = "/dev/nvidia*, your user and groups",
     .cause =
         "You are not in the nodes' group: NVML says \"Insufficient Permissions\", CUDA 100 \"no "
         "device\".",
     .remedy = "sudo usermod -aG video $USER  # then log in again",
     .judge = judge_caller,
     .by_hand = "the owner of this machine decides who may use the GPUs"},
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
     .remedy = "sudo gantry doctor --fix node.char-links",
     .judge = judge_char_links,
     .fix = fix_char_links},
};

}  // namespace

std::span<const Check> access_checks() {
  return kAccessChecks;
}

}  // namespace gantry::doctor
