// SPDX-License-Identifier: Apache-2.0
// vGPU hosts: which of the two drivers is loaded, and whether it can do what the machine is for. A
// kernel holds either the plain driver or the vGPU host driver, never both.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/tally.hpp"
#include "vm/vgpu/plan.hpp"
#include "vm/vgpu/read_host.hpp"
#include "vm/vgpu/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace gantry::doctor {
namespace {

constexpr std::string_view kVgpuConfig = "/usr/share/nvidia/vgpu/vgpuConfig.xml";
constexpr std::size_t kVgpuConfigLimit = std::size_t{64} << 20;
constexpr std::string_view kDpkgStatus = "/var/lib/dpkg/status";
constexpr std::size_t kDpkgStatusLimit = std::size_t{64} << 20;

bool host_driver_loaded(const Facts& f) {
  return f.module_loaded("nvidia_vgpu_vfio");
}

Evidence host_module(const Facts& f) {
  return {"/sys/module/nvidia_vgpu_vfio", host_driver_loaded(f) ? "present" : "(absent)"};
}

struct DriverPackage {
  std::string list;  // where the names of the installed packages are from; "" if there are none
  std::string name;  // "" if the driver is not from a package
};

// Debian's list of packages is text; the one of rpm is a database.
std::vector<std::string> dpkg_packages(std::string_view status) {
  constexpr std::string_view kPackage = "Package: ";
  std::vector<std::string> names;
  std::string name;
  for (const auto line : lines(status)) {
    if (line.starts_with(kPackage)) name = line.substr(kPackage.size());
    if (line == "Status: install ok installed") names.push_back(name);
  }
  return names;
}

// The one that says most about the driver: "NVIDIA-vGPU-rhel-9.4", "nvidia-driver-550",
// "kmod-nvidia-latest-dkms".
std::string find_driver_package(const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 8> kStarts{
      "nvidia-vgpu",         "nvidia-driver", "nvidia-open",  "nvidia-headless",
      "xorg-x11-drv-nvidia", "kmod-nvidia",   "akmod-nvidia", "nvidia-kernel"};
  for (const auto start : kStarts) {
    for (const auto& name : names) {
      if (to_lower(name).starts_with(start)) return name;
    }
  }
  return "";
}

DriverPackage driver_package(const Facts& f) {
  const auto status = f.host().read(kDpkgStatus, kDpkgStatusLimit);
  const auto debs = status.ok() ? dpkg_packages(*status) : std::vector<std::string>{};
  if (!debs.empty()) return {std::string(kDpkgStatus), find_driver_package(debs)};
  const auto rpm = f.program_output({"rpm", "-qa", "--queryformat", "%{NAME}\n"});
  if (!rpm) return {};
  std::vector<std::string> names;
  for (const auto line : lines(*rpm)) names.emplace_back(trim(line));
  return {"rpm -qa", find_driver_package(names)};
}

Evidence evidence_of(const DriverPackage& package) {
  if (package.list.empty()) return {std::string(kDpkgStatus), "no list, and none of rpm"};
  return {package.list,
          package.name.empty() ? "no package: installed by a .run file" : package.name};
}

// "driver 550.90.07 (package nvidia-driver-550)"
std::string describe_driver(const Facts& f, const DriverPackage& package) {
  const auto& version = f.inventory().driver.version;
  return fmt::format("{}{}", version.empty() ? "the driver" : "driver " + version,
                     package.name.empty() ? "" : fmt::format(" (package {})", package.name));
}

// Why this machine should have vGPUs.
std::vector<Evidence> vgpu_wishes(const Facts& f) {
  std::vector<Evidence> found;
  const auto intent = vgpu::read_intent(f.host());
  if (intent.ok() && !intent->vgpus.empty()) {
    found.push_back(
        {std::string(vgpu::kIntentPath),
         fmt::format("{} vGPU{}", intent->vgpus.size(), intent->vgpus.size() == 1 ? "" : "s")});
  }
  for (const auto* path :
       {"/usr/bin/nvidia-vgpud", "/usr/bin/nvidia-vgpu-mgr", "/usr/lib/nvidia/sriov-manage"}) {
    if (f.host().exists(path)) found.push_back({path, "present"});
  }
  return found;
}

// Why this machine should give GPUs to containers.
std::vector<Evidence> container_wishes(const Facts& f) {
  std::vector<Evidence> found;
  for (const auto* path : {"/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml",
                           "/etc/systemd/system/multi-user.target.wants/gantry-agent.service",
                           "/var/lib/kubelet/device-plugins/nvidia-gpu.sock"}) {
    if (f.host().exists(path)) found.push_back({path, "present"});
  }
  for (const auto* path : {"/etc/docker/daemon.json", "/etc/containerd/config.toml"}) {
    const auto text = f.host().read(path, 1U << 20U);
    if (text.ok() && contains(*text, "nvidia")) found.push_back({path, "names nvidia"});
  }
  return found;
}

bool has_cuda(const Facts& f) {
  const auto& files = f.inventory().files;
  return std::any_of(files.begin(), files.end(), [](const model::DriverFile& file) {
    return contains(file.path, "/libcuda.so");
  });
}

Finding judge_plain_driver(const Facts& f) {
  if (!f.driver_loaded()) return skip("no NVIDIA driver is loaded");
  auto read = vgpu_wishes(f);
  if (read.empty()) return skip("nothing on this machine asks for vGPUs");
  read.push_back(host_module(f));
  if (host_driver_loaded(f)) return ok("the vGPU host driver is loaded", read);
  const auto package = driver_package(f);
  read.push_back(evidence_of(package));
  return fail(
      fmt::format("this machine has vGPU tools, but {} is the plain driver and has no vGPUs",
                  describe_driver(f, package)),
      read);
}

Finding judge_host_driver(const Facts& f) {
  if (!host_driver_loaded(f)) return skip("this is not a vGPU host");
  auto read = container_wishes(f);
  if (read.empty()) return ok("no container asks for GPUs on this vGPU host", {host_module(f)});
  read.push_back(host_module(f));
  if (has_cuda(f)) return ok("the driver has CUDA for containers", read);
  read.push_back({"driver files", "no libcuda.so.1"});
  const auto package = driver_package(f);
  read.push_back(evidence_of(package));
  return fail(fmt::format("containers ask for GPUs, but {} is the vGPU host driver and has no CUDA",
                          describe_driver(f, package)),
              read);
}

// The vGPU host driver's list of all types names the models that have some. Without the list every
// model counts as one of them.
bool is_vgpu_model(std::string_view lower_case_list, const vgpu::VgpuGpu& gpu) {
  return lower_case_list.empty() ||
         contains(lower_case_list, fmt::format("deviceid=\"0x{:04x}\"", gpu.device));
}

// nvidia-vgpud tells the driver the types, then ends: whether it runs now says nothing.
struct ServiceRun {
  std::string state;    // for people; "" if systemd does not say
  bool failed = false;  // it ran and failed, did not run, or is not there
};

constexpr std::string_view kUnitProperties =
    "LoadState,ActiveState,Result,InactiveExitTimestampMonotonic";

ServiceRun vgpud_run(const Facts& f) {
  const auto output = f.program_output(
      {"systemctl", "show", "nvidia-vgpud.service", "--property", std::string(kUnitProperties)});
  if (!output) return {};
  std::map<std::string, std::string, std::less<>> values;
  for (const auto line : lines(*output)) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos)
      values.emplace(line.substr(0, equals), trim(line.substr(equals + 1)));
  }
  if (values["LoadState"].empty()) return {};
  if (values["LoadState"] == "not-found") return {"nvidia-vgpud is not a service here", true};
  if (values["LoadState"] == "masked") return {"nvidia-vgpud is masked", true};
  if (values["ActiveState"] == "failed")
    return {fmt::format("nvidia-vgpud failed ({})", values["Result"]), true};
  // systemd knows when it last started a unit since the machine started.
  if (values["InactiveExitTimestampMonotonic"] == "0")
    return {"nvidia-vgpud has not run since the machine started", true};
  return {"nvidia-vgpud has run", false};
}

