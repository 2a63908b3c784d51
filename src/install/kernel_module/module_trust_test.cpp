// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_trust.hpp"

#include "install/kernel_module/certificate_internal.hpp"
#include "install/kernel_module/der_internal.hpp"
#include "install/kernel_module/module_image_for_test.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Lockdown = ModuleTrust::Lockdown;
using SecureBoot = ModuleTrust::SecureBoot;

constexpr std::string_view kVariable =
    "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr std::string_view kKeys =
    "0a1b2c3d I------     1 perm 1f030000     0     0 asymmetri Debian Secure Boot CA: "
    "6ccece7e4c6c0d1f6149f3dd27dfcc5cbb419ea1: X509.rsa bb419ea1 []\n"
    "1bd5a9f4 I------     2 perm 1f0b0000     0     0 keyring   .builtin_trusted_keys: 2\n"
    "2cd5a9f4 I--Q---     3 perm 3f030000     0     0 keyring   _ses: 1\n"
    "3dd5a9f4 I------     1 perm 1f030000     0     0 asymmetri Example Corp: Driver signing: "
    "554ab53aeb582ddad4238f95e6317beadc6b477b: X509.id-ecPublicKey dc6b477b []\n";

// A list of UEFI with one certificate.
std::string signature_list(const std::string& certificate) {
  const auto number = [](std::size_t value) {
    std::string text;
    for (int i = 0; i < 4; ++i) text.push_back(static_cast<char>(value >> (8U * unsigned(i))));
    return text;
  };
  const auto entry = 16 + certificate.size();
  return std::string("\xa1\x59\xc0\xa5\xe4\x94\xa7\x4a\x87\xb5\xab\x15\x5c\x2b\xf0\x72", 16) +
         number(28 + entry) + number(0) + number(entry) + std::string(16, 'o') + certificate;
}

