// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/facts.hpp"

#include "install/preflight/facts_internal.hpp"
#include "install/preflight/host_for_test.hpp"
#include "install/preflight/judge_internal.hpp"
#include "install/preflight/modprobe_config.hpp"
#include "support/tree.hpp"
#include "vm/pci/vgpu_config_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gantry::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Facts, OfABareMachine) {
  TestHost host;
  const auto facts = host.facts();
  ASSERT_THAT(facts.gpus, SizeIs(1));
  EXPECT_EQ(facts.gpus[0].describe(), "0000:3b:00.0 (Tesla T4, Turing)");
  EXPECT_EQ(facts.gpus[0].driver, "");
  EXPECT_EQ(facts.kernel.release, kTestKernel);
  EXPECT_EQ(facts.build_release, kTestKernel);
  EXPECT_EQ(facts.kernel.gcc_major, 12);
  ASSERT_TRUE(facts.headers);
  EXPECT_FALSE(facts.headers_error);
  EXPECT_EQ(facts.compiler.default_gcc, 12);
  EXPECT_THAT(facts.compiler.gcc, ElementsAre(12));
  EXPECT_TRUE(facts.compiler.has_make && facts.compiler.has_linker);
  EXPECT_EQ(facts.os.id, "debian");
  EXPECT_EQ(facts.glibc, "2.36");
  EXPECT_EQ(facts.loaded.version, "");
  EXPECT_THAT(facts.installed, IsEmpty());
  EXPECT_THAT(facts.holders, IsEmpty());
  ASSERT_NE(facts.disk("/etc"), nullptr);
  EXPECT_EQ(facts.disk("/usr/local/nvidia")->mount, "/");
  EXPECT_EQ(facts.file(host.request.run_file)->bytes, 7U);
  EXPECT_THAT(facts.clock.past, SizeIs(3));
}

TEST(Facts, OfAMachineWithADriver) {
  const auto facts = TestHost("t4x4").facts();
  EXPECT_THAT(facts.gpus, SizeIs(4));
  EXPECT_EQ(facts.loaded.version, "550.90.07");
  EXPECT_EQ(facts.loaded.flavour, model::ModuleFlavour::Proprietary);
  ASSERT_THAT(facts.installed, SizeIs(1));
  EXPECT_EQ(facts.installed[0].version, "550.90.07");
  EXPECT_EQ(facts.installed[0].directory, "/usr/lib/x86_64-linux-gnu");
  EXPECT_TRUE(facts.is_loaded("nvidia-uvm"));
}

TEST(Facts, TheVirtualFunctionsOfAVgpuHostAreNotGpusOfTheDriver) {
  const auto facts = TestHost("vgpu-a10").facts();
  EXPECT_THAT(facts.gpus, SizeIs(2));
  ASSERT_NE(facts.find_installed(InstalledKind::VgpuHost), nullptr);
}

TEST(Facts, AVgpuIsKnownByItsCapabilityOrByItsName) {
  TestHost host;
  host.gpu_file("config", pci::vgpu_config_space());
  EXPECT_TRUE(host.facts().gpus[0].is_vgpu);
  EXPECT_EQ(host.facts().gpus[0].vgpu_host_driver, "550.54.16");
  const auto guest = TestHost("vgpu-guest").facts();
  EXPECT_TRUE(guest.guest);
  EXPECT_TRUE(guest.gpus[0].is_vgpu);
  for (const auto* whole : {"t4x4", "a100x8", "h200x8", "k620", "k2000", "vfio"}) {
    for (const auto& gpu : TestHost(whole).facts().gpus) EXPECT_FALSE(gpu.is_vgpu) << gpu.name;
  }
}

TEST(Facts, GpusOfVirtualMachinesDoNotDecideAboutTheDriver) {
  const auto facts = TestHost("vfio").facts();
  EXPECT_THAT(facts.gpus, SizeIs(2));
  EXPECT_THAT(facts.architectures(), ElementsAre(Architecture::Pascal));
}

TEST(Facts, AnotherKernelCanBeBuiltFor) {
  TestHost host;
  host.sources.kernel = "6.1.0-22-amd64";
  const auto facts = host.facts();
  EXPECT_EQ(facts.build_release, "6.1.0-22-amd64");
  EXPECT_FALSE(facts.headers);
  ASSERT_TRUE(facts.headers_error);
  EXPECT_THAT(facts.headers_error->cause(), HasSubstr("6.1.0-22-amd64"));
}