Finding judge_types(const Facts& f) {
  if (!host_driver_loaded(f)) return skip("this is not a vGPU host");
  const auto list = to_lower(f.host().read(kVgpuConfig, kVgpuConfigLimit).value_or(""));
  Tally tally;
  for (const auto& gpu : vgpu::read_host(f.host())) {
    if (!is_vgpu_model(list, gpu)) continue;
    const Evidence read{pci_path(gpu.address), std::string(vgpu::describe(gpu.framework))};
    const auto driver = f.host().link(pci_path(gpu.address) + "/driver").value_or("");
    if (!driver.ends_with("/nvidia")) continue;
    if (gpu.framework == vgpu::Framework::None) {
      tally.found(gpu.label(), read);
    } else {
      tally.good(read);
    }
  }
  if (tally.empty()) return skip("no GPU that can have vGPUs is bound to the driver");
  if (!tally.any_bad()) return ok("every GPU that can have vGPUs offers types", tally.well);
  const auto vgpud = vgpud_run(f);
  if (!vgpud.state.empty()) tally.bad.push_back({"nvidia-vgpud.service", vgpud.state});
  return fail(
      fmt::format("no vGPU types on {}{}", tally.who(), vgpud.failed ? ": " + vgpud.state : ""),
      tally.bad);
}

std::vector<Action> fix_types(const Facts&) {
  return {RunProgram{{"systemctl", "restart", "nvidia-vgpud", "nvidia-vgpu-mgr"}}};
}

