// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/distribution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::HasSubstr;
using Direction = ClockFault::Direction;

OsRelease sles(std::string version) {
  return {.id = "sles", .version_id = std::move(version), .id_like = {"suse"}};
}

// The line of a walk-through that many people copied.
TEST(WrongSuseUrl, AWebPageIsNoRepository) {
  const auto fault = recognise_wrong_suse_url(
      "sudo zypper ar https://developer.nvidia.com/cuda-gpus nvidia", sles("15.1"));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->code(), Errc::Invalid);
  EXPECT_EQ(fault->cause(),
            "https://developer.nvidia.com/cuda-gpus is a web page of NVIDIA's, not a repository of "
            "packages");
  EXPECT_EQ(fault->remedy(),
            "remove it with `zypper removerepo nvidia`, then `zypper addrepo --refresh "
            "https://download.nvidia.com/suse/sle15sp1 nvidia`");
}

TEST(WrongSuseUrl, IsFoundInWhatZypperSays) {
  const auto fault = recognise_wrong_suse_url(
      "Retrieving repository 'nvidia' metadata [error]\n"
      "Repository 'nvidia' is invalid.\n"
      "[nvidia|https://developer.nvidia.com/cuda-gpus] Valid metadata not found at specified URL\n",
      {.id = "opensuse-leap", .version_id = "15.6"});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->text(), HasSubstr("https://download.nvidia.com/opensuse/leap/15.6 nvidia"));
}

TEST(WrongSuseUrl, KnowsTheOtherMistakes) {
  const auto text = [](std::string_view url, std::string version) {
    const auto fault = recognise_wrong_suse_url(url, sles(std::move(version)));
    return fault ? fault->cause() : "";
  };
  EXPECT_THAT(text("https://www.nvidia.com/Download/index.aspx", "15.6"), HasSubstr("web page"));
  EXPECT_THAT(text("https://download.nvidia.com/suse/sle15sp1/x86_64/", "15.1"),
              HasSubstr("inside a repository"));
  EXPECT_THAT(text("https://download.nvidia.com/suse/sle15sp1", "15.6"),
              HasSubstr("another version"));
  EXPECT_EQ(text("https://download.nvidia.com/suse/sle15sp1/", "15.1"), "");
  EXPECT_EQ(text("https://download.nvidia.com/suse/sle15sp1", ""), "");
  EXPECT_EQ(text("https://developer.download.nvidia.com/compute/cuda/repos/sles15/x86_64/", "15.1"),
            "");
  EXPECT_EQ(text("https://mirror.example.org/developer.nvidia.com/x", "15.1"), "");
  EXPECT_EQ(text("https://developer.nvidia.com.example.org/x", "15.1"), "");
  EXPECT_EQ(text("http", "15.1"), "");
  EXPECT_EQ(text("https://", "15.1"), "");
  EXPECT_EQ(text("", "15.1"), "");
  EXPECT_THAT(text("https://nvidia.com", "15.1"), HasSubstr("web page"));
}

TEST(WrongSuseUrl, IsFoundBehindTheRightOne) {
  const auto fault = recognise_wrong_suse_url(
      "`zypper addrepo --refresh https://download.nvidia.com/suse/sle15sp1 nvidia` ended with "
      "status 4: [cuda|https://developer.nvidia.com/cuda-gpus] Valid metadata not found",
      sles("15.1"));
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->cause(), HasSubstr("https://developer.nvidia.com/cuda-gpus is a web page"));
}

// Lines of apt 2.6, zypper 1.14 and dnf 4.14.
TEST(SignatureFault, SaysWhatIsWrong) {
  const auto text = [](std::string_view output) {
    const auto fault = recognise_signature_fault(output);
    return fault ? fault->cause() : "";
  };
  EXPECT_THAT(text("Reading...\nE: The repository 'http://deb.debian.org/debian bookworm Release' "
                   "is not signed.\n"),
              HasSubstr("the repository is not signed (E: The repository 'http://deb"));
  EXPECT_THAT(
      text("W: GPG error: http://x bookworm InRelease: The following signatures couldn't be "
           "verified because the public key is not available: NO_PUBKEY 1AA5665CC61D7CC7\n"
           "E: The repository 'http://x bookworm InRelease' is not signed.\n"),
      HasSubstr("a key that is not trusted"));
  EXPECT_THAT(text("Warning: File 'repomd.xml' from repository 'nvidia' is unsigned.\n"
                   " - Signature verification failed for repomd.xml\n"),
              HasSubstr("is not signed"));
  EXPECT_THAT(text("Warning: File 'repomd.xml' from repository 'nvidia' is signed with an unknown "
                   "key '1AA5665CC61D7CC7'.\n"),
              HasSubstr("a key that is not trusted"));
  EXPECT_THAT(text("Package dkms-1.0-1.x86_64.rpm is not signed\nError: GPG check FAILED\n"),
              HasSubstr("a package has no signature"));
  EXPECT_EQ(text("E: Unable to locate package nvidia-driver"), "");
  EXPECT_EQ(text(""), "");
  EXPECT_NE(recognise_signature_fault("GPG check FAILED")->remedy(), "");
}