TEST(Facts, RedHatHasOneGccWhoseDirectoryTellsItsVersion) {
  TestHost host;
  host.remove("/usr/bin/gcc").remove("/usr/bin/gcc-12").remove("/usr/lib/gcc");
  host.file("/usr/bin/gcc", "").file("/usr/libexec/gcc/x86_64-redhat-linux/11/cc1", "");
  EXPECT_EQ(host.facts().compiler.default_gcc, 11);
  EXPECT_THAT(host.facts().compiler.gcc, ElementsAre(11));
}

TEST(Facts, APreprocessorAloneIsNoCompiler) {
  TestHost host;
  host.file("/usr/lib/gcc/x86_64-linux-gnu/13/cc1", "");  // cpp-13 without gcc-13
  EXPECT_THAT(host.facts().compiler.gcc, ElementsAre(12));
}

TEST(Facts, ClangIsKnownByItsName) {
  TestHost host;
  host.file("/usr/bin/clang-17", "").file("/usr/bin/clang-format", "");
  EXPECT_THAT(host.facts().compiler.clang, ElementsAre(17));
  EXPECT_FALSE(host.facts().compiler.has_clang);
}

TEST(Facts, AHolderHasAllItsNodesAndItsContainer) {
  TestHost host;
  host.loaded()
      .process(4711, "train", "0::/system.slice/docker-" + std::string(64, 'b') + ".scope\n")
      .opens(4711, "/dev/nvidia0")
      .opens(4711, "/dev/nvidiactl")
      .opens(4711, "/dev/null");
  const auto facts = host.facts();
  ASSERT_THAT(facts.holders, SizeIs(1));
  EXPECT_EQ(describe(facts.holders[0]),
            "pid 4711 (train) has /dev/nvidia0, /dev/nvidiactl open, in container bbbbbbbbbbbb");
  EXPECT_FALSE(facts.holders[0].is_service);
}

