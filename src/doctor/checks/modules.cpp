// SPDX-License-Identifier: Apache-2.0
// The driver's kernel modules that are loaded now.
#include "base/core/text.hpp"
#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"
#include "install/preflight/driver_branches.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

bool any_gpu_for_containers(const Facts& f) {
  const auto gpus = f.gpu_functions();
  return std::any_of(gpus.begin(), gpus.end(),
                     [](const model::PciFunction& gpu) { return !contains(gpu.driver, "vfio"); });
}

Finding judge_loaded(const Facts& f) {
  if (f.guest().wsl) return skip("WSL uses the Windows driver");
  const auto version = f.value("/proc/driver/nvidia/version");
  if (f.driver_loaded()) {
    const auto text = version.value_or("(unreadable)");
    return ok(fmt::format("nvidia {} is loaded", f.inventory().driver.version),
              {{"/sys/module/nvidia", "present"},
               {"/proc/driver/nvidia/version", text.substr(0, text.find('\n'))}});
  }
  if (!any_gpu_for_containers(f)) return skip("there is no GPU that containers could use");
  return fail("the nvidia module is not loaded",
              {f.read("/sys/module/nvidia/initstate"),
               {"/proc/driver/nvidia/version", version ? "present" : "(absent)"}})
      .unless_explained_by("module.secure-boot module.kernel module.blacklist pci.nouveau");
}

// If another check blocks the module, modprobe would only report the same fault again.
Steps fix_loaded(const Facts& f) {
  if (f.module_loaded("nouveau")) return {};
  for (std::string_view id : {"module.kernel", "module.secure-boot", "module.blacklist"}) {
    if (find_check(id)->judge(f).verdict == Verdict::Fail) return {};
  }
  return {LoadModule{"nvidia"}};
}

Finding judge_refcnt(const Facts& f) {
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded");
  const auto count = f.value("/sys/module/nvidia/refcnt");
  if (count)
    return ok("the kernel counts users of the module", {f.read("/sys/module/nvidia/refcnt")});
  return info("users of the module: unknown (not zero)", {f.read("/sys/module/nvidia/refcnt")});
}

// A kernel without CONFIG_MODULE_UNLOAD does not count users and never unloads a module.
bool can_unload(const Facts& f) {
  return f.host().exists("/sys/module/nvidia/refcnt");
}

Finding judge_mismatch(const Facts& f) {
  const auto& driver = f.inventory().driver;
  if (driver.version.empty()) return skip("the nvidia module is not loaded");
  if (driver.library_version.empty()) return skip("no driver libraries were found");
  const std::vector<Evidence> read{
      {"/proc/driver/nvidia/version", driver.version},
      {driver.library_directory.empty() ? "driver libraries" : driver.library_directory,
       driver.library_version}};
  const auto* obstacle = f.obstacle(health::ComputeObstacleKind::VersionMismatch);
  if (obstacle == nullptr) {
    return ok(fmt::format("module and libraries are both {}", driver.version), read);
  }
  auto finding = fail(obstacle->cause, read);
  return can_unload(f) ? finding : std::move(finding).advise("sudo reboot");
}

