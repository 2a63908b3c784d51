// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/host_for_test.hpp"

#include "install/preflight/container_lock.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gantry::preflight {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kToday = 1'795'000'000;  // November 2026
constexpr std::int64_t kDay = 86'400;

// One GPU after the other, each below a bridge of its own.
std::string bare_machine(const std::vector<std::string>& cards) {
  std::string gpus;
  std::string bridges;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    gpus += fmt::format(
        "  - card: {}\n    uuid: GPU-3ce174b0-4a10-8c30-9b50-70c1d2e3f4{:02}\n    minor: {}\n"
        "    board_id: 0x{:x}00\n"
        "    pci: {{address: \"0000:{:02x}:00.0\", parent: \"0000:00:{:02x}.0\", irq: {}, driver: "
        "\"\"}}\n",
        cards[i], i, i, 0x3b + i, 0x3b + i, i + 2, 40 + i);
    bridges += fmt::format(
        "  - {{address: \"0000:00:{:02x}.0\", vendor: 0x8086, device: 0x2f04, class: 0x060400, "
        "driver: pcieport}}\n",
        i + 2);
  }
  return fmt::format(
      "description: a machine without a driver\nhostname: bare\n"
      "boot_id: 8f7a2b31-6a54-4f0e-b7cd-2e5d60a1b9c4\nos_release: debian\nkernel_release: {}\n"
      "kernel_version: \"(debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU "
      "ld "
      "(GNU Binutils for Debian) 2.40) #1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1\"\n"
      "cpu_model: Intel(R) Xeon(R)\nefi: true\nlockdown: none\n"
      "numa:\n  - {{cpus: 0-3, memory_mib: 16000}}\n"
      "driver: {{version: \"\", module_version: \"\"}}\ngpus:\n{}pci:\n{}",
      kTestKernel, gpus, bridges);
}

std::unique_ptr<test::Machine> make_machine(std::string_view name,
                                            const std::vector<std::string>& cards) {
  if (!name.empty()) return std::make_unique<test::Machine>(name);
  std::string path = test::temp_directory() + "/gantry-bare-XXXXXX.yaml";
  constexpr int kSuffix = 5;
  const int fd = ::mkstemps(path.data(), kSuffix);
  GANTRY_ASSERT(fd >= 0);
  ::close(fd);
  std::ofstream(path) << bare_machine(cards);
  auto machine = std::make_unique<test::Machine>(path);
  fs::remove(path);
  return machine;
}

}  // namespace

TestHost::TestHost(std::string_view machine, std::vector<std::string> cards)
    : machine_(make_machine(machine, cards)) {
  sources.now = kToday;
  sources.program_built = kToday - kDay;
  sources.machine = "x86_64";
  sources.rights = {.uid = 0, .capabilities = ~std::uint64_t{0}};
  request.version = "580.159.04";
  request.run_file = "/root/NVIDIA-Linux-x86_64-580.159.04.run";
  if (machine.empty()) make_fit();
}

void TestHost::make_fit() {
  const auto headers = fmt::format("/usr/src/linux-headers-{}", kTestKernel);
  file(request.run_file, "archive");
  file(headers + "/include/generated/utsrelease.h",
       fmt::format("#define UTS_RELEASE \"{}\"\n", kTestKernel));
  file(headers + "/scripts/Makefile.build", "");
  file(headers + "/Module.symvers", "");
  link(fmt::format("/lib/modules/{}/build", kTestKernel), headers);
  file("/usr/bin/gcc-12", "").link("/usr/bin/gcc", "gcc-12");
  file("/usr/bin/make", "").file("/usr/bin/ld", "").file("/usr/bin/apt-get", "");
  file("/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "");
  file("/lib/x86_64-linux-gnu/libc.so.6",
       "GNU C Library (Debian GLIBC 2.36-9+deb12u4) stable release version 2.36.\n");
  file("/var/lib/dpkg/status", "Package: bash\nStatus: install ok installed\nVersion: 5.2\n");
  changed_at("/var/lib/dpkg/status", kToday - kDay).changed_at("/var/lib/dpkg", kToday - kDay);
  file(fmt::format("/boot/vmlinuz-{}", kTestKernel), "");
  changed_at(fmt::format("/boot/vmlinuz-{}", kTestKernel), kToday - 30 * kDay);
  sources.paths = {request.directory, std::string(kWorkDirectory), "/etc"};
  sources.files = {request.run_file};
  sources.disk = [](const sys::Host&, const std::string& path) {
    return DiskFact{.path = path, .free_bytes = std::uint64_t{50} << 30U};
  };
}

TestHost& TestHost::file(std::string_view path, std::string_view content) {
  machine_->file(path, content);
  return *this;
}

TestHost& TestHost::link(std::string_view path, std::string_view target) {
  machine_->link(path, target);
  return *this;
}

TestHost& TestHost::remove(std::string_view path) {
  machine_->remove(path);
  return *this;
}

TestHost& TestHost::changed_at(std::string_view path, std::int64_t seconds) {
  const struct timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0},
                                    {.tv_sec = seconds, .tv_nsec = 0}};
  GANTRY_ASSERT(::utimensat(AT_FDCWD, machine_->path(path).c_str(), times, 0) == 0);
  return *this;
}