TEST(Facts, ThisMachineCanBeRead) {
  const auto host = sys::Host::at("/");
  ASSERT_TRUE(host.ok());
  auto sources = live_sources(*host, {});
  EXPECT_GT(sources.now, 1'700'000'000);
  EXPECT_GT(sources.program_built, 0);
  EXPECT_FALSE(sources.machine.empty());
  ASSERT_TRUE(sources.disk);
  EXPECT_TRUE(sources.disk(*host, "/tmp")->free_bytes);
  EXPECT_THAT(sources.paths, testing::Contains("/usr/local/nvidia"));
  const auto facts = read_facts(*host, sources);
  if (!facts.ok()) GTEST_SKIP() << facts.error().text();
  (void)judge(*facts, {.version = "580.159.04"});
}

TEST(Facts, WithoutPciNothingIsKnown) {
  test::Tree tree;
  const auto facts = read_facts(tree.host(), {});
  ASSERT_FALSE(facts.ok());
  EXPECT_THAT(facts.error().text(), HasSubstr("PCI"));
}

TEST(DpkgStatus, OnlyInstalledPackagesOfTheDriverCount) {
  const auto* text =
      "Package: nvidia-driver\nStatus: install ok installed\nVersion: 535.261.03-1\n\n"
      "Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.17\n\n"
      "Package: libcuda1\nArchitecture: amd64\nStatus: hold ok installed\nVersion: 535.261.03-1\n\n"
      "Package: nvidia-kernel-dkms\nStatus: deinstall ok config-files\nVersion: 470\n";
  EXPECT_THAT(find_driver_packages(text),
              ElementsAre("nvidia-driver 535.261.03-1", "libcuda1 535.261.03-1"));
}

TEST(Glibc, TheVersionIsInItsOwnText) {
  EXPECT_EQ(
      find_glibc_version("..GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3) stable release version "
                         "2.35.\nCopyright"),
      "2.35");
  EXPECT_EQ(find_glibc_version("GNU C Library (x) development release version 2.40.9000."),
            "2.40.9000");
  for (const auto* text : {"", "GNU C Library (", "GNU C Library (x) release version ", "musl"})
    EXPECT_EQ(find_glibc_version(text), "") << text;
}

TEST(Glibc, OrInTheNameOfTheFile) {
  TestHost host;
  host.remove("/lib/x86_64-linux-gnu/libc.so.6");
  host.file("/lib/x86_64-linux-gnu/libc-2.31.so", "");
  host.link("/lib/x86_64-linux-gnu/libc.so.6", "libc-2.31.so");
  EXPECT_EQ(host.facts().glibc, "2.31");
}

TEST(Mounts, TheLongestMountPointCounts) {
  constexpr std::string_view kMounts =
      "/dev/sda1 / ext4 rw,relatime 0 0\n"
      "/dev/sda2 /usr ext4 ro,relatime 0 0\n"
      "tmpfs /usr/local tmpfs rw,noexec 0 0\n"
      "tmpfs /usr/local tmpfs rw 0 0\n"
      "broken\n";
  EXPECT_EQ(find_mount(kMounts, "/usr/local/nvidia").mount, "/usr/local");
  EXPECT_FALSE(find_mount(kMounts, "/usr/local/nvidia").no_exec);  // the later one hides it
  EXPECT_TRUE(find_mount(kMounts, "/usr/lib").read_only);
  EXPECT_EQ(find_mount(kMounts, "/usrx").mount, "/");
  EXPECT_EQ(find_mount("", "/usr").mount, "");
}

TEST(GoogleCache, HasTheVersion) {
  EXPECT_EQ(
      version_in_google_cache("CACHE_KERNEL_VERSION=5.4\nCACHE_NVIDIA_DRIVER_VERSION=460.56\n"),
      "460.56");
  EXPECT_EQ(version_in_google_cache("CACHE_NVIDIA_DRIVER_VERSION=$(reboot)\n"), "");
  EXPECT_EQ(version_in_google_cache(""), "");
}

TEST(Modprobe, ALineForbidsAModuleInThreeWays) {
  for (const auto* line : {"blacklist nvidia", "install nvidia /bin/false",
                           "install  nvidia /bin/true", "alias nvidia off"})
    EXPECT_TRUE(forbids_module(line, "nvidia")) << line;
  for (const auto* line :
       {"blacklist nvidia_drm", "install nvidia /sbin/modprobe -i nvidia",
        "options nvidia NVreg_A=1", "alias char-major-195 nvidia", "", "blacklist"})
    EXPECT_FALSE(forbids_module(line, "nvidia")) << line;
}

TEST(Modprobe, AFileOfAnEarlierDirectoryHidesThatOfALaterOne) {
  test::Tree tree;
  tree.file("etc/modprobe.d/gpu.conf", "# blacklist nvidia\n");
  tree.file("usr/lib/modprobe.d/gpu.conf", "blacklist nvidia\n");
  tree.file("etc/modprobe.d/gpu.bak", "blacklist nvidia\n");
  EXPECT_THAT(read_modprobe_lines(tree.host()), IsEmpty());
}

TEST(Duration, HasTwoUnitsAtMost) {
  EXPECT_EQ(describe_duration(0), "0 seconds");
  EXPECT_EQ(describe_duration(1), "1 second");
  EXPECT_EQ(describe_duration(61), "1 minute and 1 second");
  EXPECT_EQ(describe_duration(2 * 86400 + 3 * 3600 + 4), "2 days and 3 hours");
  EXPECT_EQ(describe_duration(86400), "1 day");
  EXPECT_EQ(describe_duration(31'556'952LL * 14), "14 years");
}

TEST(Parsers, AcceptAnyBytes) {
  std::mt19937 random(7);
  const std::string seed =
      "Package: nvidia-driver\nStatus: install ok installed\nVersion: 1\nGNU C Library (x) release "
      "version 2.3\n/dev/sda1 / ext4 rw 0 0\nCACHE_NVIDIA_DRIVER_VERSION=460.56\n";
  for (int i = 0; i < 5'000; ++i) {
    auto text = seed.substr(0, random() % (seed.size() + 1));
    for (int n = 0; n < 5 && !text.empty(); ++n)
      text[random() % text.size()] = static_cast<char>(random());
    (void)find_driver_packages(text);
    (void)find_glibc_version(text);
    (void)find_mount(text, "/usr");
    (void)version_in_google_cache(text);
    (void)forbids_module(text, "nvidia");
    (void)DriverVersion::parse(text);
  }
}

}  // namespace
}  // namespace gantry::preflight