constexpr std::int64_t kNow = 1'614'600'000;  // 2021-03-01 12:00 UTC

TEST(AptClockFault, HasTheDrift) {
  const auto fault = recognise_clock_fault(
      "Reading package lists...\n"
      "E: Release file for http://security.ubuntu.com/ubuntu/dists/focal-security/InRelease is not "
      "valid yet (invalid for another 3h 4min 5s). Updates for this repository will not be "
      "applied.\n"
      "E: Release file for http://archive.ubuntu.com/ubuntu/dists/focal-updates/InRelease is not "
      "valid yet (invalid for another 2d 3h 4min 5s). Updates for this repository will not be "
      "applied.\n",
      kNow);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->direction, Direction::Behind);
  EXPECT_EQ(fault->seconds, 2 * 86400 + 3 * 3600 + 4 * 60 + 5);
  EXPECT_EQ(fault->repository, "http://archive.ubuntu.com/ubuntu/dists/focal-updates/InRelease");
  EXPECT_EQ(fault->sentence,
            "the machine's clock says 2021-03-01 12:00 UTC, but the file of "
            "http://archive.ubuntu.com/ubuntu/dists/focal-updates/InRelease is 2 d 3 h newer: the "
            "clock is at least that much behind, and it is 2021-03-03 15:04 UTC or later");
  EXPECT_THAT(fault->remedy, HasSubstr("timedatectl set-ntp true"));
  EXPECT_THAT(fault->remedy, HasSubstr("Acquire::Check-Date=false"));
}

TEST(AptClockFault, AnExpiredFileMayBeAClockThatIsAhead) {
  const auto fault = recognise_clock_fault(
      "E: Release file for http://deb.debian.org/debian/dists/bookworm-updates/InRelease is "
      "expired (invalid since 4911d 0h 1min 2s). Updates for this repository will not be applied.",
      2'208'988'800);  // 2040
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->direction, Direction::MaybeAhead);
  EXPECT_THAT(fault->sentence, HasSubstr("2040-01-01 00:00 UTC"));
  EXPECT_THAT(fault->sentence, HasSubstr("the clock is ahead, or the mirror is out of date"));
}

TEST(AptClockFault, IsAlsoSeenInCertificates) {
  const auto early = recognise_clock_fault(
      "Curl error (60): SSL peer certificate or SSH remote key was not OK for https://x [SSL "
      "certificate problem: certificate is not yet valid]",
      0);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->direction, Direction::Behind);
  EXPECT_EQ(early->seconds, 0);
  EXPECT_THAT(early->sentence, HasSubstr("1970-01-01 00:00 UTC"));
  const auto late = recognise_clock_fault("SSL certificate problem: certificate has expired", kNow);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->direction, Direction::MaybeAhead);
}

TEST(AptClockFault, OtherFaultsAreNone) {
  for (const auto* text :
       {"", "E: Unable to locate package nvidia-driver", "is not valid yet (invalid for another",
        "x is not valid yet (invalid for another ). y",
        "x is not valid yet (invalid for another 2 weeks). y",
        "x is not valid yet (invalid for another 99999999999999999999d). y"})
    EXPECT_FALSE(recognise_clock_fault(text, kNow)) << text;
  const auto far = recognise_clock_fault("x is not valid yet (invalid for another 1000000000d). y",
                                         INT64_MAX / 4);
  ASSERT_TRUE(far);
  EXPECT_THAT(far->sentence, HasSubstr("9999-12-31"));
}

}  // namespace
}  // namespace gantry::driver_package
