// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/expected_nodes.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr std::uint32_t kDefaultMajor = 195;
constexpr std::uint32_t kControlMinor = 255;
constexpr std::uint32_t kModesetMinor = 254;
constexpr std::uint32_t kDefaultMode = 0666;

struct Owner {
  std::uint32_t mode = kDefaultMode;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

Owner owner_of(const Facts& f) {
  Owner owner;
  const auto mode = f.param_number("DeviceFileMode");
  if (mode && *mode <= 07777) owner.mode = static_cast<std::uint32_t>(*mode);
  owner.uid = static_cast<std::uint32_t>(f.param_number("DeviceFileUID").value_or(0));
  owner.gid = static_cast<std::uint32_t>(f.param_number("DeviceFileGID").value_or(0));
  return owner;
}

sys::FileInfo character_device(std::uint32_t major, std::uint32_t minor, const Owner& owner) {
  return {.kind = sys::FileKind::CharDevice,
          .mode = owner.mode,
          .uid = owner.uid,
          .gid = owner.gid,
          .major = major,
          .minor = minor};
}

// "DeviceFileMinor: 1", "DeviceFileMode: 256" (decimal)
void add_capability(const Facts& f, std::string_view file, std::uint32_t major,
                    std::vector<ExpectedNode>& nodes) {
  const auto text = f.host().read(file, 4096);
  if (!text.ok()) return;
  std::optional<std::uint64_t> minor;
  std::uint64_t mode = 0444;
  for (auto line : lines(*text)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto number = parse_u64(trim(line.substr(colon + 1)));
    if (line.starts_with("DeviceFileMinor:")) minor = number;
    if (line.starts_with("DeviceFileMode:") && number && *number <= 07777) mode = *number;
  }
  if (!minor || *minor > 0xFFFFF) return;
  const Owner owner{.mode = static_cast<std::uint32_t>(mode)};
  nodes.push_back({NodeGroup::Capability, fmt::format("/dev/nvidia-caps/nvidia-cap{}", *minor),
                   character_device(major, static_cast<std::uint32_t>(*minor), owner)});
}

void add_capabilities(const Facts& f, std::vector<ExpectedNode>& nodes) {
  const auto major = f.major("nvidia-caps");
  const auto& gpus = f.inventory().gpus;
  const bool mig = std::any_of(gpus.begin(), gpus.end(), [](const model::Gpu& gpu) {
    return gpu.mig.current == model::MigMode::Enabled;
  });
  if (!major || !mig) return;
  constexpr std::string_view kBase = "/proc/driver/nvidia/capabilities";
  add_capability(f, fmt::format("{}/mig/config", kBase), *major, nodes);
  add_capability(f, fmt::format("{}/mig/monitor", kBase), *major, nodes);
  for (const auto& gpu : gpus) {
    if (!gpu.minor) continue;
    for (const auto& instance : gpu.mig.instances) {
      const auto gi = fmt::format("{}/gpu{}/mig/gi{}", kBase, *gpu.minor, instance.gpu_instance);
      add_capability(f, gi + "/access", *major, nodes);
      add_capability(f, fmt::format("{}/ci{}/access", gi, instance.compute_instance), *major,
                     nodes);
    }
  }
}

void add_switches(const Facts& f, const Owner& owner, std::vector<ExpectedNode>& nodes) {
  const auto major = f.major("nvidia-nvswitch");
  const auto switches = f.nvswitches();
  if (!major || switches.empty()) return;
  nodes.push_back({NodeGroup::Switch, "/dev/nvidia-nvswitchctl",
                   character_device(*major, kControlMinor, owner)});
  for (std::uint32_t i = 0; i < switches.size(); ++i) {
    nodes.push_back({NodeGroup::Switch, fmt::format("/dev/nvidia-nvswitch{}", i),
                     character_device(*major, i, owner)});
  }
}

}  // namespace

std::vector<ExpectedNode> expected_nodes(const Facts& f) {
  std::vector<ExpectedNode> nodes;
  if (!f.driver_loaded()) return nodes;
  const auto owner = owner_of(f);
  auto major = f.major("nvidia");
  if (!major) major = f.major("nvidia-frontend");  // the name in drivers before 550.40
  const auto gpu_major = major.value_or(kDefaultMajor);
  nodes.push_back(
      {NodeGroup::Gpu, "/dev/nvidiactl", character_device(gpu_major, kControlMinor, owner)});
  for (const auto& gpu : f.inventory().gpus) {
    if (!gpu.minor) continue;
    nodes.push_back({NodeGroup::Gpu, fmt::format("/dev/nvidia{}", *gpu.minor),
                     character_device(gpu_major, *gpu.minor, owner)});
  }
  if (f.module_loaded("nvidia_modeset")) {
    nodes.push_back({NodeGroup::Modeset, "/dev/nvidia-modeset",
                     character_device(gpu_major, kModesetMinor, owner)});
  }
  if (const auto uvm = f.major("nvidia-uvm")) {
    nodes.push_back({NodeGroup::Uvm, "/dev/nvidia-uvm", character_device(*uvm, 0, owner)});
    nodes.push_back({NodeGroup::Uvm, "/dev/nvidia-uvm-tools", character_device(*uvm, 1, owner)});
  }
  add_capabilities(f, nodes);
  add_switches(f, owner, nodes);
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  nodes.erase(std::unique(nodes.begin(), nodes.end(),
                          [](const auto& a, const auto& b) { return a.path == b.path; }),
              nodes.end());
  return nodes;
}

bool may_modify_nodes(const Facts& f) {
  return f.param_number("ModifyDeviceFiles").value_or(1) != 0;
}

bool is_usable_mode(std::uint32_t mode) {
  return (mode & 0600U) == 0600U && (mode & 07000U) == 0;
}

}  // namespace gantry::doctor
