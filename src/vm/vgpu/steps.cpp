// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/steps.hpp"

#include "base/core/text.hpp"
#include "vm/vgpu/read_host.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace gantry::vgpu {
namespace {

constexpr std::chrono::milliseconds kPoll{50};

// Waits until `ready` is true. false if the deadline passes first. A read may fail while the driver
// is at work; its error counts if it is the last one. Each read that gets no answer takes seconds,
// so the first one ends the wait.
Result<bool> wait_until(const std::function<Result<bool>()>& ready,
                        std::chrono::milliseconds deadline, const Actions& actions) {
  for (std::chrono::milliseconds waited{0};; waited += kPoll) {
    auto now = ready();
    if (now.ok() && *now) return now;
    if (waited >= deadline || (!now.ok() && now.error().code() == Errc::Timeout)) return now;
    actions.pause(kPoll);
  }
}

std::string mdev_directory(const VgpuSpec& spec) {
  return "/sys/bus/mdev/devices/" + spec.uuid;
}

std::string vendor_path(const VgpuSpec& spec) {
  return pci_directory(spec.parent) + "/nvidia/current_vgpu_type";
}

// Explains the kernel's answer, which is only a number.
std::string meaning_of_create(const Error& failed) {
  switch (failed.sys_errno()) {
    case EIO:
      return "the vGPU manager refused it: nvidia-vgpud has not run, or ECC, licence or another "
             "vGPU's size forbid it; see `sudo dmesg | grep nvidia-vgpu`";
    case ENOSPC:
    case EINVAL: return "the type is full, or the GPU has vGPUs of another size";
    case EBUSY: return "the virtual function already has a vGPU";
    case EEXIST: return "a vGPU with this UUID exists";
    case EACCES:
    case EPERM: return "only root may create vGPUs";
    default: return "";
  }
}

std::string meaning_of_remove(const Error& failed) {
  switch (failed.sys_errno()) {
    case EBUSY:
    case EAGAIN:
    case EPERM: return "a virtual machine uses it; stop that machine first";
    case EACCES: return "only root may remove vGPUs";
    default: return "";
  }
}

Error explained(Error failed, const std::string& meaning) {
  if (failed.code() == Errc::Timeout) {
    return std::move(failed).advise(
        "the kernel waits for the virtual machine that uses it; stop that machine, then `gantry "
        "vgpu apply --restore`");
  }
  return meaning.empty() ? std::move(failed) : std::move(failed).advise(meaning);
}

Error did_not_show(std::string_view what) {
  return {Errc::Timeout, fmt::format("the kernel accepted it, but {}", what)};
}

Status create_vgpu(const sys::Host& host, const VgpuSpec& spec, const Actions& actions,
                   const ChangeOptions& options) {
  GANTRY_TRY(const bool there, vgpu_exists(host, spec));
  if (there) return {};
  const auto done =
      spec.uuid.empty()
          ? actions.write(vendor_path(spec), spec.type_id)
          : actions.write(fmt::format("/sys/class/mdev_bus/{}/mdev_supported_types/{}/create",
                                      spec.parent.sysfs(), spec.type_id),
                          spec.uuid);
  if (!done.ok()) return explained(Error(done.error()), meaning_of_create(done.error()));
  GANTRY_TRY(const bool came,
             wait_until([&] { return vgpu_exists(host, spec); }, options.settle_deadline, actions));
  return came ? Status{} : did_not_show("the vGPU did not appear in sysfs");
}

Result<bool> is_gone(const sys::Host& host, const VgpuSpec& spec) {
  if (!spec.uuid.empty()) return !host.exists(mdev_directory(spec));
  GANTRY_TRY(const auto type, read_vendor_type(host, spec.parent));
  return type == "0";
}

Status remove_vgpu(const sys::Host& host, const VgpuSpec& spec, const Actions& actions,
                   const ChangeOptions& options) {
  GANTRY_TRY(const bool absent, is_gone(host, spec));
  if (absent) return {};
  const auto done = spec.uuid.empty() ? actions.write(vendor_path(spec), "0")
                                      : actions.write(mdev_directory(spec) + "/remove", "1");
  // A write that timed out may have been done all the same.
  if (!done.ok() && !is_gone(host, spec).value_or(false))
    return explained(Error(done.error()), meaning_of_remove(done.error()));
  GANTRY_TRY(const bool went,
             wait_until([&] { return is_gone(host, spec); }, options.settle_deadline, actions));
  return went ? Status{} : did_not_show("the vGPU is still in sysfs");
}

Status enable_functions(const sys::Host& host, const Step& step, const Actions& actions,
                        const ChangeOptions& options) {
  const auto& gpu = step.vgpu.gpu;
  const auto enabled = [&]() -> Result<bool> {
    GANTRY_TRY(const auto count, read_enabled_vfs(host, gpu));
    return virtual_functions(host, gpu).size() >= step.count && count == step.count;
  };
  GANTRY_TRY(const bool before, enabled());
  if (!before) GANTRY_CHECK(actions.enable_vfs(gpu, step.count));
  // sriov-manage of vGPU 17.2 succeeds even if no virtual function came: count them.
  GANTRY_TRY(const bool came, wait_until(enabled, options.vfs_deadline, actions));
  if (!came) {
    return Error(Errc::Timeout, fmt::format("{} of {} virtual functions of {} appeared within {} s",
                                            virtual_functions(host, gpu).size(), step.count,
                                            gpu.sysfs(), options.vfs_deadline.count() / 1000))
        .advise(fmt::format("see `sudo dmesg | grep -i -e {} -e nvidia`", gpu.sysfs()));
  }
  const auto offered = [&]() -> Result<bool> {
    for (const auto& vf : virtual_functions(host, gpu)) {
      if (!offers_vgpus(host, vf)) return false;
    }
    return true;
  };
  GANTRY_TRY(const bool all, wait_until(offered, options.vfs_deadline, actions));
  if (all) return {};
  return Error(Errc::Timeout,
               fmt::format("the virtual functions of {} are there, but offer no vGPU types",
                           gpu.sysfs()))
      .advise("sudo systemctl restart nvidia-vgpud nvidia-vgpu-mgr");
}

}  // namespace

Result<bool> vgpu_exists(const sys::Host& host, const VgpuSpec& spec) {
  if (spec.uuid.empty()) {
    GANTRY_TRY(const auto type, read_vendor_type(host, spec.parent));
    return type == spec.type_id;
  }
  const auto type = host.link(mdev_directory(spec) + "/mdev_type");
  return type.ok() && type->substr(type->rfind('/') + 1) == spec.type_id;
}

Status run_step(const sys::Host& host, const Step& step, const Actions& actions,
                const ChangeOptions& options) {
  switch (step.kind) {
    case Step::Kind::EnableVfs: return enable_functions(host, step, actions, options);
    case Step::Kind::EnableMixed: return actions.enable_mixed(step.vgpu.gpu);
    case Step::Kind::Remove: return remove_vgpu(host, step.vgpu, actions, options);
    case Step::Kind::Create: return create_vgpu(host, step.vgpu, actions, options);
  }
  return {};
}

}  // namespace gantry::vgpu
