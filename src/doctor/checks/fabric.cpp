// SPDX-License-Identifier: Apache-2.0
// NVLink, NVSwitch and the daemons that manage them.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/checks/nvswitch_internal.hpp"
#include "doctor/engine/fix_steps.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

Finding judge_manager(const Facts& f) {
  const auto* obstacle = f.obstacle(health::ComputeObstacleKind::FabricNotReady);
  const auto switches = f.nvswitches();
  if (switches.empty() && obstacle == nullptr) return skip("no NVSwitch in this machine");
  const bool runs = f.running("nv-fabricmanager");
  const std::vector<Evidence> read{
      {"/sys/bus/pci/devices", fmt::format("{} NVSwitch(es)", switches.size())},
      {"/proc/*/comm", runs ? "nv-fabricmanager runs" : "no nv-fabricmanager"}};
  if (obstacle == nullptr) return ok("the fabric manager runs", read);
  auto finding = fail(obstacle->cause, read);
  return runs ? std::move(finding).advise("sudo systemctl restart nvidia-fabricmanager") : finding;
}

Steps fix_manager(const Facts&) {
  return {RunProgram{{"systemctl", "enable", "--now", "nvidia-fabricmanager"}}};
}

// Reads "Fabric Manager version is : 580.95.05" from its log; the last one counts.
std::string manager_version(std::string_view log) {
  constexpr std::string_view kMark = "Fabric Manager version is";
  const auto at = log.rfind(kMark);
  if (at == std::string_view::npos) return "";
  auto rest = log.substr(at + kMark.size());
  rest = rest.substr(0, rest.find('\n'));
  const auto colon = rest.find(':');
  return colon == std::string_view::npos ? "" : std::string(trim(rest.substr(colon + 1)));
}

Finding judge_version(const Facts& f) {
  if (f.nvswitches().empty()) return skip("no NVSwitch in this machine");
  constexpr std::string_view kLog = "/var/log/fabricmanager.log";
  const auto version = manager_version(f.host().read(kLog, std::size_t{64} << 20).value_or(""));
  if (version.empty()) return skip("the fabric manager's log does not contain its version");
  const auto& driver = f.inventory().driver.version;
  if (driver.empty()) return skip("the nvidia module is not loaded");
  const std::vector<Evidence> read{{std::string(kLog), version},
                                   {"/proc/driver/nvidia/version", driver}};
  if (version == driver) return ok("fabric manager and driver have the same version", read);
  return fail(fmt::format("the fabric manager is {}, the driver {}", version, driver), read)
      .advise(fmt::format("sudo apt install nvidia-fabricmanager={}-1 && sudo systemctl restart "
                          "nvidia-fabricmanager",
                          driver));
}

Steps fix_version(const Facts& f) {
  if (!f.installed("apt-get")) return {};
  auto steps = install_package(f, "nvidia-fabricmanager=" + f.inventory().driver.version + "-1");
  steps.emplace_back(RunProgram{{"systemctl", "restart", "nvidia-fabricmanager"}});
  return steps;
}

Finding judge_subnet(const Facts& f) {
  const bool fifth =
      any_gpu(f, [](const model::Gpu& gpu) { return gpu.architecture == "Blackwell"; });
  if (!fifth || (!on_nvswitch(f) && !f.running("nv-fabricmanager"))) {
    return skip("no NVLink 5 fabric in this machine");
  }
  const std::vector<Evidence> read{
      {"/proc/*/comm", f.running("nvlsm") ? "nvlsm runs" : "no nvlsm"},
      {"/sys/module/ib_umad", f.module_loaded("ib_umad") ? "present" : "(absent)"}};
  if (!f.module_loaded("ib_umad"))
    return fail("ib_umad is not loaded: the fabric cannot start", read);
  if (!f.running("nvlsm")) return fail("the NVLink subnet manager does not run", read);
  return ok("the NVLink subnet manager runs", read);
}

Steps fix_subnet(const Facts&) {
  return {LoadModule{"ib_umad"}, RunProgram{{"systemctl", "restart", "nvidia-fabricmanager"}}};
}

Finding judge_imex(const Facts& f) {
  constexpr std::string_view kNodes = "/etc/nvidia-imex/nodes_config.cfg";
  const auto text = f.host().read(kNodes, 1 << 20);
  bool nodes = false;
  for (auto line : lines(text.ok() ? std::string_view(*text) : std::string_view())) {
    line = trim(line);
    nodes = nodes || (!line.empty() && line.front() != '#');
  }
  if (!nodes) return skip("no IMEX domain is configured");
  const bool runs = f.running("nvidia-imex");
  const std::vector<Evidence> read{{std::string(kNodes), "has nodes"},
                                   {"/proc/*/comm", runs ? "nvidia-imex runs" : "no nvidia-imex"}};
  if (runs) return ok("the IMEX daemon runs", read);
  return warn("an IMEX domain is configured, but nvidia-imex does not run", read);
}

Steps fix_imex(const Facts&) {
  return {RunProgram{{"systemctl", "enable", "--now", "nvidia-imex"}}};
}

constexpr Check kFabricChecks[] = {
    {.id = "fabric.manager",
     .reference = "H30",
     .area = Area::Fabric,
     .fix_class = FixClass::OnRequest,
     .title = "the fabric manager runs where there are NVSwitches",
     .reads = "/sys/bus/pci/devices (class 0680), /proc/*/comm",
     .cause = "It is not installed or not started. CUDA says 802 \"system not yet initialized\", "
              "torch.cuda.is_available() is False, while nvidia-smi works.",
     .remedy = health::kStartFabricManager,
     .judge = judge_manager,
     .fix = fix_manager},
    {.id = "fabric.version",
     .reference = "H30",
     .area = Area::Fabric,
     .fix_class = FixClass::OnRequest,
     .title = "fabric manager and driver have the same version",
     .reads = "/var/log/fabricmanager.log, /proc/driver/nvidia/version",
     .cause = "Only one of the two was upgraded; the fabric manager refuses another version.",
     .remedy = "install the nvidia-fabricmanager package of the driver's version",
     .judge = judge_version,
     .fix = fix_version,
     .by_hand = "gantry can install a package of a given version with apt only"},
    {.id = "fabric.subnet-manager",
     .reference = "H31",
     .area = Area::Fabric,
     .fix_class = FixClass::OnRequest,
     .title = "the NVLink 5 subnet manager runs",
     .reads = "/proc/*/comm, /sys/module/ib_umad",
     .cause = "nvlsm or ib_umad is missing: the fabric state stays \"In progress\", CUDA says 802.",
     .remedy = "sudo modprobe ib_umad && sudo systemctl restart nvidia-fabricmanager",
     .judge = judge_subnet,
     .fix = fix_subnet},
    {.id = "fabric.imex",
     .reference = "H31",
     .area = Area::Fabric,
     .fix_class = FixClass::OnRequest,
     .title = "the IMEX daemon runs where a domain is configured",
     .reads = "/etc/nvidia-imex/nodes_config.cfg, /proc/*/comm",
     .cause = "The daemon is not started: memory cannot be shared between nodes.",
     .remedy = "sudo systemctl enable --now nvidia-imex",
     .judge = judge_imex,
     .fix = fix_imex},
};

}  // namespace

std::span<const Check> fabric_checks() {
  return kFabricChecks;
}

}  // namespace gantry::doctor
