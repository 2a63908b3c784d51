// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_file.hpp"

#include "install/kernel_module/module_image_for_test.hpp"
#include "install/kernel_module/module_signature_internal.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kRelease = "6.1.0-21-amd64";

ModuleImage uvm() {
  return {.info = {"version=580.159.04", "license=Dual MIT/GPL", "depends=nvidia,ib-core",
                   "name=nvidia_uvm", "vermagic=6.1.0-21-amd64 SMP preempt mod_unload "}};
}

TEST(ModuleFile, HasWhatTheModuleSaysAboutItself) {
  const auto module = parse_module(module_image(uvm()));
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_EQ(module->name, "nvidia_uvm");
  EXPECT_EQ(module->version, "580.159.04");
  EXPECT_EQ(module->license, "Dual MIT/GPL");
  EXPECT_EQ(module->vermagic, "6.1.0-21-amd64 SMP preempt mod_unload ");
  EXPECT_EQ(kernel_release(*module), kRelease);
  EXPECT_THAT(module->depends, ElementsAre("nvidia", "ib-core"));
  EXPECT_EQ(module->machine, 62);
  EXPECT_FALSE(module->is_signed);
}

TEST(ModuleFile, NamesTheSignerLikeTheKernelNamesItsKeys) {
  auto image = uvm();
  image.signature = example_signature();
  const auto module = parse_module(module_image(image));
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_TRUE(module->is_signed);
  EXPECT_EQ(module->signer, kExampleSigner);
  EXPECT_EQ(module->signature_serial, kExampleSerial);
}

TEST(ModuleFile, NamesTheKeyIfTheSignatureHasNoIssuer) {
  auto image = uvm();
  image.signature = example_signature_with_key_id();
  const auto module = parse_module(module_image(image));
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_EQ(module->signer, kExampleKeyId);
  EXPECT_EQ(module->signature_serial, "");
}

TEST(ModuleFile, SignatureOfAnotherFormIsASignatureWithoutSigner) {
  for (const auto& signature :
       {std::string("no DER at all"), std::string(80, '\x30'), example_signature().substr(0, 60)}) {
    auto image = uvm();
    image.signature = signature;
    const auto module = parse_module(module_image(image));
    ASSERT_TRUE(module.ok()) << module.error().text();
    EXPECT_TRUE(module->is_signed);
    EXPECT_EQ(module->signer, "");
  }
}

TEST(ModuleFile, RefusesASignatureThatTheKernelWouldNotRead) {
  const auto image = module_image(uvm());
  const auto size = static_cast<std::uint32_t>(image.size());
  for (const std::uint32_t claimed : {0U, size, size + 1, 0xffffffffU}) {
    const auto module = parse_module(image + signature_trailer(claimed));
    ASSERT_FALSE(module.ok()) << claimed;
    EXPECT_EQ(module.error().code(), Errc::Corrupt);
    EXPECT_THAT(module.error().text(), HasSubstr("signature is damaged"));
  }
  auto trailer = signature_trailer(10);
  trailer[0] = 1;
  EXPECT_EQ(parse_module(image + trailer).error().code(), Errc::Corrupt);
}

TEST(ModuleFile, KnowsSignaturesOfOldKernelsButNotTheirSigner) {
  const auto module = parse_module(module_image(uvm()) + signature_trailer(10, 1));
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_TRUE(module->is_signed);
  EXPECT_EQ(module->signer, "");
}

struct BadModule {
  std::string_view what;
  std::string bytes;
  Errc code;
  std::string_view text;
};

TEST(ModuleFile, SaysWhyAFileIsNoModule) {
  using namespace std::string_literals;
  auto program = uvm();
  program.type = 3;
  auto small = uvm();
  small.is_32bit = true;
  auto other = uvm();
  other.section = ".modinfx";
  const std::vector<BadModule> table{
      {"nothing", "", Errc::Corrupt, "ELF magic"},
      {"text", "not a module", Errc::Corrupt, "ELF magic"},
      {"a library", module_image(program), Errc::Corrupt, "a program or a library"},
      {"32 bits", module_image(small), Errc::Unsupported, "32-bit kernel"},
      {"an object", module_image(other), Errc::Corrupt, "no section .modinfo"},
      {"xz", "\xfd\x37zXZ\0rest"s, Errc::Unsupported, "compressed with xz"},
      {"zstd", "\x28\xb5\x2f\xfd rest", Errc::Unsupported, "unpack it with: zstd"},
      {"gzip", "\x1f\x8b\x08 rest", Errc::Unsupported, "compressed with gzip"},
      {"a page", "<!DOCTYPE html>", Errc::Corrupt, "ELF magic"}};
  for (const auto& bad : table) {
    const auto module = parse_module(bad.bytes);
    ASSERT_FALSE(module.ok()) << bad.what;
    EXPECT_EQ(module.error().code(), bad.code) << bad.what;
    EXPECT_THAT(module.error().text(), HasSubstr(bad.text)) << bad.what;
  }
}

