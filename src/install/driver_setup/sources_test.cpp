// SPDX-License-Identifier: Apache-2.0
// Where a driver comes from, and modules for other kernels.
#include "install/driver_package/openpgp_key_for_test.hpp"
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
  std::string list;
  for (const auto* name : {"nvidia", "nvidia-uvm"}) {
    const auto module = kernel_module::nvidia_module(kernel_module::module_name(name), release,
                                                     version, "Dual MIT/GPL");
    machine.tree().file(fmt::format("root/modules/{}.ko", name), module);
    driver_package::Sha256 sum;
    sum.add(module);
    list += fmt::format("{}  {}.ko\n", sum.finish(), name);
  }
  machine.tree().file("root/modules/SHA256SUMS", list);
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

// Between the preflight and the copy, or of a preflight that did not look.
TEST(DriverInstall, PrecompiledModulesWithoutTheirDigestAreNotCopied) {
  SetupMachine machine;
  auto request = put_precompiled(machine, kSetupKernel, kNewDriver);
  const auto before = machine.files();
  const auto list = *machine.host().read("/root/modules/SHA256SUMS");
  request.modules_sha256 = std::string(64, 'a');
  EXPECT_EQ(machine.install(request).error().code(), Errc::Denied);
  driver_package::Sha256 sum;
  sum.add(list);
  request.modules_sha256 = sum.finish();
  machine.tree().file("root/modules/SHA256SUMS", list.substr(0, list.find('\n') + 1));
  EXPECT_FALSE(machine.install(request).ok());
  request.modules_sha256 = "";
  const auto unlisted = machine.install(request);
  ASSERT_FALSE(unlisted.ok());
  EXPECT_THAT(unlisted.error().text(), HasSubstr("has no digest of nvidia-uvm.ko"));
  machine.tree().file("root/modules/SHA256SUMS", list);
  EXPECT_EQ(machine.files(), before);
  machine.tree().remove("root/modules/SHA256SUMS");
  EXPECT_THAT(machine.install(request).error().text(), HasSubstr("--trust-modules-without-digest"));
  request.trust_modules_without_digest = true;
  expect_ok(machine.install(request));
  machine.expect_installed(kNewDriver);
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

TEST(DriverInstall, TakesPackagesBackWithWhatCameWithThem) {
  SetupMachine machine;
  machine.add_packages("535.183.01");
  machine.packages = {"make", "old-thing", "nvidia-modprobe"};
  const auto before = machine.files();
  preflight::DriverRequest request{.version = "535", .source = preflight::Source::Packages};
  const auto done = machine.install(request);
  expect_ok(done);
  EXPECT_THAT(done->record.packages, Contains("nvidia-smi 535.183.01-1~deb12u1"));
  EXPECT_THAT(done->notes, Contains(HasSubstr("leaves it: nvidia-modprobe")));
  EXPECT_TRUE(machine.packages.contains("libnvidia-ml1"));
  expect_ok(machine.remove());
  // gcc and the kernel's headers stay, as the notes of the plan say.
  EXPECT_THAT(machine.packages, AllOf(Contains("make"), Contains("old-thing"),
                                      Contains("nvidia-modprobe"), Contains("gcc")));
  EXPECT_THAT(machine.packages, Not(Contains("nvidia-smi")));
  EXPECT_THAT(machine.packages, Not(Contains("libnvidia-ml1")));
  EXPECT_EQ(machine.files(), before);
}

TEST(DriverInstall, LeavesPackagesAloneThatAFailedInstallationDidNotInstall) {
  SetupMachine machine;
  machine.add_packages("535.183.01");
  machine.packages = {"nvidia-kernel-dkms", "nvidia-smi", "make"};
  const auto packages = machine.packages;
  const auto before = machine.files();
  machine.script.rule = [](const std::string& entry) -> Status {
    if (!entry.ends_with("apt-get update")) return {};
    return Error(Errc::Internal,
                 "status 100: E: The repository 'http://deb.debian.org/debian bookworm InRelease' "
                 "is not signed.");
  };
  const auto refused = machine.install({.version = "535", .source = preflight::Source::Packages});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), AllOf(HasSubstr("the repository is not signed"),
                                            HasSubstr("all is as it was before")));
  EXPECT_EQ(machine.packages, packages);
  EXPECT_EQ(machine.files(), before);
}

