// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/machine_for_test.hpp"

#include "base/core/text.hpp"
#include "install/driver_package/run_file_for_test.hpp"
#include "install/driver_setup/effects_for_test.hpp"
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/kernel_module/loaded_modules.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gantry::driver_setup {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kToday = 1'795'000'000;  // November 2026
constexpr const char* kGpuAddress = "0000:3b:00.0";

}  // namespace

SetupMachine::SetupMachine() {
  tree_.file("proc/sys/kernel/osrelease", fmt::format("{}\n", kSetupKernel));
  tree_.file("proc/version", fmt::format("Linux version {} (debian-kernel@lists.debian.org) "
                                         "(gcc-12 (Debian 12.2.0-14) 12.2.0) #1 SMP\n",
                                         kSetupKernel));
  tree_.file("sys/module/firmware_class/parameters/path", "");
  tree_.file("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
  tree_.file("etc/ld.so.cache", "none\n");
  tree_.file("sbin/ldconfig").file("usr/bin/dpkg").file("etc/hostname", "node\n");
  tree_.directory("run/systemd/system").directory("usr/local/bin").directory("dev/char");
  tree_.directory("etc/ld.so.conf.d").directory("var/lib");
  tree_.file("dev.table",
             "/dev/nvidiactl c 195 255 0666 0 0\n/dev/nvidia0 c 195 0 0666 0 0\n"
             "/dev/nvidia-modeset c 195 254 0666 0 0\n"
             "/dev/nvidia-uvm c 511 0 0666 0 0\n/dev/nvidia-uvm-tools c 511 1 0666 0 0\n");
  kernel(kSetupKernel);
  write_proc();
}

SetupMachine& SetupMachine::kernel(const std::string& release) {
  const auto headers = fmt::format("usr/src/linux-headers-{}", release);
  tree_.file(headers + "/include/generated/utsrelease.h",
             fmt::format("#define UTS_RELEASE \"{}\"\n", release));
  tree_.file(headers + "/scripts/Makefile.build").file(headers + "/Module.symvers");
  tree_.file(fmt::format("lib/modules/{}/modules.dep", release), "");
  tree_.file(fmt::format("lib/modules/{}/modules.builtin", release), "");
  tree_.link(fmt::format("lib/modules/{}/build", release), "/" + headers);
  return *this;
}

std::string SetupMachine::archive(const std::string& version) {
  const auto name = fmt::format("NVIDIA-Linux-x86_64-{}", version);
  const auto path = fmt::format("/root/{}.run", name);
  if (!host().exists(path))
    tree_.file(path, driver_package::run_file({.version = version, .target_directory = name}));
  return path;
}

preflight::DriverRequest SetupMachine::request(const std::string& version) {
  preflight::DriverRequest request;
  request.version = version;
  request.run_file = archive(version);
  return request;
}

SetupOptions SetupMachine::options() {
  SetupOptions options;
  options.read_facts = [this]() -> Result<preflight::MachineFacts> { return facts(); };
  options.program = "/usr/bin/gantry";
  return options;
}

Result<SetupReport> SetupMachine::install(const preflight::DriverRequest& request) {
  const auto machine = host();
  TestEffects effects(machine, *this);
  return driver_setup::install(machine, request, options(), effects);
}

Result<SetupReport> SetupMachine::load() {
  const auto machine = host();
  TestEffects effects(machine, *this);
  return driver_setup::load(machine, options(), effects);
}

Result<SetupReport> SetupMachine::build(const std::string& kernel) {
  const auto machine = host();
  TestEffects effects(machine, *this);
  return driver_setup::build(machine, kernel, options(), effects);
}

Result<SetupReport> SetupMachine::remove(const RemoveOptions& remove) {
  const auto machine = host();
  TestEffects effects(machine, *this);
  return driver_setup::remove(machine, remove, options(), effects);
}

preflight::MachineFacts SetupMachine::facts() {
  ++reads_of_facts;
  const auto machine = host();
  preflight::MachineFacts facts;
  facts.machine = "x86_64";
  facts.gpus = {{.address = *model::PciAddress::parse(kGpuAddress),
                 .device = 0x1eb8,
                 .architecture = preflight::Architecture::Turing,
                 .name = "Tesla T4"}};
  facts.os = {.id = "debian", .version_id = "12", .codename = "bookworm"};
  facts.kernel = *kernel_module::read_running_kernel(machine);
  facts.build_release = facts.kernel.release;
  const auto headers = kernel_module::find_kernel_headers(machine, facts.kernel.release);
  if (headers.ok()) facts.headers = *headers;
  facts.compiler = {.default_gcc = 12, .gcc = {12}, .has_make = true, .has_linker = true};
  facts.trust.secure_boot = kernel_module::ModuleTrust::SecureBoot::Off;
  facts.trust.lockdown = kernel_module::ModuleTrust::Lockdown::None;
  facts.modules = *kernel_module::read_loaded_modules(machine);
  facts.loaded.version = loaded();
  facts.clock.now = kToday;
  facts.glibc = "2.36";
  facts.rights.capabilities = ~std::uint64_t{0};
  for (const auto* path : {"/usr/local/nvidia", "/var/lib/gantry/driver-install", "/etc"})
    facts.disks.push_back({.path = path, .free_bytes = std::uint64_t{50} << 30});
  for (const auto& name : machine.list("/root").value_or({}))
    facts.files.push_back({.path = "/root/" + name, .exists = true, .bytes = 1});
  if (adjust_facts) adjust_facts(facts);
  return facts;
}

// What the kernel shows of the modules that are loaded.
void SetupMachine::write_proc() {
  std::string text;
  std::string devices = "Character devices:\n  1 mem\n";
  for (const auto* path : {"proc/driver/nvidia", "sys/module/nvidia", "sys/module/nvidia_uvm",
                           "sys/module/nvidia_modeset"})
    tree_.remove(path);
  for (auto module = loaded_.rbegin(); module != loaded_.rend(); ++module) {
    const bool base = module->name == "nvidia";
    std::string users;
    for (const auto& other : loaded_)
      users += base && other.name.starts_with("nvidia_") ? other.name + "," : "";
    const bool brought = std::find(brings_modules.begin(), brings_modules.end(), module->name) !=
                         brings_modules.end();
    if (brought && !loaded().empty()) users = "nvidia,";
    text += fmt::format("{} 1433600 {} {} Live 0x0000000000000000 (POE)\n", module->name,
                        std::count(users.begin(), users.end(), ','), users.empty() ? "-" : users);
    tree_.file(fmt::format("sys/module/{}/initstate", module->name), "live\n");
    if (module->name == "nvidia_uvm") devices += "511 nvidia-uvm\n";
    if (!base) continue;
    devices += "195 nvidia\n195 nvidiactl\n";
    tree_.file("proc/driver/nvidia/version",
               fmt::format("NVRM version: NVIDIA UNIX {}  {}  Fri May 31 09:35:42 UTC 2024\n",
                           module->open ? "Open Kernel Module for x86_64" : "x86_64 Kernel Module",
                           module->version));
    tree_.file(fmt::format("proc/driver/nvidia/gpus/{}/information", kGpuAddress),
               "Model: Tesla T4\nDevice Minor: 0\n");
  }
  tree_.file("proc/modules", text).file("proc/devices", devices);
}

std::string SetupMachine::loaded() const {
  for (const auto& module : loaded_) {
    if (module.name == "nvidia") return module.version;
  }
  return "";
}

std::vector<std::string> SetupMachine::modules() const {
  std::vector<std::string> names;
  for (const auto& module : loaded_) names.push_back(module.name);
  return names;
}

std::string SetupMachine::current() const {
  return host().link("/usr/local/nvidia/current").value_or("");
}

bool SetupMachine::has_journal() const {
  return host().exists(kJournalPath);
}

void SetupMachine::expect_installed(const std::string& version) {
  EXPECT_EQ(loaded(), version);
  EXPECT_TRUE(current().starts_with(fmt::format(".versions/{}-", version))) << current();
  EXPECT_FALSE(has_journal());
  const auto machine = host();
  EXPECT_FALSE(machine.exists(kStaging));
  const auto record = read_record(machine);
  ASSERT_TRUE(record.ok()) << record.error().text();
  ASSERT_TRUE(record->has_value());
  EXPECT_EQ((*record)->version, version);
  script = {};
  TestEffects effects(machine, *this);
  const auto report = verify(machine, **record, VerifyDepth::Machine, &effects);
  for (const auto& item : report.items) {
    EXPECT_EQ(item.state, VerifyState::Good) << item.code << ": " << item.sentence;
  }
}

void SetupMachine::reboot() {
  loaded_.clear();
  tree_.remove("run").directory("run/systemd/system");
  tree_.remove("var/run/cdi");
  tree_.file("sys/module/firmware_class/parameters/path", "");
  for (const auto& entry : fs::directory_iterator(tree_.path("proc"))) {
    if (all_digits(entry.path().filename().string())) fs::remove_all(entry.path());
  }
  write_proc();
}

void SetupMachine::lose_power() {
  for (const auto& path : unsynced_) {
    const auto real = tree_.path(path);
    if (!fs::is_regular_file(fs::symlink_status(real))) continue;
    fs::remove(real);  // what shares its content may be on disk
    std::ofstream(real, std::ios::trunc);
  }
  unsynced_.clear();
  reboot();
}

std::map<std::string, std::string> SetupMachine::files() const {
  std::map<std::string, std::string> found;
  const fs::path root(tree_.root());
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator();
       ++at) {
    const auto path = "/" + at->path().lexically_relative(root).string();
    if (path == "/proc" || path == "/sys" || path == "/dev") at.disable_recursion_pending();
    auto& content = found[path];
    if (at->is_symlink())
      content = "-> " + fs::read_symlink(at->path()).string();
    else if (at->is_regular_file())
      content = host().read(path).value_or("?");
  }
  return found;
}

SetupMachine& SetupMachine::holder(unsigned pid, std::string_view name, std::string_view cgroup) {
  const auto directory = fmt::format("proc/{}", pid);
  tree_.file(directory + "/comm", fmt::format("{}\n", name.substr(0, 15)));
  tree_.file(directory + "/cmdline", name).file(directory + "/cgroup", cgroup);
  tree_.link(directory + "/fd/3", "/dev/nvidia0");
  return *this;
}

SetupMachine& SetupMachine::unit(const std::string& name, bool active) {
  tree_.file("lib/systemd/system/" + name);
  units_[name] = active;
  return *this;
}

void expect_ok(const Result<SetupReport>& report) {
  if (!report.ok()) ADD_FAILURE() << report.error().text();
}

}  // namespace gantry::driver_setup
