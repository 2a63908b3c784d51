// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/os_release.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(OsReleaseFile, IsReadAsAShellWould) {
  const auto found = parse_os_release(
      "# a comment\n"
      "\n"
      "NAME='Rocky Linux'\n"
      "ID=\"rocky\"\n"
      "ID_LIKE=\"rhel centos  fedora\"\n"
      "VERSION_ID=\"9.4\"\n"
      "PRETTY_NAME=\"Rocky \\\"Linux\\\" 9.4 (Blue \\$Onyx)\"\n"
      "VERSION_CODENAME=\n"
      "BUG_REPORT_URL=https://bugs.rockylinux.org/\n");
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->id, "rocky");
  EXPECT_EQ(found->version_id, "9.4");
  EXPECT_THAT(found->id_like, ElementsAre("rhel", "centos", "fedora"));
  EXPECT_EQ(found->pretty_name, "Rocky \"Linux\" 9.4 (Blue $Onyx)");
  EXPECT_EQ(found->codename, "");
  EXPECT_TRUE(is_like(*found, "rocky"));
  EXPECT_TRUE(is_like(*found, "fedora"));
  EXPECT_FALSE(is_like(*found, "debian"));
}

TEST(OsReleaseFile, AnEmptyOneIsLinux) {
  EXPECT_EQ(parse_os_release("")->id, "linux");
  EXPECT_EQ(parse_os_release("VERSION_ID=1\nID=\n")->id, "linux");
}

// ID and VERSION_ID become parts of commands and URLs.
TEST(OsReleaseFile, WhatIsNotAPlainWordDoesNotCount) {
  const auto found = parse_os_release(
      "ID=\"x; rm -rf /\"\nVERSION_ID=\"$(id)\"\nID_LIKE=\"debian "
      "a/b\"\nPRETTY_NAME=\"a\x1b[2J\"\n");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->id, "linux");
  EXPECT_EQ(found->version_id, "");
  EXPECT_THAT(found->id_like, ElementsAre("debian"));
  EXPECT_THAT(found->pretty_name, HasSubstr("\\x1b"));
}

TEST(OsReleaseFile, OtherLinesAreRefused) {
  for (const auto* bad : {"x", "=x", "id=x", "ID=\"x", "ID='x", "ID=x y", "ID=x\\", "1ID=x",
                          "export ID=x", "<html>"}) {
    const auto found = parse_os_release(bad);
    ASSERT_FALSE(found.ok()) << bad;
    EXPECT_EQ(found.error().code(), Errc::Invalid);
    EXPECT_THAT(found.error().text(), HasSubstr("line 1"));
  }
  EXPECT_EQ(parse_os_release(std::string(kOsReleaseLimit + 1, '#')).error().code(), Errc::TooLarge);
}

TEST(OsReleaseFile, IsInEtcOrInUsr) {
  test::Tree tree;
  EXPECT_EQ(read_os_release(tree.host()).error().code(), Errc::NotFound);
  tree.file("usr/lib/os-release", "ID=flatcar\n");
  EXPECT_EQ(read_os_release(tree.host())->id, "flatcar");
  tree.file("etc/os-release", "ID=debian\n");
  EXPECT_EQ(read_os_release(tree.host())->id, "debian");
}

}  // namespace
}  // namespace gantry::driver_package
