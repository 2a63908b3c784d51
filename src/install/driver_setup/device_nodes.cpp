// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/device_nodes.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/device_nodes.hpp"
#include "gpu/procfs/device_numbers.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::driver_setup {
namespace {

constexpr std::uint32_t kGpuMajor = 195;  // registered with the kernel for NVIDIA
constexpr std::uint32_t kControlNodeMinor = 255;
constexpr std::uint32_t kModesetNodeMinor = 254;
constexpr std::size_t kParameterLimit = std::size_t{64} << 10;
constexpr std::string_view kParameterFile = "/proc/driver/nvidia/params";
constexpr std::string_view kSwitchDirectory = "/proc/driver/nvidia-nvswitch/devices";

// "DeviceFileMode: 438" is decimal: 0666.
std::optional<std::uint64_t> driver_parameter(std::string_view text, std::string_view name) {
  for (const auto line : lines(text)) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && line.substr(0, colon) == name)
      return parse_u64(trim(line.substr(colon + 1)));
  }
  return std::nullopt;
}

sys::FileInfo node_like(std::string_view parameters) {
  sys::FileInfo node{.kind = sys::FileKind::CharDevice, .mode = 0666};
  const auto mode = driver_parameter(parameters, "DeviceFileMode");
  // 01232 is what `666`, written where a decimal number is expected, looks like.
  if (mode && (*mode & 0600U) == 0600U && *mode <= 0777) node.mode = static_cast<unsigned>(*mode);
  node.uid = static_cast<unsigned>(driver_parameter(parameters, "DeviceFileUID").value_or(0));
  node.gid = static_cast<unsigned>(driver_parameter(parameters, "DeviceFileGID").value_or(0));
  return node;
}

class NodeList {
 public:
  NodeList(const sys::Host& host, sys::FileInfo like) : like_(like) {
    majors_ = procfs::parse_proc_devices(host.read("/proc/devices").value_or(""));
  }
  void add(std::string path, std::optional<std::uint32_t> major, std::uint32_t minor) {
    if (!major) return;
    like_.major = *major;
    like_.minor = minor;
    nodes_.push_back({std::move(path), like_});
  }
  std::optional<std::uint32_t> major(std::string_view name) const { return majors_.of(name); }
  // Its name before 550.40 is nvidia-frontend.
  std::uint32_t gpu_major() const {
    return major("nvidia").value_or(major("nvidia-frontend").value_or(kGpuMajor));
  }
  std::vector<RequiredNode> sorted() && {
    std::sort(nodes_.begin(), nodes_.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(nodes_);
  }

 private:
  sys::FileInfo like_;
  procfs::CharMajors majors_;
  std::vector<RequiredNode> nodes_;
};

void add_gpu_nodes(const sys::Host& host, NodeList& nodes) {
  const auto gpus = procfs::read_gpus(host);
  if (!gpus.ok()) return;
  for (const auto& entry : *gpus) {
    const auto minor = entry.information.gpu.minor;
    if (minor) nodes.add(fmt::format("/dev/nvidia{}", *minor), nodes.gpu_major(), *minor);
  }
}

void add_switch_nodes(const sys::Host& host, NodeList& nodes) {
  const auto names = host.list(kSwitchDirectory);
  const auto major = nodes.major("nvidia-nvswitch");
  if (!names.ok() || names->empty() || !major) return;
  nodes.add("/dev/nvidia-nvswitchctl", major, kControlNodeMinor);
  for (std::uint32_t i = 0; i < names->size(); ++i)
    nodes.add(fmt::format("/dev/nvidia-nvswitch{}", i), major, i);
}

bool has_numbers(const sys::Host& host, const RequiredNode& wanted) {
  const auto node = host.device(wanted.path);
  // A mode without rights for the owner comes from a number in the wrong base; any other may be one
  // that a rule of udev gave.
  return node.ok() && node->kind == sys::FileKind::CharDevice && node->major == wanted.node.major &&
         node->minor == wanted.node.minor && (node->mode & 0600U) == 0600U;
}

}  // namespace

std::vector<RequiredNode> wanted_nodes(const sys::Host& host) {
  if (!host.exists(procfs::kVersionPath)) return {};
  const auto parameters = host.read(kParameterFile, kParameterLimit).value_or("");
  if (driver_parameter(parameters, "ModifyDeviceFiles").value_or(1) == 0) return {};
  NodeList nodes(host, node_like(parameters));
  nodes.add("/dev/nvidiactl", nodes.gpu_major(), kControlNodeMinor);
  add_gpu_nodes(host, nodes);
  if (host.exists("/sys/module/nvidia_modeset"))
    nodes.add("/dev/nvidia-modeset", nodes.gpu_major(), kModesetNodeMinor);
  nodes.add("/dev/nvidia-uvm", nodes.major("nvidia-uvm"), 0);
  nodes.add("/dev/nvidia-uvm-tools", nodes.major("nvidia-uvm"), 1);
  add_switch_nodes(host, nodes);
  return std::move(nodes).sorted();
}

std::vector<RequiredNode> nodes_to_make(const sys::Host& host) {
  auto nodes = wanted_nodes(host);
  std::erase_if(nodes, [&](const RequiredNode& node) { return has_numbers(host, node); });
  return nodes;
}

std::vector<std::string> present_driver_nodes(const sys::Host& host) {
  std::vector<std::string> paths;
  for (const auto* directory : {"/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"}) {
    for (auto& path : host.device_paths(directory)) {
      if (path.starts_with("/dev/nvidia")) paths.push_back(std::move(path));
    }
  }
  return paths;
}

std::vector<std::string> nodes_that_hold_driver(const sys::Host& host) {
  auto paths = present_driver_nodes(host);
  for (const auto& node : driver::find_device_nodes(host, {}).drm) paths.push_back(node.path);
  if (host.device("/dev/gdrdrv").ok()) paths.emplace_back("/dev/gdrdrv");
  return paths;
}

}  // namespace gantry::driver_setup