// Only while no program uses the GPUs: otherwise only some of the modules would be unloaded.
Steps fix_mismatch(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  const auto users = parse_u64(f.value("/sys/module/nvidia_uvm/refcnt").value_or("0"));
  const bool busy = users.value_or(0) > 0 ||
                    std::any_of(gpus.begin(), gpus.end(),
                                [](const model::Gpu& gpu) { return !gpu.processes.empty(); });
  if (busy || !can_unload(f)) return {};
  return {RunProgram{{"modprobe", "-r", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia"}},
          LoadModule{"nvidia"}, LoadModule{"nvidia-uvm"}};
}

Finding judge_uvm_module(const Facts& f) {
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded");
  if (is_vgpu_host(f)) return skip("the vGPU host driver has no nvidia_uvm: see vgpu.host-driver");
  const auto major = f.major("nvidia-uvm");
  const std::vector<Evidence> read{
      {"/sys/module/nvidia_uvm", f.module_loaded("nvidia_uvm") ? "present" : "(absent)"},
      {"/proc/devices", major ? fmt::format("{} nvidia-uvm", *major) : "no nvidia-uvm"}};
  const auto* obstacle = f.obstacle(health::ComputeObstacleKind::UvmNotLoaded);
  if (major && obstacle == nullptr) return ok("nvidia_uvm is loaded", read);
  return fail(obstacle == nullptr ? "nvidia_uvm is not loaded" : obstacle->cause, read);
}

Steps fix_uvm(const Facts&) {
  return {LoadModule{"nvidia-uvm"}};
}

// The name that NVML gives, or the one that goes with the device id.
std::string architecture_of(const Facts& f, const model::PciFunction& function) {
  for (const auto& gpu : f.inventory().gpus) {
    if (gpu.pci == function.address && !gpu.architecture.empty()) return gpu.architecture;
  }
  return std::string(preflight::to_string(preflight::architecture_of_device(function.device)));
}

bool is_wrong_flavour(preflight::Architecture architecture, bool open) {
  if (architecture == preflight::Architecture::Unknown) return false;
  const auto branches = preflight::branches_of(architecture);
  return open ? branches.first_open == 0 : branches.needs_open;
}

Finding judge_flavour(const Facts& f) {
  const auto flavour = f.inventory().driver.flavour;
  if (flavour == model::ModuleFlavour::Unknown) return skip("the module's flavour is not known");
  const bool open = flavour == model::ModuleFlavour::Open;
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    const auto name = architecture_of(f, gpu);
    const bool wrong = is_wrong_flavour(preflight::architecture_by_name(name), open);
    Evidence read{pci_path(gpu.address), fmt::format("10de:{:04x} {}", gpu.device, name)};
    if (wrong) {
      tally.found(fmt::format("{} ({})", gpu.address.sysfs(), name), std::move(read));
    } else {
      tally.good(std::move(read));
    }
  }
  const std::string_view word = open ? "open" : "proprietary";
  tally.good({"/proc/driver/nvidia/version", std::string(word)});
  if (!tally.any_bad())
    return ok(fmt::format("the {} module supports the cards", word), tally.well);
  return fail(fmt::format("the {} kernel module is required for {}", open ? "proprietary" : "open",
                          tally.who()),
              tally.bad)
      .advise(open ? "install the proprietary module: nvidia-installer "
                     "--kernel-module-type=proprietary, or the package without -open"
                   : "install the open module: nvidia-installer --kernel-module-type=open, or "
                     "the package with -open in its name");
}

constexpr std::string_view kFirmwarePath = "/sys/module/firmware_class/parameters/path";

bool has_firmware(const Facts& f, const std::string& base) {
  const auto names = f.host().list(fmt::format("{}/nvidia/{}", base, f.inventory().driver.version));
  return names.ok() && std::any_of(names->begin(), names->end(), [](const auto& name) {
           return name.starts_with("gsp") && contains(name, ".bin");
         });
}

// The directories that the kernel searches.
std::vector<std::string> firmware_bases(const Facts& f) {
  std::vector<std::string> bases;
  const auto custom = f.value(kFirmwarePath).value_or("");
  if (custom.starts_with('/')) bases.push_back(custom);
  bases.insert(bases.end(), {"/lib/firmware/updates", "/lib/firmware"});
  return bases;
}

// A directory with the firmware that the kernel does not search; "" if there is none.
std::string firmware_elsewhere(const Facts& f) {
  std::vector<std::string> bases{"/run/nvidia/driver/lib/firmware", "/usr/local/nvidia/firmware",
                                 "/usr/lib/firmware"};
  const auto& root = f.inventory().driver.root;
  if (root.size() > 1) {
    bases.insert(bases.begin(), {root + "/lib/firmware", root + "/firmware"});
  }
  const auto found = std::find_if(bases.begin(), bases.end(),
                                  [&](const auto& base) { return has_firmware(f, base); });
  return found == bases.end() ? "" : *found;
}

Finding judge_firmware(const Facts& f) {
  const auto& version = f.inventory().driver.version;
  if (version.empty()) return skip("the nvidia module is not loaded");
  const auto& gpus = f.inventory().gpus;
  const bool initialised = std::any_of(
      gpus.begin(), gpus.end(), [](const model::Gpu& gpu) { return !gpu.gsp_firmware.empty(); });
  if (!initialised && f.inventory().driver.flavour != model::ModuleFlavour::Open) {
    return skip("no card of this machine runs GSP firmware");
  }
  std::vector<Evidence> read;
  for (const auto& base : firmware_bases(f)) {
    const auto directory = fmt::format("{}/nvidia/{}", base, version);
    if (has_firmware(f, base)) return ok("GSP firmware is installed", {{directory, "gsp*.bin"}});
    read.push_back({directory, "no gsp*.bin"});
  }
  auto finding = initialised
                     ? warn("GSP firmware runs, but its file is gone: the next load fails", read)
                     : fail("GSP firmware is missing: the GPU cannot start", read);
  const auto elsewhere = firmware_elsewhere(f);
  finding.remedy = elsewhere.empty()
                       ? fmt::format("reinstall driver {}", version)
                       : fmt::format("echo -n {} | sudo tee {}", elsewhere, kFirmwarePath);
  // An upgrade of the packages replaces the firmware together with the libraries.
  return initialised ? std::move(finding).unless_explained_by("module.mismatch") : finding;
}

// Does not change a path that is already set: other drivers may have their firmware there.
Steps fix_firmware(const Facts& f) {
  const auto custom = f.value(kFirmwarePath);
  const auto elsewhere = firmware_elsewhere(f);
  if (!custom || elsewhere.empty() || (!custom->empty() && f.host().exists(*custom))) return {};
  return {WriteValue{std::string(kFirmwarePath), elsewhere}};
}

constexpr Check kModulesChecks[] = {
    {.id = "module.loaded",
     .reference = "H10",
     .area = Area::Modules,
     .fix_class = FixClass::Automatic,
     .title = "the nvidia module is loaded",
     .reads = "/sys/module/nvidia{,/initstate}, /proc/driver/nvidia/version",
     .cause =
         "The driver is not installed, or loading it is blocked: see pci.nouveau, "
         "module.secure-boot, module.kernel, module.blacklist. NVML says \"Driver Not Loaded\".",
     .remedy = health::kLoadDriver,
     .judge = judge_loaded,
     .fix = fix_loaded,
     .by_hand = "another fault blocks the module, fix it first: pci.nouveau, "
                "module.kernel, module.secure-boot or module.blacklist"},
    {.id = "module.refcnt",
     .reference = "H37",
     .area = Area::Modules,
     .title = "the kernel counts the module's users",
     .reads = "/sys/module/nvidia/refcnt",
     .cause = "The kernel was built without CONFIG_MODULE_UNLOAD, so there is no such count. Tools "
              "that ask for it say \"driver not loaded\" although it is.",
     .remedy = "nothing to do; test for /proc/driver/nvidia/version instead of refcnt",
     .judge = judge_refcnt},
    {.id = "module.mismatch",
     .reference = "H11",
     .area = Area::Modules,
     .fix_class = FixClass::OnRequest,
     .title = "module and libraries have the same version",
     .reads = "/proc/driver/nvidia/version, libnvidia-ml.so.*, libcuda.so.*",
     .cause =
         "The packages were upgraded while the old module stayed loaded (unattended upgrades). "
         "nvidia-smi says \"Failed to initialize NVML: Driver/library version mismatch\".",
     .remedy = health::kReloadDriver,
     .judge = judge_mismatch,
     .fix = fix_mismatch,
     .by_hand = "programs use the GPUs, or this kernel cannot unload a module"},
    {.id = "module.uvm",
     .reference = "H23",
     .area = Area::Modules,
     .fix_class = FixClass::Automatic,
     .title = "nvidia_uvm is loaded",
     .reads = "/sys/module/nvidia_uvm, /proc/devices",
     .cause =
         "Nothing loads it at boot; usually nvidia-modprobe does on first use. CUDA fails with "
         "999 \"unknown error\" or finds no device.",
     .remedy = health::kLoadUvm,
     .judge = judge_uvm_module,
     .fix = fix_uvm},
    {.id = "module.flavour",
     .reference = "H12",
     .area = Area::Modules,
     .title = "the module's flavour matches the cards",
     .reads = "/proc/driver/nvidia/version (the word Open), PCI device ids",
     .cause = "Blackwell and newer cards need the open kernel module, cards older than Turing the "
              "proprietary one.",
     .remedy = "install the other flavour of the same driver version",
     .judge = judge_flavour},
    {.id = "module.firmware",
     .reference = "H13",
     .area = Area::Modules,
     .fix_class = FixClass::Automatic,
     .title = "GSP firmware of the running version is installed",
     .reads = "/sys/module/firmware_class/parameters/path, /lib/firmware/nvidia/VERSION/gsp*.bin",
     .cause =
         "The firmware package is missing, or the driver is in a container and the kernel does "
         "not know its firmware directory. The log says \"RmInitAdapter failed\".",
     .remedy = "reinstall the driver, or: echo DIRECTORY | sudo tee "
               "/sys/module/firmware_class/parameters/path",
     .judge = judge_firmware,
     .fix = fix_firmware,
     .by_hand = "the driver's files do not contain the firmware, or the kernel's firmware path is "
                "set for another driver"},
};

}  // namespace

std::span<const Check> module_checks() {
  return kModulesChecks;
}

}  // namespace gantry::doctor
