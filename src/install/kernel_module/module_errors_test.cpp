// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_loader.hpp"

#include <gmock/gmock.h>

#include <cerrno>

namespace gantry::kernel_module {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Lockdown = ModuleTrust::Lockdown;
using SecureBoot = ModuleTrust::SecureBoot;

FailedLoad failed_load() {
  return {.path = "/x/nvidia.ko",
          .file = ModuleFile{.name = "nvidia",
                             .vermagic = "6.1.0-21-amd64 SMP preempt mod_unload ",
                             .machine = 62},
          .release = "6.1.0-21-amd64"};
}

TEST(FailedLoad, UnsignedModuleUnderEnforcedSignatures) {
  auto failed = failed_load();
  failed.trust = {
      .secure_boot = SecureBoot::Off, .lockdown = Lockdown::None, .signatures_enforced = true};
  failed.log = {"Loading of unsigned module is rejected"};
  for (const int err : {EKEYREJECTED, ENOKEY}) {
    const auto error = explain_failed_load(err, failed);
    EXPECT_EQ(error.code(), Errc::Denied);
    EXPECT_THAT(error.cause(),
                AllOf(HasSubstr("(module.sig_enforce), and the module nvidia is not signed"),
                      HasSubstr("kernel log: Loading of unsigned module is rejected")));
    EXPECT_THAT(error.remedy(), HasSubstr("module.sig_enforce=1"));
  }
}

TEST(FailedLoad, UnsignedModuleWhereTheRulesCannotBeRead) {
  EXPECT_EQ(explain_failed_load(EKEYREJECTED, failed_load()).cause(),
            "the kernel accepts signed modules only, and the module nvidia is not signed");
}

TEST(FailedLoad, SignatureThatDoesNotFit) {
  auto failed = failed_load();
  failed.file->is_signed = true;
  failed.file->signer = "Example Corp: Driver signing";
  failed.trust = {.secure_boot = SecureBoot::Off, .lockdown = Lockdown::None};
  const auto error = explain_failed_load(EKEYREJECTED, failed);
  EXPECT_EQ(error.code(), Errc::Denied);
  EXPECT_EQ(error.cause(),
            "the kernel rejected the signature of the module nvidia by \"Example Corp: Driver "
            "signing\": the file was changed after it was signed");
  EXPECT_THAT(error.remedy(), HasSubstr("install the file again"));
  failed.trust.signatures_enforced = true;
  EXPECT_THAT(explain_failed_load(EBADMSG, failed).cause(), HasSubstr("does not have the key"));
}

TEST(FailedLoad, KeyThatTheKernelDoesNotHave) {
  auto failed = failed_load();
  failed.file->is_signed = true;
  failed.trust = {.secure_boot = SecureBoot::On, .lockdown = Lockdown::Integrity};
  failed.log = {"Loading of module with unavailable key is rejected"};
  const auto error = explain_failed_load(EKEYREJECTED, failed);
  EXPECT_THAT(error.cause(), HasSubstr("has no key for the module nvidia"));
  EXPECT_THAT(error.remedy(), HasSubstr("mokutil --import"));
}

TEST(FailedLoad, LockdownDiffersFromAMissingRight) {
  auto failed = failed_load();
  failed.trust = {.secure_boot = SecureBoot::On, .lockdown = Lockdown::Integrity};
  EXPECT_THAT(explain_failed_load(EPERM, failed).cause(), HasSubstr("secure boot is on"));
  failed.trust = {.lockdown = Lockdown::None};
  const auto error = explain_failed_load(EPERM, failed);
  EXPECT_EQ(error.code(), Errc::Denied);
  EXPECT_THAT(error.remedy(), HasSubstr("SYS_MODULE"));
  failed.loading_disabled = true;
  EXPECT_THAT(explain_failed_load(EPERM, failed).cause(), HasSubstr("kernel.modules_disabled"));
}

TEST(FailedLoad, ModuleOfAnotherKernelIsReportedWithBothVermagics) {
  auto failed = failed_load();
  failed.release = "6.1.0-22-amd64";
  failed.kernel_vermagic = "6.1.0-22-amd64 SMP preempt mod_unload ";
  const auto error = explain_failed_load(ENOEXEC, failed);
  EXPECT_EQ(error.code(), Errc::Invalid);
  EXPECT_EQ(error.cause(),
            "the module nvidia was built for kernel 6.1.0-21-amd64, and 6.1.0-22-amd64 is running: "
            "its vermagic is \"6.1.0-21-amd64 SMP preempt mod_unload\", the kernel's is "
            "\"6.1.0-22-amd64 SMP preempt mod_unload\"");
  EXPECT_THAT(error.remedy(), HasSubstr("the headers of 6.1.0-22-amd64"));
}

TEST(FailedLoad, VermagicOfTheKernelMayComeFromItsLog) {
  auto failed = failed_load();
  failed.log = {
      "nvidia: version magic '6.1.0-21-amd64 SMP preempt mod_unload ' should be "
      "'6.1.0-21-amd64 SMP mod_unload '"};
  const auto error = explain_failed_load(ENOEXEC, failed);
  EXPECT_THAT(error.cause(), AllOf(HasSubstr("another build of kernel 6.1.0-21-amd64"),
                                   HasSubstr("the kernel's is \"6.1.0-21-amd64 SMP mod_unload\"")));
}

TEST(FailedLoad, FileThatIsNoModule) {
  auto failed = failed_load();
  failed.file.reset();
  const auto error = explain_failed_load(ENOEXEC, failed);
  EXPECT_THAT(error.text(), HasSubstr("does not accept /x/nvidia.ko as a module"));
}

TEST(FailedLoad, MissingSymbolNamesTheModuleToLoadFirst) {
  auto failed = failed_load();
  failed.file->name = "nvidia_uvm";
  failed.file->depends = {"nvidia", "drm"};
  failed.loaded = {{.name = "drm"}};
  failed.log = {"nvidia_uvm: Unknown symbol nvUvmInterfaceRegisterGpu (err -2)"};
  const auto error = explain_failed_load(ENOENT, failed);
  EXPECT_EQ(error.code(), Errc::NotFound);
  EXPECT_THAT(error.cause(), HasSubstr("nvidia_uvm uses nvUvmInterfaceRegisterGpu"));
  EXPECT_EQ(error.remedy(), "load nvidia first");
  failed.loaded.push_back({.name = "nvidia"});
  EXPECT_THAT(explain_failed_load(ENOENT, failed).remedy(), HasSubstr("headers"));
}

TEST(FailedLoad, NoDeviceIsReportedWithWhatTheDriverLogged) {
  struct Case {
    std::string_view line, remedy;
  };
  constexpr Case kCases[] = {
      {"NVRM: GPU 0000:01:00.0 is already bound to nouveau.", "such as nouveau"},
      {"NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
       "open flavour"},
      {"NVRM: installed in this system is not supported by open nvidia.ko", "proprietary flavour"},
      {"NVRM: supported through the NVIDIA 470.xx Legacy drivers.", "install the branch"},
      {"NVRM: No NVIDIA GPU found.", "gantry doctor"}};
  for (const auto& [line, remedy] : kCases) {
    auto failed = failed_load();
    failed.log = {"other", std::string(line), "NVRM: None of the NVIDIA devices were initialized."};
    const auto error = explain_failed_load(ENODEV, failed);
    EXPECT_EQ(error.code(), Errc::NotFound);
    EXPECT_THAT(error.remedy(), HasSubstr(remedy)) << line;
  }
  EXPECT_THAT(explain_failed_load(ENODEV, failed_load()).cause(), HasSubstr("found no device"));
}

TEST(FailedLoad, OtherErrors) {
  EXPECT_EQ(explain_failed_load(EEXIST, failed_load()).code(), Errc::Exists);
  EXPECT_EQ(explain_failed_load(EBUSY, failed_load()).code(), Errc::Busy);
  EXPECT_EQ(explain_failed_load(ENOSYS, failed_load()).code(), Errc::Unsupported);
  EXPECT_THAT(explain_failed_load(EOPNOTSUPP, failed_load()).remedy(), HasSubstr("modprobe"));
  auto failed = failed_load();
  failed.log = {"nvidia: `x' invalid for parameter `NVreg_Mode'"};
  EXPECT_THAT(explain_failed_load(EINVAL, failed).cause(), HasSubstr("NVreg_Mode"));
  failed.log = {"nvidia: disagrees about version of symbol module_layout"};
  EXPECT_THAT(explain_failed_load(EINVAL, failed).cause(), HasSubstr("other headers"));
  EXPECT_THAT(explain_failed_load(ENOMEM, failed_load()).text(),
              HasSubstr("load the module nvidia: Cannot allocate memory"));
}

TEST(FailedUnload, NamesTheUsers) {
  const std::vector<LoadedModule> loaded{
      {.name = "nvidia", .references = 3, .users = {"nvidia_uvm", "nv_peer_mem"}, .state = "Live"},
      {.name = "nvidia_uvm", .references = 2, .state = "Live"}};
  const auto used = explain_failed_unload(EWOULDBLOCK, "nvidia", loaded);
  EXPECT_EQ(used.code(), Errc::Busy);
  EXPECT_EQ(used.cause(), "the module nvidia is used by the modules nvidia_uvm, nv_peer_mem");
  EXPECT_EQ(used.remedy(), "unload nvidia_uvm, then nv_peer_mem first");
  const auto open = explain_failed_unload(EWOULDBLOCK, "nvidia-uvm", loaded);
  EXPECT_THAT(open.cause(), HasSubstr("nvidia_uvm is held 2 times by open device files"));
}

TEST(FailedUnload, OtherErrors) {
  EXPECT_EQ(explain_failed_unload(ENOENT, "nvidia", {}).code(), Errc::NotFound);
  EXPECT_EQ(explain_failed_unload(EPERM, "nvidia", {}).code(), Errc::Denied);
  EXPECT_EQ(explain_failed_unload(ENOSYS, "nvidia", {}).code(), Errc::Unsupported);
  EXPECT_EQ(explain_failed_unload(EBUSY, "nvidia", {}).code(), Errc::Busy);
  const std::vector<LoadedModule> leaving{{.name = "nvidia", .state = "Unloading"}};
  EXPECT_THAT(explain_failed_unload(EBUSY, "nvidia", leaving).text(), HasSubstr("Unloading"));
  const std::vector<LoadedModule> permanent{{.name = "nvidia", .state = "Live", .permanent = true}};
  EXPECT_THAT(explain_failed_unload(EBUSY, "nvidia", permanent).text(),
              HasSubstr("cannot be unloaded"));
  EXPECT_THAT(explain_failed_unload(EIO, "nvidia", {}).text(), HasSubstr("unload the module"));
}

}  // namespace
}  // namespace gantry::kernel_module
