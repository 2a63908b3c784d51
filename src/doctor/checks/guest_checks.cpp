// SPDX-License-Identifier: Apache-2.0
// The kind of machine, and the checks that only guests need.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

Finding judge_kind(const Facts& f) {
  const auto& guest = f.guest();
  if (!guest.known) return info("cannot tell whether this is a virtual machine");
  if (guest.wsl) return ok("Windows subsystem for Linux", guest.evidence);
  if (!guest.is_virtual()) return ok("this is bare metal, not a virtual machine", guest.evidence);
  if (guest.name.empty()) {
    return ok("a virtual machine with an unknown hypervisor", guest.evidence);
  }
  return ok(fmt::format("a virtual machine: {}", guest.name), guest.evidence);
}

Finding judge_wsl(const Facts& f) {
  if (!f.guest().wsl) return skip("this is not WSL");
  std::vector<Evidence> read;
  for (std::string_view path : {"/dev/dxg", "/usr/lib/wsl/lib/libcuda.so.1"}) {
    const bool there = f.host().exists(path);
    read.push_back({std::string(path), there ? "present" : "(absent)"});
    if (!there) return fail(fmt::format("{} is missing: WSL has no GPU", path), read);
  }
  return ok("WSL has a GPU", read);
}

bool is_vgpu(const model::Gpu& gpu) {
  return to_lower(gpu.virtualization) == "vgpu" || contains(gpu.brand, "vGPU") ||
         gpu.name.starts_with("GRID ");
}

Finding judge_licence(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  if (!std::any_of(gpus.begin(), gpus.end(), is_vgpu)) return skip("no vGPU in this machine");
  const auto tokens = f.host().list("/etc/nvidia/ClientConfigToken");
  const bool token =
      tokens.ok() && std::any_of(tokens->begin(), tokens->end(),
                                 [](const auto& name) { return name.ends_with(".tok"); });
  const bool server =
      contains(f.host().read("/etc/nvidia/gridd.conf").value_or(""), "\nServerAddress=");
  const std::vector<Evidence> read{
      {"/etc/nvidia/ClientConfigToken", token ? "a token" : "no token"},
      {"/etc/nvidia/gridd.conf", server ? "ServerAddress set" : "no ServerAddress"},
      {"/proc/*/comm", f.running("nvidia-gridd") ? "nvidia-gridd runs" : "no nvidia-gridd"}};
  if (!token && !server)
    return warn("this vGPU has no licence: it becomes slow after minutes", read);
  if (!f.running("nvidia-gridd"))
    return warn("nvidia-gridd does not run: no licence is fetched", read);
  return ok("a licence is configured and nvidia-gridd runs", read);
}

Finding judge_vgpu_host(const Facts& f) {
  const bool host = f.module_loaded("nvidia_vgpu_vfio");
  if (!host) return skip("this is not a vGPU host");
  const std::vector<Evidence> read{
      {"/sys/module/nvidia_vgpu_vfio", "present"},
      {"/proc/*/comm",
       f.running("nvidia-vgpu-mgr") ? "nvidia-vgpu-mgr runs" : "no nvidia-vgpu-mgr"}};
  if (!f.running("nvidia-vgpu-mgr")) return fail("the vGPU manager does not run", read);
  return ok("the vGPU manager runs", read);
}

std::vector<Action> fix_vgpu_host(const Facts&) {
  return {RunProgram{{"systemctl", "restart", "nvidia-vgpud", "nvidia-vgpu-mgr"}}};
}

constexpr Check kGuestAreaChecks[] = {
    {.id = "guest.kind",
     .reference = "V1",
     .area = Area::Guest,
     .title = "it is known whether this is a virtual machine",
     .reads = "/proc/cpuinfo, /sys/class/dmi/id/{sys_vendor,product_name}",
     .cause = "Neither processor flags nor DMI can be read here; the rules for bare metal apply.",
     .remedy = "run gantry where /proc and /sys are mounted, or with --root",
     .judge = judge_kind},
    {.id = "guest.wsl",
     .reference = "C10",
     .area = Area::Guest,
     .title = "WSL has a GPU",
     .reads = "/dev/dxg, /usr/lib/wsl/lib",
     .cause =
         "WSL 1, an old Windows driver, or a distribution that hides /usr/lib/wsl. There are no "
         "/dev/nvidia* in WSL; the GPU is /dev/dxg.",
     .remedy = "wsl.exe --update && wsl.exe --shutdown  # in Windows, with a current NVIDIA driver",
     .judge = judge_wsl},
    {.id = "guest.licence",
     .reference = "V4",
     .area = Area::Guest,
     .title = "the vGPU has a licence",
     .reads = "/etc/nvidia/ClientConfigToken, /etc/nvidia/gridd.conf, /proc/*/comm",
     .cause = "No client token was installed, or the licence daemon is not started.",
     .remedy = "sudo cp client_configuration_token_*.tok /etc/nvidia/ClientConfigToken/ && sudo "
               "systemctl restart nvidia-gridd && nvidia-smi -q | grep -i licen",
     .judge = judge_licence},
    {.id = "guest.vgpu-host",
     .reference = "V12",
     .area = Area::Guest,
     .fix_class = FixClass::OnRequest,
     .title = "a vGPU host runs its manager",
     .reads = "/sys/module/nvidia_vgpu_vfio, /proc/*/comm",
     .cause =
         "nvidia-vgpud or nvidia-vgpu-mgr did not start: creating a vGPU fails with EIO, or there "
         "are no vGPU types.",
     .remedy = "sudo systemctl restart nvidia-vgpud nvidia-vgpu-mgr",
     .judge = judge_vgpu_host,
     .fix = fix_vgpu_host},
};

}  // namespace

std::span<const Check> guest_checks() {
  return kGuestAreaChecks;
}

}  // namespace gantry::doctor
