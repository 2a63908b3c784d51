// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/driver_branches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gantry::preflight {
namespace {

using enum Architecture;
using ::testing::HasSubstr;

TEST(Architecture, IsKnownFromTheDeviceId) {
  struct Case {
    std::uint16_t device;
    Architecture architecture;
  };
  // A T4, K2000, K80, K620, M60, P100, V100, A100, 3080 Ti laptop, A10, H200, GH200, L40S, B200,
  // 5090, GB10, B300; a GF110 that lies between two Kepler chips.
  for (const auto& [device, architecture] :
       {Case{0x1eb8, Turing}, Case{0x0ffe, Kepler}, Case{0x102d, Kepler}, Case{0x13bb, Maxwell},
        Case{0x13f2, Maxwell}, Case{0x15f8, Pascal}, Case{0x1db4, Volta}, Case{0x20b2, Ampere},
        Case{0x2420, Ampere}, Case{0x2236, Ampere}, Case{0x2335, Hopper}, Case{0x2342, GraceHopper},
        Case{0x26b9, Ada}, Case{0x2901, Blackwell}, Case{0x2b85, Blackwell},
        Case{0x2e12, Blackwell}, Case{0x3182, Blackwell}, Case{0x1080, Fermi}}) {
    EXPECT_EQ(architecture_of_device(device), architecture) << std::hex << device;
  }
}

TEST(Architecture, IsUnknownForNewAndForVeryOldChips) {
  EXPECT_EQ(architecture_of_device(0x10c3), Unknown);  // GT218
  EXPECT_EQ(architecture_of_device(0x3000), Unknown);  // GR100
  EXPECT_EQ(architecture_of_device(0), Unknown);
  EXPECT_EQ(architecture_of_device(0xffff), Unknown);
}

TEST(Architecture, HasTheNamesThatNvmlGives) {
  EXPECT_EQ(architecture_by_name("Ada Lovelace"), Ada);
  EXPECT_EQ(architecture_by_name("Kepler"), Kepler);
  EXPECT_EQ(architecture_by_name("Unknown Architecture"), Unknown);
  for (const auto architecture : {Fermi, Kepler, Turing, GraceHopper, Blackwell})
    EXPECT_EQ(architecture_by_name(to_string(architecture)), architecture);
}

TEST(DriverVersion, IsTwoOrThreeNumbersOrABranch) {
  EXPECT_EQ(DriverVersion::parse("580.159.04"),
            (DriverVersion{.branch = 580, .minor = 159, .patch = 4, .is_branch_only = false}));
  EXPECT_EQ(DriverVersion::parse("430.26"),
            (DriverVersion{.branch = 430, .minor = 26, .patch = 0, .is_branch_only = false}));
  EXPECT_TRUE(DriverVersion::parse("535")->is_branch_only);
  EXPECT_LT(*DriverVersion::parse("460.56"), *DriverVersion::parse("580.159.04"));
  EXPECT_LT(*DriverVersion::parse("580.65.06"), *DriverVersion::parse("580.126.09"));
}

TEST(DriverVersion, RejectsEverythingElse) {
  for (const auto* text : {"", "latest", "580.", ".580", "580..4", "580.159.04.1", "58", "99999",
                           "580.159.04-grid", "-580.1", "580.0x1", "580 .1", "580.99999999999"})
    EXPECT_FALSE(DriverVersion::parse(text)) << text;
}

TEST(Branches, TheLastOneIsNamedForACardThatWasDropped) {
  EXPECT_THAT(reason_unsupported(Kepler, 580).value_or(""),
              HasSubstr("no longer drives Kepler GPUs; the last one that does is 470"));
  EXPECT_FALSE(reason_unsupported(Kepler, 470));
  EXPECT_FALSE(reason_unsupported(Volta, 580));
  EXPECT_TRUE(reason_unsupported(Volta, 590));
  EXPECT_TRUE(reason_unsupported(Fermi, 396));
}

TEST(Branches, TheFirstOneIsNamedForACardThatIsNewer) {
  EXPECT_THAT(reason_unsupported(Blackwell, 535).value_or(""),
              HasSubstr("older than Blackwell GPUs; they need branch 570 or later"));
  EXPECT_FALSE(reason_unsupported(Blackwell, 570));
}

TEST(Branches, NothingIsKnownAgainstACardThatIsNotInTheTable) {
  EXPECT_FALSE(reason_unsupported(Unknown, 300));
  EXPECT_FALSE(reason_unsupported(Unknown, 999, Flavour::Open));
}

TEST(Branches, MixedCardsShareThoseBetweenTheirEnds) {
  const std::vector<Architecture> old{Kepler, Ampere};
  ASSERT_TRUE(common_branches(old));
  EXPECT_EQ(common_branches(old)->first, 450U);
  EXPECT_EQ(common_branches(old)->last, 470U);
  const std::vector<Architecture> apart{Kepler, Blackwell};
  EXPECT_FALSE(common_branches(apart));
}

TEST(Flavour, FollowsTheInstallerWithoutAWish) {
  const std::vector<Architecture> turing{Turing};
  EXPECT_EQ(*choose_flavour(turing, 550, {}), Flavour::Proprietary);
  EXPECT_EQ(*choose_flavour(turing, 580, {}), Flavour::Open);
  const std::vector<Architecture> volta{Volta};
  EXPECT_EQ(*choose_flavour(volta, 580, {}), Flavour::Proprietary);
  const std::vector<Architecture> blackwell{Blackwell};
  EXPECT_EQ(*choose_flavour(blackwell, 570, {}), Flavour::Open);
  const std::vector<Architecture> grace{GraceHopper};
  EXPECT_EQ(*choose_flavour(grace, 535, {}), Flavour::Open);
  EXPECT_EQ(*choose_flavour({}, 460, {}), Flavour::Proprietary);
}

TEST(Flavour, OneOldCardMakesTheWholeMachineProprietary) {
  const std::vector<Architecture> mixed{Pascal, Hopper};
  EXPECT_EQ(*choose_flavour(mixed, 580, {}), Flavour::Proprietary);
}

TEST(Flavour, AWishThatCannotBeMetIsRefusedWithTheOther) {
  const std::vector<Architecture> pascal{Pascal};
  const auto open = choose_flavour(pascal, 580, Flavour::Open);
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().code(), Errc::Unsupported);
  EXPECT_THAT(open.error().cause(), HasSubstr("Pascal GPUs work only with the proprietary"));
  EXPECT_THAT(open.error().remedy(), HasSubstr("--flavour proprietary"));

  const std::vector<Architecture> blackwell{Blackwell};
  const auto closed = choose_flavour(blackwell, 580, Flavour::Proprietary);
  ASSERT_FALSE(closed.ok());
  EXPECT_THAT(closed.error().remedy(), HasSubstr("--flavour open"));

  const std::vector<Architecture> turing{Turing};
  EXPECT_THAT(choose_flavour(turing, 460, Flavour::Open).error().text(),
              HasSubstr("branch 460 has no open kernel modules; 515 is the first that has"));
}

TEST(Flavour, NoModuleDrivesVoltaAndBlackwell) {
  const std::vector<Architecture> mixed{Volta, Blackwell};
  const auto chosen = choose_flavour(mixed, 580, {});
  ASSERT_FALSE(chosen.ok());
  EXPECT_THAT(chosen.error().text(), HasSubstr("no kernel module drives all GPUs"));
  EXPECT_THAT(chosen.error().text(), HasSubstr("Volta GPUs work only with the proprietary"));
  EXPECT_THAT(chosen.error().text(), HasSubstr("Blackwell GPUs work only with the open"));
  EXPECT_THAT(chosen.error().remedy(), HasSubstr("gantry vfio bind"));
}

}  // namespace
}  // namespace gantry::preflight
