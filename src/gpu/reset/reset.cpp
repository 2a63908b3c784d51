// SPDX-License-Identifier: Apache-2.0
#include "gpu/reset/reset.hpp"

#include "base/core/clock.hpp"
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/sys/deadline_read.hpp"
#include "base/sys/deadline_write.hpp"
#include "base/sys/shell_command.hpp"
#include "gpu/probe/pci.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/mig.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace gantry::reset {
namespace {

using namespace std::chrono_literals;

constexpr auto kWriteDeadline = 30s;  // a bus reset waits for the card to answer again
constexpr auto kLockDeadline = 2s;    // a device's lock is held for milliseconds otherwise
constexpr std::size_t kShortestUuid = 8;
constexpr std::string_view kNvidia = "nvidia";
constexpr std::string_view kDriversProbe = "/sys/bus/pci/drivers_probe";

std::string device_path(const model::PciAddress& gpu, std::string_view file = "") {
  return fmt::format("/sys/bus/pci/devices/{}{}{}", gpu.sysfs(), file.empty() ? "" : "/", file);
}

std::string bound_driver(const sys::Host& host, const model::PciAddress& gpu) {
  const auto link = host.link(device_path(gpu, "driver"));
  return link.ok() ? link->substr(link->rfind('/') + 1) : "";
}

// vfio-pci and its variants save and restore the device around a reset.
bool stays_bound(std::string_view driver) {
  return driver.empty() || contains(driver, "vfio");
}

Error no_such_gpu(const sys::Host& host, std::string_view name) {
  std::vector<std::string> there;
  if (const auto scan = probe::scan_pci(host); scan.ok()) {
    for (const auto& device : scan->devices) {
      if (device.function.is_gpu()) there.push_back(device.function.address.sysfs());
    }
  }
  return {Errc::NotFound,
          fmt::format("there is no GPU `{}`; {}", printable(name),
                      there.empty() ? "this machine has none"
                                    : fmt::format("there are {}", fmt::join(there, ", ")))};
}

Error no_answer(const Error& error) {
  return Error(Errc::Busy, fmt::format("the driver does not answer: {}", error.cause()))
      .advise("wait until the program that starts on a GPU now has started, then repeat it");
}

// The GPU's instances end with the reset; the driver forgets them.
Result<bool> has_mig_instances(const sys::Host& host, const model::PciAddress& gpu) {
  const auto known = procfs::read_gpu(host, gpu);
  if (!known.ok() && known.error().code() == Errc::Timeout) return no_answer(known.error());
  return known.ok() && known->gpu.minor && procfs::has_mig_instances(host, *known->gpu.minor);
}

// 0 where the kernel has no such file. While an unbind waits for a process that uses the GPU, every
// reader of it waits too.
Result<std::string> count_virtual_functions(const sys::Host& host, const model::PciAddress& gpu) {
  const auto path = device_path(gpu, "sriov_numvfs");
  if (!host.exists(path)) return std::string("0");
  GANTRY_TRY(const auto text, sys::read_with_deadline(host, path, kLockDeadline));
  return std::string(trim(text));
}

// vGPUs of cards without virtual functions: directories below the card.
bool has_mediated_devices(const sys::Host& host, const model::PciAddress& gpu) {
  const auto names = host.list(device_path(gpu));
  return names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
           return host.link(device_path(gpu, name + "/mdev_type")).ok();
         });
}

Status check_possible(const sys::Host& host, const model::PciAddress& gpu) {
  auto functions = count_virtual_functions(host, gpu);
  if (!functions.ok()) return Error(Errc::Busy, functions.error().text());
  if (*functions != "0") {
    return Error(Errc::Busy, fmt::format("{} has {} virtual functions, which a reset would remove; "
                                         "remove its vGPUs first",
                                         gpu.sysfs(), printable(*functions)));
  }
  if (has_mediated_devices(host, gpu))
    return Error(Errc::Busy, fmt::format("{} has vGPUs, which a reset would remove; remove them "
                                         "first",
                                         gpu.sysfs()))
        .advise(fmt::format("sudo gantry vgpu remove --all --gpu {}", gpu.sysfs()));
  if (host.exists(device_path(gpu, "reset"))) return {};
  return Error(Errc::Unsupported,
               fmt::format("the kernel offers no reset for {} ({} does not exist)", gpu.sysfs(),
                           host.outside(device_path(gpu, "reset"))))
      .advise("reboot the machine");
}

// Repeats `holds` until it is true or the time is over.
bool wait_until(const std::function<bool()>& holds, const ResetTiming& timing) {
  for (const auto until = Clock::now() + timing.driver_appears;;) {
    if (holds()) return true;
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(timing.pause);
  }
}

