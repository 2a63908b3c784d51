// SPDX-License-Identifier: Apache-2.0
// The step that checks the result: drivers, IOMMU groups and device nodes.
#include "gpu/driver/device_nodes.hpp"
#include "gpu/procfs/gpus.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/plan.hpp"
#include "vm/vfio/rebind_steps_internal.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::vfio {
namespace {

using namespace std::chrono_literals;

constexpr int kNodeTries = 20;

}  // namespace

Status StepRunner::verify() {
  GANTRY_TRY(const auto bus, pci::read_bus(host_));
  std::vector<model::PciAddress> bound;
  for (const auto& move : journal_.moves) {
    GANTRY_CHECK(check_same_card(move));
    bound.push_back(move.address);
    const auto* function = bus.find(move.address);
    if (function == nullptr || move.to_driver.empty()) continue;
    if (is_left_to_kernel(move) && function->driver.empty()) note_without_driver(move);
    const bool released = journal_.kind == "release" && function->is_gpu();
    if (released && same_driver(function->driver, "nvidia")) check_driver_files(move.address);
    if (move.to_driver == kAnyDriver || same_driver(function->driver, move.to_driver)) continue;
    return Error(Errc::Internal,
                 fmt::format("{} has the driver \"{}\" and not {}", move.address.sysfs(),
                             function->driver, move.to_driver));
  }
  if (journal_.kind != "bind") return {};
  for (const auto& move : journal_.moves) {
    const auto* function = bus.find(move.address);
    if (function == nullptr || !function->iommu_group) continue;
    const int group = *function->iommu_group;
    for (const auto* culprit : blocking_members(bus, group, bound)) {
      return Error(Errc::Busy, fmt::format("IOMMU group {} is not viable: {} has the driver {}",
                                           group, culprit->address.sysfs(), culprit->driver));
    }
    check_node(fmt::format("/dev/vfio/{}", group));
    // A kernel with CONFIG_VFIO_DEVICE_CDEV has a node for each device, too.
    if (!function->vfio_device.empty())
      check_node(fmt::format("/dev/vfio/devices/{}", function->vfio_device));
  }
  return {};
}

// A GPU that no driver had before, such as one that is bound at every boot, can go without one, but
// containers cannot use it.
void StepRunner::note_without_driver(const FunctionMove& move) {
  const bool loaded = host_.exists("/sys/bus/pci/drivers/nvidia");
  note_once(fmt::format("{} has no driver now: {}", move.address.sysfs(),
                        loaded ? fmt::format("nvidia did not take it; see `sudo dmesg | grep -e {} "
                                             "-e NVRM`",
                                             move.address.sysfs())
                               : "nvidia is not loaded; if it is installed: sudo modprobe nvidia"));
}

// NVML and containers find a GPU by the driver's information file and use its node. The driver does
// not create the node; it may be missing if vfio-pci had the GPU since the machine started.
void StepRunner::check_driver_files(const model::PciAddress& gpu) {
  const auto information = procfs::read_gpu(host_, gpu);
  if (!information.ok() && information.error().code() == Errc::NotFound) {
    return note_once(
        fmt::format("nvidia has {0}, but there is no /proc/driver/nvidia/gpus/{0}; see "
                    "`sudo dmesg | grep -e {0} -e NVRM`",
                    gpu.sysfs()));
  }
  if (!information.ok()) {
    return note_once(fmt::format("whether nvidia serves {} is not known: {}", gpu.sysfs(),
                                 information.error().text()));
  }
  if (!information->gpu.minor) return;
  const std::array minors{static_cast<std::uint32_t>(*information->gpu.minor)};
  const auto node = fmt::format("/dev/nvidia{}", minors.front());
  for (const auto& problem : driver::find_device_nodes(host_, minors).problems) {
    if (problem.path == node) note_once(fmt::format("{}: {}", gpu.sysfs(), problem.text));
  }
}

// The kernel makes it root's, mode 0600. A rule of udev may give it to the user or group of a
// hypervisor, and anyone who can open it can take the card.
void StepRunner::check_node(const std::string& node) {
  for (int i = 0; !host_.exists(node) && !host_.device(node).ok(); ++i) {
    if (i == kNodeTries)
      return note_once(fmt::format("{} did not appear; is devtmpfs mounted on /dev?", node));
    effects_.pause(100ms);
  }
  const auto found = host_.device(node);
  if (!found.ok()) return;
  const auto shown =
      fmt::format("{} (mode {:04o}, user {}, group {})", node, found->mode, found->uid, found->gid);
  if ((found->mode & 06U) != 0) {
    note_once(fmt::format("every user of this machine can open {}", shown));
  } else if (found->uid != 0 || (found->mode & 060U) != 0) {
    note_once(fmt::format("not only root can open {}", shown));
  }
}

}  // namespace gantry::vfio
