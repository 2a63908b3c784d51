// SPDX-License-Identifier: Apache-2.0
// The hooks that change single files of the container.
#include "base/core/text.hpp"
#include "container/rootfs/mount.hpp"
#include "container/runtime/hook/cdi_hook.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::runtime {
namespace {

constexpr std::string_view kParams = "/proc/driver/nvidia/params";
constexpr std::size_t kParamsLimit = 64 << 10;
constexpr std::string_view kProfile =
    "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf";
constexpr std::uint32_t kMaskBits = 64;

// "" if nothing has to change.
std::string without_device_files(std::string_view params) {
  std::string text;
  bool changed = false;
  for (const auto line : lines(params)) {
    const bool makes = trim(line) == "ModifyDeviceFiles: 1";
    changed = changed || makes;
    text += makes ? "ModifyDeviceFiles: 0" : line;
    text += '\n';
  }
  return changed ? text : std::string();
}

// "nvidia3" -> true, "nvidiactl" -> false
bool is_gpu_node(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && parse_u64(name.substr(kPrefix.size())).has_value();
}

std::uint64_t gpu_mask(HookContext& place) {
  const auto names = place.container.list("/dev", 65536);
  if (!names.ok()) return 0;
  std::uint64_t mask = 0;
  for (const auto& name : *names) {
    if (!is_gpu_node(name)) continue;
    const auto node = place.container.link_info(fmt::format("/dev/{}", name));
    if (!node.ok() || node->kind != sys::FileKind::CharDevice) continue;
    if (node->minor >= kMaskBits) {
      place.warnings.push_back(fmt::format("the driver's profile cannot name GPU {}", node->minor));
    } else {
      mask |= std::uint64_t{1} << node->minor;
    }
  }
  return mask;
}

}  // namespace

Status create_symlinks(const HookArguments& arguments, HookContext& place) {
  for (const auto& wish : arguments.all("link")) {
    const auto middle = wish.find("::");
    if (middle == std::string::npos || middle == 0 || middle + 2 >= wish.size()) {
      return Error(Errc::Invalid, fmt::format("--link {}: is not of the form TARGET::LINK", wish));
    }
    GANTRY_CHECK(place.container.put_symlink(wish.substr(middle + 2), wish.substr(0, middle)));
  }
  return {};
}

Status change_mode(const HookArguments& arguments, HookContext& place) {
  const auto mode = parse_u64(arguments.last("mode"), 8);
  if (!mode || *mode > 0777) {
    return Error(Errc::Invalid,
                 fmt::format("--mode \"{}\": must be 0 to 777, in octal", arguments.last("mode")));
  }
  for (const auto& path : arguments.all("path")) {
    auto status = place.container.set_mode(path, static_cast<std::uint32_t>(*mode));
    if (status.ok() || status.error().code() == Errc::NotFound) continue;
    // A missing path, or one that we may not change, does not stop the container.
    const bool foreign =
        status.error().code() == Errc::Denied || status.error().sys_errno() == EXDEV;
    if (!foreign) return status;
    place.warnings.push_back(status.error().text());
  }
  return {};
}

Status disable_device_node_modification(const HookArguments&, HookContext& place) {
  const auto params = place.host.read(kParams, kParamsLimit);
  if (!params.ok()) return {};  // without a driver nothing creates nodes
  const auto text = without_device_files(*params);
  if (text.empty()) return {};
  if (!place.container.info(kParams).ok()) return {};  // the container sees no driver there
  auto mounted = rootfs::bind_content(place.container, text, kParams);
  if (!mounted.ok()) {
    place.warnings.push_back(fmt::format(
        "programs in the container may still create device nodes: {}", mounted.error().text()));
  }
  return {};
}

Status update_application_profile(const HookArguments&, HookContext& place) {
  const auto mask = gpu_mask(place);
  if (mask == 0) return {};
  // The driver's own dialect of JSON, with a hexadecimal number.
  const auto text = fmt::format(
      "{{\"profiles\":[{{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices\",{:#x}]}}]"
      ","
      "\"rules\":[{{\"pattern\":[],\"profile\":\"_container_\"}}]}}",
      mask);
  auto status = place.container.put_file(kProfile, text, 0444);
  if (!status.ok() && place.container.info(kProfile).ok()) {
    status = rootfs::bind_content(place.container, text, kProfile);
  }
  if (!status.ok()) {
    place.warnings.push_back(fmt::format("EGL and Vulkan may list GPUs that they cannot open: {}",
                                         status.error().text()));
  }
  return {};
}

}  // namespace gantry::runtime
