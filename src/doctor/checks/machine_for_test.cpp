// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

constexpr std::string_view kVersion = "580.159.04";
constexpr std::string_view kDevices =
    "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n238 nvidia-uvm\n239 nvidia-nvswitch\n"
    "240 nvidia-nvlink\n241 nvidia-caps\n\nBlock devices:\n238 virtblk\n";
constexpr std::string_view kLimits =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max address space         unlimited            unlimited            bytes     \n"
    "Max locked memory         8388608              8388608              bytes     \n";
constexpr std::string_view kResource =
    "0x0000104002000000 0x0000104002ffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    "0x0000100000000000 0x0000103fffffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    "0x0000104000000000 0x0000104001ffffff 0x000000000014220c\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";

void add_proc(test::Tree& tree) {
  tree.file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\n")
      .file("proc/cmdline", "console=ttyS0\n")
      .file("proc/devices", kDevices)
      .file("proc/mounts",
            "/dev/vda / ext4 rw 0 0\ntmpfs /run tmpfs rw,nosuid 0 0\n"
            "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n")
      .file("proc/self/limits", kLimits)
      .file("proc/sys/kernel/osrelease", "6.18.2\n")
      .file("proc/sys/vm/overcommit_memory", "0\n")
      .file("proc/driver/nvidia/version",
            fmt::format(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build\n",
                kVersion))
      .file("proc/driver/nvidia/gpus/0000:00:06.0/information",
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nDevice Minor: \t 0\nGPU Excluded:\t No\n")
      .file("proc/driver/nvidia/capabilities/mig/config",
            "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n")
      .file("proc/driver/nvidia/capabilities/mig/monitor",
            "DeviceFileMinor: 2\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
}

void add_files(test::Tree& tree) {
  const std::string libraries = "usr/local/nvidia/lib64/";
  for (std::string_view name : {"libcuda", "libnvidia-ml"}) {
    tree.file(fmt::format("{}{}.so.{}", libraries, name, kVersion), "library")
        .link(fmt::format("{}{}.so.1", libraries, name), fmt::format("{}.so.{}", name, kVersion))
        .link(fmt::format("usr/lib/{}.so.1", name), fmt::format("/{}{}.so.1", libraries, name));
  }
  tree.file("usr/local/nvidia/bin/nvidia-smi", "program")
      .file(fmt::format("usr/local/nvidia/firmware/nvidia/{}/gsp_ga10x.bin", kVersion), "firmware")
      .file("sys/module/firmware_class/parameters/path", "/usr/local/nvidia/firmware\n")
      .file("etc/group", "root:x:0:\nvideo:x:33:\n")
      .directory("var/lib")
      .directory("run");
}

model::Gpu h200(int index, const model::PciAddress& address) {
  model::Gpu gpu;
  gpu.index = index;
  gpu.uuid = {fmt::format("GPU-{0}{0}{0}{0}1111-2222-3333-4444-555555555555", index)};
  gpu.name = "NVIDIA H200";
  gpu.pci = address;
  gpu.minor = static_cast<std::uint32_t>(index);
  gpu.architecture = "Hopper";
  gpu.persistence = true;
  gpu.gsp_firmware = kVersion;
  gpu.compute_mode = "Default";
  gpu.virtualization = "Pass-Through";
  gpu.mig = {model::MigMode::Disabled, model::MigMode::Disabled, {}};
  gpu.health.state = model::HealthState::Ok;
  gpu.telemetry.temperature_celsius = 34;
  gpu.telemetry.ecc_uncorrected_volatile = 0;
  return gpu;
}

model::PciFunction function_at(const model::PciAddress& address, std::uint16_t device,
                               std::uint32_t class_code) {
  model::PciFunction function;
  function.address = address;
  function.vendor = 0x10de;
  function.device = device;
  function.class_code = class_code;
  function.driver = "nvidia";
  return function;
}

model::DriverFile file_at(std::string path, model::DriverFileKind kind) {
  model::DriverFile file;
  file.path = std::move(path);
  file.kind = kind;
  return file;
}

}  // namespace

TestMachine::TestMachine() {
  add_proc(tree);
  add_files(tree);
  tree.file("sys/module/nvidia/initstate", "live\n")
      .file("sys/module/nvidia_uvm/initstate", "live\n")
      .file("sys/devices/system/node/online", "0\n")
      .file("sys/devices/system/node/has_cpu", "0\n");
  pci("numa_node", "-1\n").pci("resource", kResource).pci("config", "\xde\x10\x35\x23 and so on");
  pci("current_link_width", "16\n").pci("max_link_width", "16\n").pci("irq", "41\n");
  pci("reset_method", "flr\n").pci("power/control", "on\n").pci("power_state", "D0\n");
  node("/dev/nvidiactl", "c 195 255 0666 0 0").node("/dev/nvidia0", "c 195 0 0666 0 0");
  node("/dev/nvidia-uvm", "c 238 0 0666 0 0").node("/dev/nvidia-uvm-tools", "c 238 1 0666 0 0");
  node("/dev/nvidia-caps/nvidia-cap1", "c 241 1 0400 0 0");
  param("ModifyDeviceFiles", "1").param("DeviceFileUID", "0").param("DeviceFileGID", "0");
  param("DeviceFileMode", "438").param("NvLinkDisable", "1");

  const model::PciAddress address{.domain = 0, .bus = 0, .device = 6, .function = 0};
  inventory.driver = {.version = std::string(kVersion),
                      .library_version = std::string(kVersion),
                      .cuda_version = "13.0",
                      .flavour = model::ModuleFlavour::Open,
                      .root = "/usr/local/nvidia",
                      .library_directory = "/usr/local/nvidia/lib64",
                      .nvml_error = ""};
  inventory.gpus = {h200(0, address)};
  inventory.links = {{model::Link{.pcie = model::PciePath::Self}}};
  inventory.functions = {function_at(address, 0x2335, 0x030200)};
  for (std::string_view name : {"libcuda", "libnvidia-ml"}) {
    inventory.files.push_back(
        file_at(fmt::format("/usr/local/nvidia/lib64/{}.so.{}", name, kVersion),
                model::DriverFileKind::Library));
  }
  inventory.files.push_back(
      file_at("/usr/local/nvidia/bin/nvidia-smi", model::DriverFileKind::Binary));
  sources.caller = {.uid = 1000, .groups = {1000}, .library_path = ""};
  sources.kernel_log = "nvidia: loading\n";
  sources.free_bytes = [](const sys::Host&, const std::string&) {
    return std::optional<std::uint64_t>(std::uint64_t{100} << 30);
  };
}

TestMachine& TestMachine::pci(std::string_view file, std::string_view content) {
  tree.file(fmt::format("sys/bus/pci/devices/0000:00:06.0/{}", file), content);
  return *this;
}

TestMachine& TestMachine::param(std::string_view name, std::string_view value) {
  params_[std::string(name)] = value;
  return *this;
}

TestMachine& TestMachine::node(const std::string& path, const std::string& rest) {
  nodes_[path] = rest;
  return *this;
}

TestMachine& TestMachine::no_node(const std::string& path) {
  nodes_.erase(path);
  return *this;
}

TestMachine& TestMachine::process(std::string_view name, char state) {
  const auto directory = fmt::format("proc/{}", ++pid_);
  tree.file(directory + "/comm", fmt::format("{}\n", name.substr(0, 15)))
      .file(directory + "/stat", fmt::format("{} ({}) {} 1 1", pid_, name.substr(0, 15), state));
  return *this;
}

TestMachine& TestMachine::metal() {
  tree.file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme lahf_lm\n");
  return *this;
}

TestMachine& TestMachine::unloaded() {
  tree.remove("sys/module/nvidia").remove("sys/module/nvidia_uvm").remove("proc/driver/nvidia");
  inventory.driver.version.clear();
  inventory.driver.flavour = model::ModuleFlavour::Unknown;
  inventory.gpus.clear();
  inventory.links.clear();
  function().driver.clear();
  params_.clear();
  nodes_.clear();
  return *this;
}

TestMachine& TestMachine::second_gpu() {
  const model::PciAddress address{.domain = 0, .bus = 0, .device = 7, .function = 0};
  inventory.gpus.push_back(h200(1, address));
  inventory.functions.push_back(function_at(address, 0x2335, 0x030200));
  inventory.links = {{{.pcie = model::PciePath::Self}, {.nvlinks = 18, .nvswitch = true}},
                     {{.nvlinks = 18, .nvswitch = true}, {.pcie = model::PciePath::Self}}};
  tree.file("sys/bus/pci/devices/0000:00:07.0/numa_node", "0\n");
  return node("/dev/nvidia1", "c 195 1 0666 0 0");
}

TestMachine& TestMachine::nvswitch() {
  const model::PciAddress address{.domain = 0, .bus = 0, .device = 8, .function = 0};
  inventory.functions.push_back(function_at(address, 0x22a3, 0x068000));
  return node("/dev/nvidia-nvswitchctl", "c 239 255 0666 0 0")
      .node("/dev/nvidia-nvswitch0", "c 239 0 0666 0 0");
}

TestMachine& TestMachine::kubelet(std::string_view config) {
  tree.file("var/lib/kubelet/config.yaml", config)
      .file("var/lib/kubelet/device-plugins/kubelet.sock")
      .file("var/lib/kubelet/pod-resources/kubelet.sock");
  return *this;
}

TestMachine& TestMachine::log(std::string_view line) {
  sources.kernel_log = sources.kernel_log.value_or("") + std::string(line) + "\n";
  return *this;
}

sys::Host TestMachine::host() {
  std::string table;
  for (const auto& [path, rest] : nodes_) table += fmt::format("{} {}\n", path, rest);
  tree.file("dev.table", table).directory("dev");
  std::string text;
  for (const auto& [name, value] : params_) text += fmt::format("{}: {}\n", name, value);
  if (!params_.empty()) tree.file("proc/driver/nvidia/params", text);
  return tree.host();
}

Finding TestMachine::look(const Check& check) {
  const auto machine = host();
  return check.judge(Facts(machine, inventory, sources));
}

}  // namespace gantry::doctor