Status unbind(const sys::Host& host, const ResetPlan& plan, const WriteFile& write) {
  auto written = write(device_path(plan.gpu, "driver/unbind"), plan.gpu.sysfs());
  const bool gone = bound_driver(host, plan.gpu).empty();
  if (written.ok() && gone) return {};
  // The driver let go between our look and the write.
  if (!written.ok() && written.error().sys_errno() == ENODEV && gone) return {};
  if (!written.ok()) return std::move(written).in("unbinding the driver");
  return Error(Errc::Busy, fmt::format("{} did not let go of {}", plan.driver, plan.gpu.sysfs()));
}

// The driver has the GPU again, and the GPU answers.
Status check_back(const sys::Host& host, const ResetPlan& plan, const ResetTiming& timing) {
  if (plan.driver.empty()) return {};
  const auto is_bound = [&] { return bound_driver(host, plan.gpu) == plan.driver; };
  if (!wait_until(is_bound, timing))
    return Error(Errc::Internal,
                 fmt::format("{} is not bound to {} again", plan.gpu.sysfs(), plan.driver));
  const auto listed = [&] {
    return plan.driver != kNvidia ||
           host.exists(fmt::format("/proc/driver/nvidia/gpus/{}/information", plan.gpu.sysfs()));
  };
  if (!wait_until(listed, timing))
    return Error(Errc::Internal, fmt::format("the driver does not list {}", plan.gpu.sysfs()))
        .advise("see why with: sudo dmesg | grep NVRM");
  return {};
}

Status check_answers(const sys::Host& host, const model::PciAddress& gpu) {
  const auto scan = probe::scan_pci(host);
  if (!scan.ok()) return scan.error();
  const auto* device = scan->find(gpu);
  if (device == nullptr)
    return Error(Errc::Internal, fmt::format("{} is no longer on the bus", gpu.sysfs()));
  if (device->all_ones)
    return Error(Errc::Internal,
                 fmt::format("{} does not answer: its configuration space reads ff", gpu.sysfs()))
        .advise("turn the machine off and on again");
  return {};
}

Status bind(const sys::Host& host, const ResetPlan& plan, const WriteFile& write,
            const ResetTiming& timing) {
  auto written = write(fmt::format("/sys/bus/pci/drivers/{}/bind", plan.driver), plan.gpu.sysfs());
  if (!written.ok() && written.error().code() == Errc::Timeout) return written;
  auto back = check_back(host, plan, timing);
  if (back.ok()) return back;
  if (written.ok()) return back;
  return Error(Errc::Internal, written.error().text())
      .in(fmt::format("binding {} to {} again", plan.gpu.sysfs(), plan.driver));
}

// A card that had no driver, if the driver is loaded and the card is not reserved for another one.
// It is as it was before the reset, so this error leaves nothing in between.
Status check_taken(const sys::Host& host, const model::PciAddress& gpu, const ResetTiming& timing) {
  const auto override_text =
      sys::read_with_deadline(host, device_path(gpu, "driver_override"), kLockDeadline)
          .value_or("");
  const auto reserved = trim(override_text);
  const bool free_to_take = reserved.empty() || reserved == "(null)";
  if (!free_to_take || !host.exists(fmt::format("/sys/bus/pci/drivers/{}", kNvidia))) return {};
  if (wait_until([&] { return !bound_driver(host, gpu).empty(); }, timing)) return {};
  return Error(Errc::Unsupported,
               fmt::format("{} was reset, but no driver took it afterwards", gpu.sysfs()))
      .advise("see why with: sudo dmesg | grep NVRM");
}

Status give_back(const sys::Host& host, const ResetPlan& plan, const WriteFile& write,
                 const ResetTiming& timing) {
  if (plan.rebind) return bind(host, plan, write, timing);
  if (!plan.driver.empty()) return check_back(host, plan, timing);
  // An earlier reset may have ended between unbind and bind. The kernel chooses the driver, and
  // leaves a card alone that driver_override reserves.
  auto probed = write(std::string(kDriversProbe), plan.gpu.sysfs());
  if (!probed.ok() && probed.error().code() == Errc::Timeout) return probed;
  return check_taken(host, plan.gpu, timing);
}

// The first error and, if undoing failed, that error.
Status after_failure(Error first, const Status& undone) {
  if (undone.ok()) return first;
  return Error(undone.error().code(),
               fmt::format("{}; undoing it failed too: {}", first.text(), undone.error().text()));
}

}  // namespace

