// SPDX-License-Identifier: Apache-2.0
// Where a driver comes from, and modules for other kernels.
#include "install/driver_setup/install.hpp"
#include "install/driver_setup/machine_for_test.hpp"
#include "install/kernel_module/loaded_modules.hpp"
#include "install/kernel_module/module_image_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_setup {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(DriverInstall, DownloadsWithAPinnedDigestAndNotWithoutOne) {
  SetupMachine machine;
  const auto path = machine.archive(kNewDriver);
  const auto bytes = *machine.host().read(path);
  const std::string url = "https://mirror.example.org/NVIDIA-Linux-x86_64-580.159.04.run";
  machine.server[url] = bytes;
  preflight::DriverRequest request{.url = url};
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("--trust-download-without-digest"));

  driver_package::Sha256 sum;
  sum.add(bytes);
  request.sha256 = sum.finish();
  expect_ok(machine.install(request));
  machine.expect_installed(kNewDriver);
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, IsEmpty());
  EXPECT_FALSE(machine.host().exists("/var/lib/gantry/driver-install/downloads"));
}

// Google's installer left directories where the links have to be.
TEST(DriverInstall, MovesTheDirectoriesOfGooglesInstallerAsideAndBack) {
  SetupMachine machine;
  machine.tree().file("usr/local/nvidia/lib64/libcuda.so.1", "google's");
  const auto refused = machine.install(kNewDriver);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Exists);
  machine.tree().file("usr/local/nvidia/.cache", "CACHE_NVIDIA_DRIVER_VERSION=460.56\n");
  const auto before = machine.files();
  expect_ok(machine.install(kNewDriver));
  machine.expect_installed(kNewDriver);
  EXPECT_TRUE(machine.host().exists("/usr/local/nvidia/lib64.before-gantry/libcuda.so.1"));
  expect_ok(machine.remove());
  auto after = machine.files();
  for (const auto& [path, content] : before) {
    if (!path.starts_with("/var/lib/gantry")) {  // the lock of the refused installation
      EXPECT_EQ(after[path], content) << path;
    }
    after.erase(path);
  }
  EXPECT_THAT(after, IsEmpty());
}

// Modules that were built elsewhere, for `release` and of `version`, and the request for them.
preflight::DriverRequest put_precompiled(SetupMachine& machine, std::string_view release,
                                         const std::string& version) {
  for (const auto* name : {"nvidia", "nvidia-uvm"}) {
    machine.tree().file(fmt::format("root/modules/{}.ko", name),
                        kernel_module::nvidia_module(kernel_module::module_name(name), release,
                                                     version, "Dual MIT/GPL"));
  }
  machine.adjust_facts = [&](preflight::MachineFacts& facts) {
    for (const auto* path : {"/root/modules/nvidia.ko", "/root/modules/nvidia-uvm.ko"})
      facts.precompiled.push_back({path, kernel_module::read_module(machine.host(), path)});
  };
  auto request = machine.request(kNewDriver);
  request.source = preflight::Source::Precompiled;
  request.modules = "/root/modules";
  return request;
}

TEST(DriverInstall, PrecompiledModulesAreCheckedAgainstTheKernel) {
  SetupMachine machine;
  const auto other_kernel = machine.install(put_precompiled(machine, kOtherKernel, kNewDriver));
  ASSERT_FALSE(other_kernel.ok());
  EXPECT_THAT(other_kernel.error().text(), HasSubstr("was built for kernel 6.1.0-22-amd64"));
  const auto other_version = machine.install(put_precompiled(machine, kSetupKernel, kOldDriver));
  ASSERT_FALSE(other_version.ok());
  EXPECT_THAT(other_version.error().text(), HasSubstr("is of driver 460.56"));
  const auto request = put_precompiled(machine, kSetupKernel, kNewDriver);
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("run make"))));
  machine.expect_installed(kNewDriver);
  EXPECT_TRUE(machine.host().exists("/root/modules/nvidia.ko"));
}

// Branch 535 would get the proprietary ones if Gantry built them.
TEST(DriverInstall, PrecompiledModulesSayWhichFlavourIsInstalled) {
  SetupMachine machine;
  const std::string version = "535.261.03";
  auto request = put_precompiled(machine, kSetupKernel, version);
  request.version = version;
  request.run_file = machine.archive(version);
  const auto done = machine.install(request);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(done->record.flavour, preflight::Flavour::Open);
  machine.expect_installed(version);
}

TEST(DriverInstall, TakesPackagesAndLeavesTheirFilesToThem) {
  SetupMachine machine;
  machine.add_packages("535.183.01");
  preflight::DriverRequest request{.version = "535", .source = preflight::Source::Packages};
  const auto done = machine.install(request);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(machine.loaded(), "535.183.01");
  EXPECT_EQ(done->record.version, "535.183.01");
  EXPECT_FALSE(machine.host().exists("/usr/local/nvidia"));
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, IsEmpty());
  expect_ok(machine.remove());
  EXPECT_THAT(machine.script.log, Contains(HasSubstr("apt-get")));
  EXPECT_EQ(machine.loaded(), "");
}

TEST(DriverBuild, ForAKernelThatDoesNotRunYetLetsItLoadAfterTheReboot) {
  SetupMachine machine;
  expect_ok(machine.install(kNewDriver));
  const auto early = machine.build(kOtherKernel);
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().text(), HasSubstr(kOtherKernel));
  machine.kernel(kOtherKernel);
  const auto built = machine.build(kOtherKernel);
  expect_ok(built);
  EXPECT_TRUE(built->changed);
  EXPECT_FALSE(machine.build(kOtherKernel)->changed);

  machine.reboot();
  machine.tree().file("proc/sys/kernel/osrelease", fmt::format("{}\n", kOtherKernel));
  expect_ok(machine.load());
  machine.expect_installed(kNewDriver);
}

TEST(DriverLoad, SaysWhatIsMissing) {
  SetupMachine machine;
  const auto nothing = machine.load();
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code(), Errc::NotFound);
  expect_ok(machine.install(kNewDriver));
  machine.reboot();
  machine.tree().file("proc/sys/kernel/osrelease", fmt::format("{}\n", kOtherKernel));
  const auto other = machine.load();
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Errc::NotFound);
  EXPECT_THAT(other.error().text(),
              AllOf(HasSubstr("no modules of the driver 580.159.04 (open) for the kernel "
                              "6.1.0-22-amd64"),
                    HasSubstr("sudo gantry driver build --kernel 6.1.0-22-amd64")));
}

}  // namespace
}  // namespace gantry::driver_setup