Finding judge_intent(const Facts& f) {
  const auto intent = vgpu::read_intent(f.host());
  const auto journal = vgpu::read_journal(f.host());
  if (!intent.ok() && intent.error().code() == Errc::Denied)
    return skip_needs_root(vgpu::kIntentPath);
  if (!intent.ok())
    return fail(intent.error().cause(), {{std::string(vgpu::kIntentPath), "damaged"}});
  if (journal.ok() && *journal) {
    return warn(
        fmt::format("`gantry vgpu {}` was interrupted", (*journal)->command),
        {{std::string(vgpu::kJournalPath), fmt::format("{} steps", (*journal)->steps.size())}});
  }
  if (intent->vgpus.empty()) return skip("no vGPUs are stored for this machine");
  const std::vector<Evidence> read{
      {std::string(vgpu::kIntentPath), fmt::format("{} vGPUs", intent->vgpus.size())}};
  const auto gpus = vgpu::read_host(f.host(), vgpu::read_known_types(f.host()));
  const auto plan = vgpu::plan_exact(gpus, intent->gpus(), intent->vgpus);
  if (!plan.ok()) return warn(plan.error().cause(), read);
  if (plan->steps.empty()) return ok("the stored vGPUs exist", read);
  return warn("vGPUs that should exist do not: they are lost at every reboot", read);
}

std::vector<Action> fix_intent(const Facts&) {
  return {RunProgram{{"gantry", "vgpu", "apply", "--restore"}}};
}

constexpr Check kVgpuChecks[] = {
    {.id = "vgpu.plain-driver",
     .reference = "V13",
     .area = Area::Guest,
     .title = "a machine that is to have vGPUs has the vGPU host driver",
     .reads = "/sys/module/nvidia_vgpu_vfio, /usr/bin/nvidia-vgpud, /var/lib/gantry/vgpu",
     .cause =
         "EAS-58343 (docs/vgpu.md). "
         "A kernel holds one NVIDIA driver. The plain one serves containers, MIG and shares. vGPUs "
         "need the vGPU host driver (nvidia_vgpu_vfio, nvidia-vgpud, nvidia-vgpu-mgr), which comes "
         "from NVIDIA's licensing portal only, as NVIDIA-Linux-x86_64-*-vgpu-kvm.run or as a "
         "package (nvidia-vgpu-*, as an rpm NVIDIA-vGPU-*).",
     .remedy = "cat /proc/driver/nvidia/version  # replace this driver by the vGPU host driver and "
               "reboot, or keep it and pass whole GPUs to virtual machines",
     .judge = judge_plain_driver},
    {.id = "vgpu.host-driver",
     .reference = "V13",
     .area = Area::Guest,
     .title = "a machine that is to have GPU containers has a driver with CUDA",
     .reads = "/sys/module/nvidia_vgpu_vfio, libcuda.so.1, CDI files, engine configurations",
     .cause =
         "EAS-58343 (docs/vgpu.md). "
         "The vGPU host driver divides GPUs for virtual machines. It has NVML and nvidia-smi, but "
         "no libcuda.so.1: no container on this host can compute.",
     .remedy = "cat /proc/driver/nvidia/version  # run the containers in a guest with a vGPU, or "
               "replace this driver by the plain one and use MIG or gantry share",
     .judge = judge_host_driver},
    {.id = "vgpu.types",
     .reference = "V12",
     .area = Area::Guest,
     .fix_class = FixClass::OnRequest,
     .title = "every GPU of a vGPU host that can have vGPUs offers types",
     .reads = "/sys/class/mdev_bus, nvidia/creatable_vgpu_types, sriov_totalvfs, vgpuConfig.xml, "
              "nvidia-vgpud.service",
     .cause = "nvidia-vgpud has not run since the driver was loaded, or the GPU has no vGPUs.",
     .remedy = "sudo systemctl restart nvidia-vgpud nvidia-vgpu-mgr && sudo journalctl -b -u "
               "nvidia-vgpud",
     .judge = judge_types,
     .fix = fix_types},
    {.id = "vgpu.restored",
     .reference = "V12",
     .area = Area::Guest,
     .fix_class = FixClass::OnRequest,
     .title = "the vGPUs that should exist exist",
     .reads = "/var/lib/gantry/vgpu, /sys/bus/mdev/devices, nvidia/current_vgpu_type",
     .cause = "The kernel forgets vGPUs at a reboot, or a change was interrupted.",
     .remedy = "sudo gantry vgpu apply --restore && sudo systemctl enable gantry-vgpu",
     .judge = judge_intent,
     .fix = fix_intent},
};

}  // namespace

bool is_vgpu_host(const Facts& f) {
  return host_driver_loaded(f) && !has_cuda(f);
}

std::span<const Check> vgpu_checks() {
  return kVgpuChecks;
}

}  // namespace gantry::doctor