Result<model::PciAddress> find_gpu(const sys::Host& host, std::string_view name) {
  if (const auto address = model::PciAddress::parse(name)) {
    const auto scan = probe::scan_pci(host);
    const auto* device = scan.ok() ? scan->find(*address) : nullptr;
    if (device == nullptr || !device->function.is_gpu()) return no_such_gpu(host, name);
    return *address;
  }
  const auto gpus = procfs::read_gpus(host);
  if (!gpus.ok()) return no_such_gpu(host, name);
  for (const auto& entry : *gpus) {
    if (entry.silent) return no_answer(Error(Errc::Timeout, entry.read_error));
  }
  const auto index = parse_u64(name);
  if (index && *index < gpus->size()) return (*gpus)[*index].information.gpu.pci;
  std::vector<model::PciAddress> found;
  for (const auto& entry : *gpus) {
    const auto& gpu = entry.information.gpu;
    if (gpu.uuid.text == name) return gpu.pci;
    if (name.size() >= kShortestUuid && gpu.uuid.text.starts_with(name)) found.push_back(gpu.pci);
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1)
    return Error(Errc::Invalid, fmt::format("`{}` is the beginning of {} UUIDs; write more of it",
                                            printable(name), found.size()));
  return no_such_gpu(host, name);
}

Result<ResetPlan> plan_reset(const sys::Host& host, const model::PciAddress& gpu) {
  if (!host.exists(device_path(gpu))) return no_such_gpu(host, gpu.sysfs());
  GANTRY_CHECK(check_possible(host, gpu));
  ResetPlan plan{.gpu = gpu, .driver = bound_driver(host, gpu)};
  plan.rebind = !stays_bound(plan.driver);
  const auto methods = host.read_value(device_path(gpu, "reset_method")).value_or("");
  plan.method = methods.substr(0, methods.find(' '));
  if (host.exists(device_path(gpu, "reset_method")) && plan.method.empty())
    return Error(Errc::Unsupported,
                 fmt::format("every reset method of {} is turned off", gpu.sysfs()))
        .advise(sys::on_machine(
            host, fmt::format("echo default | sudo tee {}", device_path(gpu, "reset_method"))));
  GANTRY_TRY(const bool has_instances, has_mig_instances(host, gpu));
  if (has_instances)
    plan.warnings.emplace_back("its MIG instances end; create them again after the reset");
  if (plan.method == "bus") plan.warnings.emplace_back("the kernel resets the whole bus above it");
  if (plan.method == "pm")
    plan.warnings.emplace_back(
        "the kernel only turns its power state down and up, which may not clear a fault");
  return plan;
}

std::vector<std::string> describe_steps(const ResetPlan& plan) {
  std::vector<std::string> steps;
  const auto address = plan.gpu.sysfs();
  if (plan.rebind)
    steps.push_back(fmt::format("write {} to {}", address, device_path(plan.gpu, "driver/unbind")));
  steps.push_back(fmt::format("write 1 to {}{}", device_path(plan.gpu, "reset"),
                              plan.method.empty() ? "" : fmt::format(" ({})", plan.method)));
  if (plan.rebind)
    steps.push_back(fmt::format("write {} to /sys/bus/pci/drivers/{}/bind", address, plan.driver));
  if (plan.driver.empty()) steps.push_back(fmt::format("write {} to {}", address, kDriversProbe));
  return steps;
}

WriteFile write_to_kernel(const sys::Host& host) {
  return [&host](const std::string& path, const std::string& text) {
    return sys::write_with_deadline(host, path, text, kWriteDeadline);
  };
}

Status run_reset(const sys::Host& host, const ResetPlan& plan, const WriteFile& write,
                 const ResetTiming& timing) {
  GANTRY_TRY(const auto now, plan_reset(host, plan.gpu));
  if (now != plan)
    return Error(Errc::Busy, fmt::format("{} is not as it was when the reset was planned (its "
                                         "driver was `{}` and is `{}`); nothing was done",
                                         plan.gpu.sysfs(), plan.driver, now.driver))
        .advise("repeat the command");
  if (plan.rebind) GANTRY_CHECK(unbind(host, plan, write));
  auto done = write(device_path(plan.gpu, "reset"), "1").in("resetting the GPU");
  if (!done.ok() && done.error().code() == Errc::Timeout) return done;
  // A kernel that refuses has done nothing, whatever its errno.
  done = done.ok() ? check_answers(host, plan.gpu)
                   : Status(Error(Errc::Unsupported, done.error().text()));
  auto back = give_back(host, plan, write, timing);
  if (!done.ok()) return after_failure(std::move(done).error(), back);
  return back;
}

}  // namespace gantry::reset