TEST(ModuleFile, CutAnywhereItIsDamagedOrNotSigned) {
  auto image = uvm();
  image.signature = example_signature();
  const auto bytes = module_image(image);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto module = parse_module(std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(module.ok() && module->is_signed) << size;
  }
}

TEST(ModuleFile, EveryByteMayBeWrong) {
  auto image = uvm();
  image.signature = example_signature();
  const auto bytes = module_image(image);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
      auto damaged = bytes;
      damaged[at] = value;
      const auto module = parse_module(damaged);
      EXPECT_TRUE(!module.ok() || module->name.size() <= bytes.size());
    }
  }
}

TEST(ModuleFile, ShowsNoControlCharacters) {
  const auto module =
      parse_module(module_image({.info = {"name=a\x1b[2J", "version=1\n2", "depends=b\x07"}}));
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_EQ(module->name, "a\\x1b[2J");
  EXPECT_EQ(module->version, "1\\x0a2");
  EXPECT_THAT(module->depends, ElementsAre("b\\x07"));
}

TEST(ModuleFile, BoundsWhatItKeeps) {
  std::string many = "depends=";
  for (int i = 0; i < 5000; ++i) many += "m,";
  const auto module =
      parse_module(module_image({.info = {"version=" + std::string(100'000, '1'), many}}));
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_EQ(module->version.size(), 512U);
  EXPECT_EQ(module->depends.size(), 256U);
}

TEST(ReadModule, ReadsAFileBelowTheRoot) {
  test::Tree tree;
  tree.file("lib/modules/x/nvidia.ko", nvidia_module("nvidia", kRelease, "580.159.04"));
  const auto module = read_module(tree.host(), "/lib/modules/x/nvidia.ko");
  ASSERT_TRUE(module.ok()) << module.error().text();
  EXPECT_EQ(module->name, "nvidia");
  EXPECT_EQ(module->license, "NVIDIA");
  EXPECT_THAT(module->depends, IsEmpty());
}

TEST(ReadModule, TakesTheNameOfAnOldModuleFromItsFile) {
  test::Tree tree;
  tree.file("nvidia-uvm.ko", module_image({.info = {"vermagic=3.10.0 SMP "}}));
  EXPECT_EQ(read_module(tree.host(), "/nvidia-uvm.ko")->name, "nvidia_uvm");
}

TEST(ReadModule, NamesTheFileInItsErrors) {
  test::Tree tree;
  tree.file("nvidia.ko", "cut").directory("dir.ko");
  const auto cut = read_module(tree.host(), "/nvidia.ko");
  EXPECT_EQ(cut.error().code(), Errc::Corrupt);
  EXPECT_THAT(cut.error().text(), HasSubstr(tree.path("nvidia.ko")));
  EXPECT_EQ(read_module(tree.host(), "/none.ko").error().code(), Errc::NotFound);
  EXPECT_EQ(read_module(tree.host(), "/dir.ko").error().code(), Errc::Invalid);
}

TEST(ModuleIsSigned, LooksAtTheEndOfTheFile) {
  test::Tree tree;
  tree.file("signed.ko",
            nvidia_module("nvidia", kRelease, "580.159.04", "NVIDIA", example_signature()))
      .file("unsigned.ko", nvidia_module("nvidia", kRelease, "580.159.04"))
      .file("short.ko", "x")
      .file("packed.ko.xz", "x");
  EXPECT_EQ(module_is_signed(tree.host(), "/signed.ko"), true);
  EXPECT_EQ(module_is_signed(tree.host(), "/unsigned.ko"), false);
  EXPECT_EQ(module_is_signed(tree.host(), "/short.ko"), false);
  EXPECT_EQ(module_is_signed(tree.host(), "/packed.ko.xz"), std::nullopt);
  EXPECT_EQ(module_is_signed(tree.host(), "/none.ko"), std::nullopt);
}

}  // namespace
}  // namespace gantry::kernel_module
