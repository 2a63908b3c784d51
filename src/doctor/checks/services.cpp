// SPDX-License-Identifier: Apache-2.0
// Daemons and security policies around the driver.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr std::string_view kPersistencedSocket = "/run/nvidia-persistenced/socket";

bool daemon_runs(const Facts& f) {
  return f.running("nvidia-persistenced");
}

Finding judge_persistence(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  const bool known = std::any_of(gpus.begin(), gpus.end(),
                                 [](const model::Gpu& gpu) { return gpu.persistence.has_value(); });
  if (!known && !daemon_runs(f)) return skip("persistence mode is not known");
  std::vector<Evidence> read{
      {std::string(kPersistencedSocket),
       f.host().exists(kPersistencedSocket) ? "present" : "(absent)"},
      {"/proc/*/comm", daemon_runs(f) ? "nvidia-persistenced runs" : "no nvidia-persistenced"}};
  std::vector<std::string> off;
  for (const auto& gpu : gpus) {
    if (!gpu.persistence) continue;
    read.push_back({fmt::format("NVML, GPU {}", gpu.index),
                    *gpu.persistence ? "persistence on" : "persistence off"});
    if (!*gpu.persistence && !daemon_runs(f)) off.push_back(gpu_label(gpu));
  }
  if (off.empty()) return ok("GPUs stay initialised", read);
  return warn(fmt::format("shut down when the last program ends: {}", join_names(off)), read);
}

Steps fix_persistence(const Facts& f) {
  const bool unit = f.host().exists("/run/systemd/system") &&
                    (f.host().exists("/usr/lib/systemd/system/nvidia-persistenced.service") ||
                     f.host().exists("/lib/systemd/system/nvidia-persistenced.service"));
  if (unit) return {RunProgram{{"systemctl", "enable", "--now", "nvidia-persistenced"}}};
  return {RunProgram{{"nvidia-smi", "-pm", "1"}}};
}

Finding judge_persistence_socket(const Facts& f) {
  const bool socket = f.host().exists(kPersistencedSocket);
  if (!socket && !daemon_runs(f)) return skip("nvidia-persistenced is not used here");
  const std::vector<Evidence> read{
      {std::string(kPersistencedSocket), socket ? "present" : "(absent)"},
      {"/proc/*/comm", daemon_runs(f) ? "nvidia-persistenced runs" : "no nvidia-persistenced"}};
  if (socket && !daemon_runs(f))
    return warn("nvidia-persistenced has ended but left its socket", read);
  if (!socket) return warn("nvidia-persistenced runs without its socket", read);
  return ok("nvidia-persistenced has its socket", read);
}

Steps fix_persistence_socket(const Facts&) {
  return {RunProgram{{"systemctl", "restart", "nvidia-persistenced"}}};
}

Finding judge_mps(const Facts& f) {
  constexpr std::string_view kPipe = "/tmp/nvidia-mps/control";
  const bool runs = f.running("nvidia-cuda-mps-control");
  const bool there = f.host().exists(kPipe);
  if (!runs && !there) return skip("MPS is not used here");
  const std::vector<Evidence> read{
      {std::string(kPipe), there ? "present" : "(absent)"},
      {"/proc/*/comm", runs ? "nvidia-cuda-mps-control runs" : "no nvidia-cuda-mps-control"}};
  if (!runs)
    return warn("the MPS daemon has ended but left its pipes: CUDA programs may wait for it", read);
  return ok("the MPS daemon runs", read);
}

Steps fix_mps(const Facts&) {
  return {RunProgram{{"rm", "-r", "/tmp/nvidia-mps"}}};
}

bool container_policy(const Facts& f) {
  return f.host().exists("/usr/share/selinux/packages/nvidia-container.pp") ||
         f.host().exists("/var/lib/selinux/targeted/active/modules/400/nvidia-container") ||
         f.host().exists("/etc/selinux/targeted/active/modules/400/nvidia-container");
}

Finding judge_selinux(const Facts& f) {
  const auto enforce = f.value("/sys/fs/selinux/enforce");
  if (!enforce) return skip("SELinux is off");
  std::vector<Evidence> read{{"/sys/fs/selinux/enforce", *enforce}};
  if (*enforce != "1") return ok("SELinux is in permissive mode", read);
  const auto devices = f.value("/sys/fs/selinux/booleans/container_use_devices");
  read.push_back(f.read("/sys/fs/selinux/booleans/container_use_devices"));
  if (devices && devices->starts_with('1')) return ok("containers may use devices", read);
  if (container_policy(f)) return ok("the nvidia-container policy is installed", read);
  return warn("SELinux does not let containers open /dev/nvidia*", read);
}

Steps fix_selinux(const Facts&) {
  return {RunProgram{{"setsebool", "-P", "container_use_devices", "1"}}};
}

constexpr Check kServicesChecks[] = {
    {.id = "persistence.off",
     .reference = "H26",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "GPUs stay initialised between programs",
     .reads = "NVML, /run/nvidia-persistenced/socket, /proc/*/comm",
     .cause = "Neither persistence mode nor nvidia-persistenced is on: every first call takes "
              "seconds, and settings and MIG nodes are lost when the GPU goes idle.",
     .remedy = "sudo systemctl enable --now nvidia-persistenced || sudo nvidia-smi -pm 1",
     .judge = judge_persistence,
     .fix = fix_persistence},
    {.id = "persistence.socket",
     .reference = "H26",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "nvidia-persistenced has its socket",
     .reads = "/run/nvidia-persistenced/socket, /proc/*/comm",
     .cause =
         "The daemon ended or its directory was removed; containers that mount the socket fail "
         "to start or get no answer.",
     .remedy = "sudo systemctl restart nvidia-persistenced",
     .judge = judge_persistence_socket,
     .fix = fix_persistence_socket},
    {.id = "mps.stale",
     .reference = "H33",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "no MPS daemon has ended without removing its pipes",
     .reads = "/tmp/nvidia-mps, /proc/*/comm",
     .cause = "nvidia-cuda-mps-control was killed or crashed.",
     .remedy = "sudo rm -r /tmp/nvidia-mps  # or start it: sudo nvidia-cuda-mps-control -d",
     .judge = judge_mps,
     .fix = fix_mps},
    {.id = "selinux.devices",
     .reference = "H25",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "SELinux lets containers use the nodes",
     .reads = "/sys/fs/selinux/{enforce,booleans/container_use_devices}, policy modules",
     .cause = "Containers may not open nodes with this label: EACCES in the container, no error on "
              "the host.",
     .remedy = "sudo setsebool -P container_use_devices 1  # or install nvidia-container-selinux",
     .judge = judge_selinux,
     .fix = fix_selinux},
};

}  // namespace

std::span<const Check> service_checks() {
  return kServicesChecks;
}

}  // namespace gantry::doctor