TestHost& TestHost::gpu_file(std::string_view name, std::string_view content) {
  // Writes through the link below /sys/bus/pci, as the tree has it.
  const auto path = fs::canonical(machine_->path(fmt::format("/sys/bus/pci/devices/{}", kTestGpu)));
  fs::remove(path / name);
  std::ofstream(path / name, std::ios::binary) << content;
  return *this;
}

TestHost& TestHost::gpu_driver(std::string_view driver) {
  const auto path = fs::canonical(machine_->path(fmt::format("/sys/bus/pci/devices/{}", kTestGpu)));
  fs::remove(path / "driver");
  fs::create_symlink(fmt::format("../../../../bus/pci/drivers/{}", driver), path / "driver");
  return *this;
}

TestHost& TestHost::loaded(std::string_view version) {
  file("/sys/module/nvidia/initstate", "live\n");
  file("/proc/driver/nvidia/version",
       fmt::format("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Fri May 31 09:35:42 UTC "
                   "2024\nGCC version:\n",
                   version));
  file("/proc/modules",
       "nvidia_uvm 1433600 0 - Live 0x0000000000000000 (POE)\n"
       "nvidia 56668160 1 nvidia_uvm, Live 0x0000000000000000 (POE)\n");
  machine_->node("/dev/nvidia0 c 195 0 0666 0 0");
  machine_->node("/dev/nvidiactl c 195 255 0666 0 0");
  return gpu_driver("nvidia");
}

TestHost& TestHost::process(unsigned pid, std::string_view name, std::string_view cgroup) {
  const auto directory = fmt::format("/proc/{}", pid);
  file(directory + "/comm", fmt::format("{}\n", name.substr(0, 15)));
  file(directory + "/cmdline", name);
  return file(directory + "/cgroup", cgroup);
}

TestHost& TestHost::opens(unsigned pid, std::string_view node) {
  const auto directory = fmt::format("/proc/{}/fd", pid);
  const auto count = fs::exists(machine_->path(directory))
                         ? std::distance(fs::directory_iterator(machine_->path(directory)), {})
                         : 0;
  return link(fmt::format("{}/{}", directory, count), node);
}

TestHost& TestHost::holds_container_lock(unsigned pid, std::string_view name) {
  file(kContainerLock, fmt::format("{}\n", pid)).process(pid, name);
  struct stat info {};
  GANTRY_ASSERT(::stat(machine_->path(kContainerLock).c_str(), &info) == 0);
  return file("/proc/locks", fmt::format("1: POSIX  ADVISORY  WRITE 70 00:01:7 0 EOF\n"
                                         "2: FLOCK  ADVISORY  WRITE {} {:02x}:{:02x}:{} 0 EOF\n"
                                         "2: -> FLOCK  ADVISORY  WRITE 71 {:02x}:{:02x}:{} 0 EOF\n",
                                         pid, major(info.st_dev), minor(info.st_dev), info.st_ino,
                                         major(info.st_dev), minor(info.st_dev), info.st_ino));
}

MachineFacts TestHost::facts() {
  auto facts = read_facts(machine_->host(), sources);
  GANTRY_ASSERT(facts.ok());
  if (!unreadable.empty()) facts->unreadable = unreadable;
  return *std::move(facts);
}

std::vector<Finding> TestHost::judge() {
  return preflight::judge(facts(), request);
}

const Finding* find(const std::vector<Finding>& findings, std::string_view code) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

void check_cases(const std::vector<FindingCase>& cases) {
  for (const auto& [code, severity, says, change] : cases) {
    SCOPED_TRACE(std::string(code));
    TestHost host;
    change(host);
    const auto findings = host.judge();
    const auto* finding = find(findings, code);
    std::string all;
    for (const auto& other : findings) all += other.code + ": " + other.sentence + "\n";
    ASSERT_NE(finding, nullptr) << all;
    EXPECT_EQ(to_string(finding->severity), to_string(severity));
    const auto text = fmt::format("{}\n{}\n{}", finding->sentence, finding->cause, finding->remedy);
    EXPECT_THAT(text, testing::HasSubstr(std::string(says)));
    EXPECT_FALSE(finding->sentence.ends_with('.'));
    EXPECT_TRUE(finding->severity != Severity::Blocks || !finding->remedy.empty() ||
                code == "cpu-unsupported" || code == "glibc-old");
    EXPECT_NE(find_known_finding(code), nullptr);
  }
}

}  // namespace gantry::preflight
