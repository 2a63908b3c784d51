// SPDX-License-Identifier: Apache-2.0
// The installed driver: can the module be loaded, now and after the next boot?
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/preflight/modprobe_config.hpp"
#include "install/preflight/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::doctor {
namespace {

using kernel_module::find_module_file;
using kernel_module::module_is_signed;
using kernel_module::newer_release;
using kernel_module::parse_option_number;

Finding judge_kernel(const Facts& f) {
  const auto release = f.kernel_release();
  if (release.empty()) return skip("the kernel's release is not known");
  const auto file = find_module_file(f.host(), release, "nvidia");
  if (f.driver_loaded()) return ok(fmt::format("loaded into kernel {}", release));
  if (f.gpu_functions().empty()) return skip("no GPU on the bus");
  const std::vector<Evidence> read{
      f.read("/proc/sys/kernel/osrelease"),
      {fmt::format("/lib/modules/{}", release), file.empty() ? "no nvidia.ko" : file}};
  if (!file.empty()) return ok("there is a module for the running kernel", read);
  return fail(fmt::format("there is no nvidia module for kernel {}", release), read);
}

// DKMS can build the driver for a kernel only if its headers are installed.
Steps build_module(const Facts& f, const std::string& release) {
  if (!f.installed("dkms") || !f.host().exists("/var/lib/dkms/nvidia")) return {};
  Steps steps;
  if (!f.host().exists(fmt::format("/lib/modules/{}/build", release))) {
    if (!f.installed("apt-get")) return {};
    add(steps, install_package(f, "linux-headers-" + release));
  }
  steps.emplace_back(RunProgram{{"dkms", "autoinstall", "-k", release}, kBuildDeadline});
  return steps;
}

Steps fix_kernel(const Facts& f) {
  auto steps = build_module(f, f.kernel_release());
  if (!steps.empty()) steps.emplace_back(LoadModule{"nvidia"});
  return steps;
}

// Installed kernels, newer than the running one, for which there is no driver.
std::vector<std::string> kernels_without_driver(const Facts& f) {
  std::vector<std::string> found;
  for (const auto& name : f.host().list("/lib/modules").value_or({})) {
    const bool is_kernel = f.host().exists("/lib/modules/" + name + "/modules.dep");
    if (is_kernel && newer_release(name, f.kernel_release()) &&
        find_module_file(f.host(), name, "nvidia").empty()) {
      found.push_back(name);
    }
  }
  return found;
}

Finding judge_next_kernel(const Facts& f) {
  const auto running = f.kernel_release();
  if (running.empty() || !f.host().exists("/lib/modules")) return skip("there is no /lib/modules");
  if (find_module_file(f.host(), running, "nvidia").empty()) {
    return skip("the driver is not installed below /lib/modules");
  }
  Tally tally;
  for (const auto& name : kernels_without_driver(f)) {
    tally.found(name, {"/lib/modules/" + name, "no nvidia.ko"});
  }
  if (!tally.any_bad()) return ok("no newer kernel without the driver is installed");
  return warn(fmt::format("installed, but without an nvidia module: kernel {}", tally.who()),
              tally.bad)
      .advise(tally.command("sudo apt install linux-headers-@ && sudo dkms autoinstall -k @"));
}

Steps fix_next_kernel(const Facts& f) {
  Steps steps;
  for (const auto& name : kernels_without_driver(f)) add(steps, build_module(f, name));
  return steps;
}

Finding judge_headers(const Facts& f) {
  const auto release = f.kernel_release();
  if (!f.host().exists("/var/lib/dkms/nvidia")) return skip("the driver is not built by DKMS");
  const auto build = fmt::format("/lib/modules/{}/build", release);
  if (f.host().exists(build)) return ok("kernel headers are installed", {{build, "present"}});
  return warn("the running kernel's headers are missing: DKMS cannot build the driver",
              {{build, "(absent)"}})
      .advise(fmt::format("sudo apt install linux-headers-{}", release));
}

Finding judge_secure_boot(const Facts& f) {
  constexpr std::string_view kVariable =
      "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
  const auto raw = f.host().read(kVariable, 64);
  const bool on = raw.ok() && raw->size() >= 5 && (*raw)[4] == 1;
  const bool enforced = f.value("/sys/module/module/parameters/sig_enforce") == "Y";
  const std::vector<Evidence> read{
      {std::string(kVariable), raw.ok() ? (on ? "on" : "off") : "(absent)"},
      f.read("/sys/kernel/security/lockdown"),
      f.read("/sys/module/module/parameters/sig_enforce")};
  if (!on && !enforced) return ok("secure boot is off", read);
  // Even without secure boot, a kernel can be built or booted to accept signed modules only.
  const std::string rule = on ? "secure boot is on" : "this kernel accepts signed modules only";
  if (f.driver_loaded()) return ok(rule + " and the module was accepted", read);
  const auto file = find_module_file(f.host(), f.kernel_release(), "nvidia");
  if (file.empty()) return skip(rule + ", but no module is installed", read);
  for (std::string_view message : {"Key was rejected by service", "Required key not available",
                                   "is not signed with a trusted key", "unavailable key"}) {
    const auto refused = f.log_lines_with(message);
    if (!refused.empty()) {
      return fail(rule + " and the nvidia module was refused", {{"kernel log", refused.back()}});
    }
  }
  const auto signature = module_is_signed(f.host(), file);
  if (!signature) return skip(rule + "; the module's signature cannot be read", read);
  if (!*signature) return fail(rule + " and the nvidia module is not signed", read);
  return ok(rule + " and the module is signed", read);
}

bool blocks_nvidia(std::string_view line) {
  return preflight::forbids_module(line, "nvidia");
}

Finding judge_blacklist(const Facts& f) {
  Tally tally;
  for (const auto& line : f.modprobe_lines()) {
    if (blocks_nvidia(line.value)) tally.found(line.source, line);
  }
  if (!tally.any_bad()) {
    return ok("modprobe may load nvidia", {{"/etc/modprobe.d", "no line blocks nvidia"}});
  }
  std::sort(tally.keys.begin(), tally.keys.end());
  tally.keys.erase(std::unique(tally.keys.begin(), tally.keys.end()), tally.keys.end());
  auto finding =
      f.driver_loaded()
          ? warn(fmt::format("modprobe will not load nvidia at the next boot: {}", tally.who()),
                 tally.bad)
          : fail(fmt::format("modprobe is configured not to load nvidia: {}", tally.who()),
                 tally.bad);
  finding.remedy =
      tally.command("sudo sed -i -E 's/^ *(blacklist|install|alias) +nvidia( |$)/# &/' @") +
      " && (sudo update-initramfs -u || sudo dracut -f)";
  return finding;
}

Steps fix_blacklist(const Facts& f) {
  Steps steps;
  std::set<std::string> files;
  for (const auto& line : f.modprobe_lines()) {
    if (!blocks_nvidia(line.value) || !files.insert(line.source).second) continue;
    add(steps, rewrite_lines(f, line.source, "comment out the lines that block nvidia",
                             [](std::string& text) {
                               if (blocks_nvidia(trim(text))) text.insert(0, "# ");
                             }));
  }
  if (!steps.empty()) add(steps, rebuild_initramfs(f));
  return steps;
}

// Compares "options nvidia NVreg_Name=value ..." with the parameter Name of the running driver.
Finding judge_options(const Facts& f) {
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded");
  Tally tally;
  for (const auto& line : f.modprobe_lines()) {
    const auto words = split(line.value, ' ');
    if (words.size() < 3 || words[0] != "options" || words[1] != "nvidia") continue;
    for (auto word : words) {
      const auto equals = word.find('=');
      if (!word.starts_with("NVreg_") || equals == std::string_view::npos) continue;
      const auto wanted = parse_option_number(word.substr(equals + 1));
      const auto running = f.param_number(word.substr(6, equals - 6));
      if (!wanted || !running) continue;
      if (*wanted == *running) {
        tally.good(line);
      } else {
        tally.found(fmt::format("{} ({} runs)", word, *running), line);
      }
    }
  }
  if (!tally.any_bad()) {
    return ok(fmt::format("{} configured option{} in effect", tally.well.size(),
                          tally.well.size() == 1 ? " is" : "s are"));
  }
  tally.bad.push_back({"/proc/driver/nvidia/params", "other values"});
  return info(fmt::format("configured after the module was loaded: {}", tally.who()), tally.bad);
}

constexpr Check kInstallChecks[] = {
    {.id = "module.kernel",
     .reference = "H8",
     .area = Area::Modules,
     .fix_class = FixClass::OnRequest,
     .title = "there is a module for the running kernel",
     .reads = "/proc/sys/kernel/osrelease, /lib/modules/RELEASE",
     .cause = "The kernel was upgraded and the driver was not built for it: modprobe says \"Module "
              "nvidia not found\" or \"Invalid module format\".",
     .remedy =
         "sudo apt install linux-headers-$(uname -r) && sudo dkms autoinstall && sudo modprobe "
         "nvidia",
     .judge = judge_kernel,
     .fix = fix_kernel,
     .by_hand = "the driver is not built by DKMS here, or its kernel headers cannot be installed"},
    {.id = "module.next-kernel",
     .reference = "H8",
     .area = Area::Modules,
     .fix_class = FixClass::OnRequest,
     .title = "newer installed kernels have the driver too",
     .reads = "/lib/modules/*",
     .cause = "The next boot starts a newer kernel, but DKMS could not build the driver for it: "
              "the GPUs are missing after that boot.",
     .remedy = "sudo dkms autoinstall",
     .judge = judge_next_kernel,
     .fix = fix_next_kernel,
     .by_hand = "the driver is not built by DKMS here, or its kernel headers cannot be installed"},
    {.id = "module.headers",
     .reference = "H9",
     .area = Area::Modules,
     .title = "kernel headers are there for DKMS",
     .reads = "/lib/modules/RELEASE/build, /var/lib/dkms/nvidia",
     .cause =
         "The header package of this kernel is not installed, or the repository no longer has it.",
     .remedy = "sudo apt install linux-headers-$(uname -r)",
     .judge = judge_headers},
    {.id = "module.secure-boot",
     .reference = "H7",
     .area = Area::Modules,
     .title = "secure boot is off or accepts the module",
     .reads = "efivars SecureBoot, lockdown, sig_enforce, nvidia.ko",
     .cause =
         "The firmware accepts signed modules only, and this one is not signed with an enrolled "
         "key: \"Key was rejected by service\" or \"Required key not available\".",
     .remedy = preflight::kEnrolKey,
     .judge = judge_secure_boot},
    {.id = "module.blacklist",
     .reference = "H10",
     .area = Area::Modules,
     .fix_class = FixClass::OnRequest,
     .title = "modprobe may load nvidia",
     .reads = "/etc/modprobe.d, /run/modprobe.d, /usr/lib/modprobe.d",
     .cause = "A line left by a passthrough or laptop set-up forbids the module.",
     .remedy = "comment the line out, then sudo update-initramfs -u",
     .judge = judge_blacklist,
     .fix = fix_blacklist,
     .by_hand = "the line is in a file that cannot be changed"},
    {.id = "module.options",
     .reference = "H24",
     .area = Area::Modules,
     .fix_class = FixClass::OnRequest,
     .title = "configured module options are in effect",
     .reads = "/etc/modprobe.d (NVreg_*), /proc/driver/nvidia/params",
     .cause =
         "Options are read when the module is loaded; these were added later, or the initramfs "
         "contains an older copy.",
     .remedy = "sudo update-initramfs -u && sudo reboot",
     .judge = judge_options,
     .fix = rebuild_initramfs,
     .by_hand = "neither update-initramfs nor dracut is installed",
     .afterwards = "reboot, or reload the module while no program uses a GPU"},
};

}  // namespace

std::span<const Check> install_checks() {
  return kInstallChecks;
}

}  // namespace gantry::doctor