TEST(ModuleTrust, IsReadFromTheMachine) {
  test::Tree tree;
  tree.file(kVariable, std::string("\x06\0\0\0\1", 5))
      .file("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
      .file("sys/module/module/parameters/sig_enforce", "Y\n")
      .file("proc/keys", kKeys)
      .file("sys/firmware/efi/mok-variables/MokListRT", signature_list(example_certificate()));
  const auto trust = read_module_trust(tree.host());
  EXPECT_EQ(trust.secure_boot, SecureBoot::On);
  EXPECT_EQ(trust.lockdown, Lockdown::Integrity);
  EXPECT_TRUE(trust.signatures_enforced);
  EXPECT_THAT(
      trust.trusted_keys,
      ElementsAre("Debian Secure Boot CA: 6ccece7e4c6c0d1f6149f3dd27dfcc5cbb419ea1",
                  "Example Corp: Driver signing: 554ab53aeb582ddad4238f95e6317beadc6b477b"));
  EXPECT_THAT(trust.enrolled,
              ElementsAre(EnrolledCertificate{.issuer = std::string(kExampleSigner),
                                              .subject = std::string(kExampleSigner),
                                              .serial = std::string(kExampleSerial)}));
}

TEST(ModuleTrust, ReadsTheVariableWhereTheKernelHasNoCopy) {
  test::Tree tree;
  tree.file("sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23",
            std::string("\x06\0\0\0", 4) + signature_list(example_certificate()));
  EXPECT_EQ(read_module_trust(tree.host()).enrolled.size(), 1U);
}

// `mokutil --disable-validation`
TEST(ModuleTrust, ShimThatChecksNothingTurnsSecureBootOff) {
  constexpr std::string_view kState =
      "sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23";
  test::Tree tree;
  tree.file(kVariable, std::string("\x06\0\0\0\1", 5));
  EXPECT_FALSE(read_module_trust(tree.host()).validation_disabled);
  EXPECT_TRUE(refuses_unsigned(read_module_trust(tree.host())));
  tree.file(kState, std::string("\x06\0\0\0\0", 5));
  EXPECT_FALSE(read_module_trust(tree.host()).validation_disabled);
  tree.file(kState, std::string("\x06\0\0\0\1", 5));
  EXPECT_EQ(read_module_trust(tree.host()).secure_boot, SecureBoot::On);
  EXPECT_FALSE(refuses_unsigned(read_module_trust(tree.host())));
  tree.file("sys/firmware/efi/mok-variables/MokSBStateRT", std::string(1, '\0'));
  EXPECT_TRUE(refuses_unsigned(read_module_trust(tree.host())));
  tree.file("sys/firmware/efi/mok-variables/MokSBStateRT", "\1");
  EXPECT_FALSE(refuses_unsigned(read_module_trust(tree.host())));
  tree.file("sys/module/module/parameters/sig_enforce", "Y\n");
  const auto trust = read_module_trust(tree.host());
  EXPECT_TRUE(refuses_unsigned(trust));
  EXPECT_THAT(*reason_refused({.name = "nvidia"}, trust), HasSubstr("module.sig_enforce"));
}

TEST(ModuleTrust, WithoutUefiThereIsNoSecureBoot) {
  test::Tree tree;
  tree.directory("sys/firmware/acpi");
  EXPECT_EQ(read_module_trust(tree.host()).secure_boot, SecureBoot::Off);
  tree.directory("sys/firmware/efi/efivars");
  EXPECT_EQ(read_module_trust(tree.host()).secure_boot, SecureBoot::Unknown);
  tree.file("sys/firmware/efi/efivars/BootOrder-8be4df61");
  EXPECT_EQ(read_module_trust(tree.host()).secure_boot, SecureBoot::Off);
  tree.file(kVariable, std::string("\x06\0\0\0\0", 5));
  EXPECT_EQ(read_module_trust(tree.host()).secure_boot, SecureBoot::Off);
  test::Tree empty;
  EXPECT_EQ(read_module_trust(empty.host()).secure_boot, SecureBoot::Unknown);
}

TEST(ModuleTrust, RefusesUnsignedModulesWhereTheKernelDoes) {
  EXPECT_FALSE(refuses_unsigned({.lockdown = Lockdown::None}));
  EXPECT_FALSE(refuses_unsigned({.secure_boot = SecureBoot::On, .lockdown = Lockdown::None}));
  EXPECT_TRUE(refuses_unsigned({.secure_boot = SecureBoot::On}));
  EXPECT_TRUE(refuses_unsigned({.lockdown = Lockdown::Confidentiality}));
  EXPECT_TRUE(refuses_unsigned({.lockdown = Lockdown::None, .signatures_enforced = true}));
  EXPECT_FALSE(refuses_unsigned({}));
}

TEST(ModuleTrust, SkipsLinesOfProcKeysThatAreNoKeys) {
  EXPECT_THAT(parse_trusted_keys("a b c d e f g asymmetri\na\n\n1 2 3 4 5 6 7 asymmetri  \n"),
              IsEmpty());
  EXPECT_THAT(parse_trusted_keys("1 2 3 4 5 6 7 asymmetri key"), ElementsAre("key"));
}

TEST(MokList, SurvivesEveryCutAndEveryWrongByte) {
  const auto list = signature_list(example_certificate());
  for (std::size_t at = 0; at < list.size(); ++at) {
    EXPECT_THAT(parse_mok_list(std::string_view(list).substr(0, at)), IsEmpty());
    auto damaged = list;
    damaged[at] = '\xff';
    EXPECT_LE(parse_mok_list(damaged).size(), 1U);
  }
  EXPECT_EQ(parse_mok_list(list + list).size(), 2U);
}

TEST(Certificate, NeedsAllItsParts) {
  const auto certificate = example_certificate();
  EXPECT_TRUE(parse_certificate(certificate).has_value());
  EXPECT_FALSE(parse_certificate(certificate.substr(0, certificate.size() - 1)).has_value());
  EXPECT_FALSE(parse_certificate("").has_value());
}

std::string der(char tag, std::string_view content) {
  return std::string(1, tag) + static_cast<char>(content.size()) + std::string(content);
}
std::string name_part(std::string_view id, std::string_view text) {
  return der('\x31', der('\x30', der('\x06', id) + der('\x0c', text)));
}

TEST(DescribeName, LeavesTheOrganizationOutWhereItIsRepeated) {
  const auto name = [](std::string_view organization, std::string_view common_name) {
    return describe_name(name_part("\x55\x04\x0a", organization) +
                         name_part("\x55\x04\x03", common_name));
  };
  EXPECT_EQ(name("Example", "key"), "Example: key");
  EXPECT_EQ(name("Debian", "Debian Secure Boot CA"), "Debian Secure Boot CA");
  EXPECT_EQ(name("Canonical Ltd.", "Canonical Kernel"), "Canonical Kernel");
  EXPECT_EQ(describe_name(name_part("\x55\x04\x0a", "Example")), "Example");
  EXPECT_EQ(describe_name(name_part("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", "a@b")), "a@b");
  EXPECT_EQ(describe_name("no name"), "");
}

const ModuleFile unsigned_module{.name = "nvidia"};
ModuleFile signed_by(std::string_view signer, std::string_view serial) {
  return {.name = "nvidia",
          .is_signed = true,
          .signer = std::string(signer),
          .signature_serial = std::string(serial)};
}
ModuleTrust enforcing(std::vector<std::string> keys,
                      std::vector<EnrolledCertificate> enrolled = {}) {
  return {.secure_boot = SecureBoot::On,
          .lockdown = Lockdown::Integrity,
          .trusted_keys = std::move(keys),
          .enrolled = std::move(enrolled)};
}

TEST(ReasonRefused, IsNoneWhereTheKernelAcceptsAllModules) {
  EXPECT_EQ(reason_refused(unsigned_module, {.lockdown = Lockdown::None}), std::nullopt);
  EXPECT_EQ(reason_refused(signed_by("x", "1"), {.lockdown = Lockdown::None}), std::nullopt);
}

TEST(ReasonRefused, NamesTheRuleThatRefusesAnUnsignedModule) {
  EXPECT_EQ(reason_refused(unsigned_module, enforcing({})),
            "secure boot is on, so the kernel accepts signed modules only, and the module nvidia "
            "is not signed");
  EXPECT_THAT(*reason_refused(unsigned_module, {.lockdown = Lockdown::Integrity}),
              HasSubstr("locked down (integrity)"));
  EXPECT_THAT(*reason_refused(unsigned_module, {.secure_boot = SecureBoot::Off,
                                                .lockdown = Lockdown::None,
                                                .signatures_enforced = true}),
              HasSubstr("module.sig_enforce"));
}

TEST(ReasonRefused, KnowsTheKeyByItsNameItsIdOrItsCertificate) {
  const std::string key = "Example Corp: Driver signing: 554ab53a";
  EXPECT_EQ(reason_refused(signed_by(kExampleSigner, "1"), enforcing({key})), std::nullopt);
  EXPECT_EQ(reason_refused(signed_by("554ab53a", ""), enforcing({key})), std::nullopt);
  // The certificate was issued by another one, which the kernel does not have.
  EXPECT_EQ(reason_refused(signed_by("Example CA", "77"),
                           enforcing({key}, {{"Example CA", "Example signer", "77"}})),
            std::nullopt);
}

TEST(ReasonRefused, NamesTheSignerWithoutAKey) {
  EXPECT_EQ(reason_refused(signed_by("Example CA", "77"), enforcing({"Other: 12"})),
            "secure boot is on, so the kernel accepts signed modules only, and it has no key of "
            "\"Example CA\", which signed the module nvidia");
}

TEST(ReasonRefused, KnowsAKeyThatWasMadeAgainUnderTheSameName) {
  const EnrolledCertificate old{"Machine key", "Machine key", "01"};
  EXPECT_THAT(
      *reason_refused(signed_by("Machine key", "02"), enforcing({"Machine key: 554ab53a"}, {old})),
      HasSubstr("another key of \"Machine key\""));
  EXPECT_EQ(
      reason_refused(signed_by("Machine key", "01"), enforcing({"Machine key: 554ab53a"}, {old})),
      std::nullopt);
  // The second key of that name is in none of the lists, so it may be the one.
  EXPECT_EQ(reason_refused(signed_by("Machine key", "02"),
                           enforcing({"Machine key: 554ab53a", "Machine key: 77"}, {old})),
            std::nullopt);
}

TEST(ReasonRefused, DoesNotGuessWhereKeysCannotBeRead) {
  EXPECT_EQ(reason_refused(signed_by("Example CA", "77"), enforcing({})), std::nullopt);
  EXPECT_EQ(reason_refused(signed_by("", ""), enforcing({"Other: 12"})), std::nullopt);
}

TEST(RemedyRefused, NeverPutsAKeyOnTheMachine) {
  EXPECT_THAT(remedy_refused(unsigned_module, enforcing({})), HasSubstr("off this machine"));
  EXPECT_THAT(remedy_refused(signed_by("a", "1"), enforcing({})), HasSubstr("mokutil --import"));
  EXPECT_THAT(remedy_refused(unsigned_module, {.secure_boot = SecureBoot::Off}),
              HasSubstr("module.sig_enforce=1"));
}

}  // namespace
}  // namespace gantry::kernel_module