// Also when the first run was killed behind any of the commands.
TEST(DriverInstall, KnowsAfterAKillWhichPackagesWereThereBefore) {
  for (int fault_at = 1; fault_at < 200; ++fault_at) {
    SetupMachine machine;
    machine.add_packages("535.183.01");
    machine.packages = {"nvidia-modprobe"};
    const preflight::DriverRequest request{.version = "535", .source = preflight::Source::Packages};
    machine.script.fault = Fault::KillAfter;
    machine.script.fault_at = fault_at;
    try {
      expect_ok(machine.install(request));
      break;  // it has fewer effects
    } catch (const KilledForTest&) {
    }
    machine.script = {};
    expect_ok(machine.install(request));
    expect_ok(machine.remove());
    EXPECT_THAT(machine.packages, Contains("nvidia-modprobe")) << fault_at;
    EXPECT_THAT(machine.packages, Not(Contains("nvidia-smi"))) << fault_at;
    EXPECT_THAT(machine.packages, Not(Contains("libnvidia-ml1"))) << fault_at;
  }
}

constexpr const char* kSuseKey =
    "https://download.nvidia.com/suse/sle15sp1/repodata/repomd.xml.key";

preflight::DriverRequest suse_request(SetupMachine& machine) {
  machine.add_packages("430.26");
  machine.adjust_facts = [](preflight::MachineFacts& facts) {
    facts.os = {.id = "sles", .version_id = "15.1", .id_like = {"suse"}};
    facts.build_release = "4.12.14-197.15-default";
  };
  machine.server[kSuseKey] = driver_package::kTestKey;
  return {.version = "430",
          .source = preflight::Source::Packages,
          .repository_keys = {driver_package::kTestKeyFingerprint},
          .kernel = "4.12.14-197.15-default"};
}

// dnf -y and zypper --gpg-auto-import-keys would take whatever key the server has.
TEST(DriverInstall, RefusesARepositoryKeyThatTheRequestDoesNotName) {
  SetupMachine machine;
  auto request = suse_request(machine);
  const auto before = machine.files();
  request.repository_keys = {};
  const auto unnamed = machine.install(request);
  ASSERT_FALSE(unnamed.ok());
  EXPECT_EQ(unnamed.error().code(), Errc::Denied);
  EXPECT_THAT(unnamed.error().text(),
              AllOf(HasSubstr(driver_package::kTestKeyFingerprint),
                    HasSubstr("--version 430 --kernel 4.12.14-197.15-default --repository-key " +
                              std::string(driver_package::kTestKeyFingerprint)),
                    HasSubstr("--trust-repository-key"), HasSubstr("all is as it was before")));
  const std::string other(40, 'A');
  request.repository_keys = {other};
  const auto wrong = machine.install(request);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text(), HasSubstr(other + " was named"));
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("--import"))));
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("zypper"))));
  EXPECT_EQ(machine.files(), before);
  EXPECT_THAT(machine.rpm_keys, IsEmpty());
}

TEST(DriverInstall, TakesTheNamedKeyOutOfRpmsDatabaseAgain) {
  SetupMachine machine;
  machine.tree().file("root/vendor.asc", driver_package::kTestKey);
  machine.rpm_keys["gpg-pubkey-01234567-6affc8c8"] = "another";
  auto request = suse_request(machine);
  for (const auto& names : {std::vector<std::string>{driver_package::kTestKeyFingerprint},
                            std::vector<std::string>{"/root/vendor.asc"},
                            {}}) {
    request.repository_keys = names;
    request.trust_repository_key = names.empty();
    const auto before = machine.files();
    machine.script = {};
    expect_ok(machine.install(request));
    EXPECT_THAT(machine.script.log, Contains("run zypper --non-interactive refresh nvidia"));
    EXPECT_TRUE(machine.rpm_keys.contains("gpg-pubkey-88eb8069-6affc8c8"));
    expect_ok(machine.remove());
    EXPECT_EQ(machine.rpm_keys.size(), 1U);
    EXPECT_EQ(machine.files(), before);
  }
}

