// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/device_nodes.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/device_nodes.hpp"
#include "gpu/procfs/gpus.hpp"

#include <optional>
#include <string_view>

namespace gantry::mig_change {
namespace {

constexpr std::size_t kProcFileLimit = std::size_t{64} << 10;
constexpr unsigned kCapabilityMode = 0444;  // as nvidia-modprobe makes them
constexpr const char* kCapabilityDirectory = "/dev/nvidia-caps";

bool another_tool_makes_nodes(const sys::Host& host) {
  const auto text = host.read("/proc/driver/nvidia/params", kProcFileLimit).value_or("");
  for (const auto line : lines(text)) {
    if (trim(line) == "ModifyDeviceFiles: 0") return true;
  }
  return false;
}

Status make_node(const sys::Host& host, std::uint32_t major, std::uint32_t minor,
                 sys::Kernel& kernel) {
  const auto path = driver::capability_node(minor);
  const auto present = host.device(path);
  if (present.ok() && present->major == major && present->minor == minor) return {};
  return kernel.make_char_device(
      host, path,
      {.kind = sys::FileKind::CharDevice, .mode = kCapabilityMode, .major = major, .minor = minor});
}

}  // namespace

Status make_instance_nodes(const sys::Host& host, const mig::MigGpu& gpu, sys::Kernel& kernel) {
  if (gpu.instances.empty() || another_tool_makes_nodes(host)) return {};
  GANTRY_TRY(const auto known, procfs::read_gpu(host, gpu.pci));
  GANTRY_TRY(const auto devices, host.read("/proc/devices", kProcFileLimit));
  GANTRY_TRY(const auto minors, driver::read_mig_minors(host));
  const auto major = procfs::parse_proc_devices(devices).of("nvidia-caps");
  if (!major || !known.gpu.minor) return {};  // a driver without capabilities
  GANTRY_CHECK(kernel.make_directory(host, kCapabilityDirectory));
  for (const auto& instance : gpu.instances) {
    if (const auto minor = minors.gpu_instance(*known.gpu.minor, instance.id))
      GANTRY_CHECK(make_node(host, *major, *minor, kernel));
    for (const auto& compute : instance.compute) {
      const auto minor = minors.compute_instance(*known.gpu.minor, instance.id, compute.id);
      if (minor) GANTRY_CHECK(make_node(host, *major, *minor, kernel));
    }
  }
  return {};
}

}  // namespace gantry::mig_change