TEST(DriverInstall, LeavesAKeyInRpmsDatabaseThatWasThereBefore) {
  SetupMachine machine;
  auto request = suse_request(machine);
  request.repository_keys = {};
  machine.rpm_keys["gpg-pubkey-88eb8069-6affc8c8"] = driver_package::kTestKey;
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("--import"))));
  expect_ok(machine.remove());
  EXPECT_TRUE(machine.rpm_keys.contains("gpg-pubkey-88eb8069-6affc8c8"));
}

TEST(DriverInstall, KnowsAfterAKillWhichKeyIsNewToRpm) {
  for (int fault_at = 1; fault_at < 200; ++fault_at) {
    SetupMachine machine;
    const auto request = suse_request(machine);
    machine.script.fault = Fault::KillAfter;
    machine.script.fault_at = fault_at;
    try {
      expect_ok(machine.install(request));
      break;  // it has fewer effects
    } catch (const KilledForTest&) {
    }
    machine.script = {};
    expect_ok(machine.install(request));
    expect_ok(machine.remove());
    EXPECT_THAT(machine.rpm_keys, IsEmpty()) << fault_at;
  }
}

// Who can write the list could turn the signatures off.
TEST(DriverInstall, WritesTheListOfYumItselfAndTakesOnlyTheKeyFromTheServers) {
  SetupMachine machine;
  machine.add_packages("580.159.04");
  machine.adjust_facts = [](preflight::MachineFacts& facts) {
    facts.os = {.id = "fedora", .version_id = "42"};
  };
  const std::string base =
      "https://developer.download.nvidia.com/compute/cuda/repos/fedora42/x86_64";
  machine.server[base + "/cuda-fedora42.repo"] =
      fmt::format("[cuda]\nbaseurl=https://example.org\ngpgcheck=0\ngpgkey={}/K.pub\n", base);
  machine.server[base + "/K.pub"] = driver_package::kTestKey;
  const preflight::DriverRequest request{.version = "580",
                                         .source = preflight::Source::Packages,
                                         .repository_keys = {driver_package::kTestKeyFingerprint}};
  expect_ok(machine.install(request));
  const auto list = machine.host().read("/etc/yum.repos.d/cuda-fedora42.repo").value_or("");
  EXPECT_THAT(list, AllOf(HasSubstr("baseurl=" + base + "\n"), HasSubstr("gpgcheck=1\n"),
                          HasSubstr("gpgkey=file:///etc/pki/rpm-gpg/gantry-nvidia.asc\n")));
  EXPECT_EQ(machine.rpm_keys.size(), 1U);
}

TEST(DriverInstall, NamesTheWrongRepositoryOfSuseThatIsThere) {
  SetupMachine machine;
  const auto request = suse_request(machine);
  const auto with = [&](std::string_view url) {
    machine.tree().file("etc/zypp/repos.d/nvidia.repo",
                        fmt::format("[nvidia]\nenabled=1\nbaseurl={}\n", url));
    const auto done = machine.install(request);
    return done.ok() ? "installed" : done.error().text();
  };
  EXPECT_THAT(with("https://developer.nvidia.com/cuda-gpus"),
              AllOf(HasSubstr("is a web page of NVIDIA's"), HasSubstr("suse/sle15sp1 nvidia")));
  EXPECT_THAT(with("https://example.org/x"), HasSubstr("another repository of the same name"));
  machine.script = {};
  EXPECT_EQ(with("https://download.nvidia.com/suse/sle15sp1/"), "installed");
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("addrepo"))));
  expect_ok(machine.remove());
  EXPECT_TRUE(machine.host().exists("/etc/zypp/repos.d/nvidia.repo"));
}

TEST(DriverInstall, AsksForThePackagesOfTheKernelThatIsNamed) {
  SetupMachine machine;
  machine.add_packages("535.183.01");
  machine.adjust_facts = [](preflight::MachineFacts& facts) {
    facts.build_release = kOtherKernel;
    facts.modules_disabled = true;  // of the kernel that runs here
  };
  const preflight::DriverRequest request{
      .version = "535", .source = preflight::Source::Packages, .kernel = std::string(kOtherKernel)};
  const auto done = machine.install(request);
  expect_ok(done);
  EXPECT_THAT(machine.script.log,
              Contains(HasSubstr(fmt::format("linux-headers-{}", kOtherKernel))));
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("run modprobe"))));
  EXPECT_EQ(done->record.version, "535.183.01");
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
