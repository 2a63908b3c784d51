// SPDX-License-Identifier: Apache-2.0
#include "base/sys/trusted.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::sys {
namespace {

using ::testing::HasSubstr;

constexpr auto kFile = "/run/gantry/inventory.json";
constexpr uid_t kSomebody = 4711;

class Trusted : public ::testing::Test {
 protected:
  Trusted() {
    tree_.file(kFile, "{}");
    for (const auto* path : {"run", "run/gantry"}) change_mode(path, 0755);
    change_mode(kFile, 0644);
  }
  void change_mode(const char* path, mode_t mode) {
    ASSERT_EQ(::chmod(tree_.path(path).c_str(), mode), 0);
  }
  void give(const char* path, uid_t uid, gid_t gid = 0) {
    ASSERT_EQ(::chown(tree_.path(path).c_str(), uid, gid), 0);
  }
  Result<std::string> read_now() const { return read_trusted(tree_.host(), kFile, 4096); }
  void expect_denied(std::string_view text) const {
    const auto refused = read_now();
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().code(), Errc::Denied);
    EXPECT_THAT(refused.error().text(), HasSubstr(text));
  }
  test::Tree tree_;
};

TEST_F(Trusted, WhatOnlyItsOwnerCanChangeIsRead) {
  EXPECT_EQ(read_now().value_or(""), "{}");
}

TEST_F(Trusted, WhatIsNotThereIsNotFound) {
  tree_.remove(kFile);
  EXPECT_EQ(read_now().error().code(), Errc::NotFound);
}

TEST_F(Trusted, AFileThatItsGroupOrOthersMayWriteIsRefused) {
  for (const mode_t mode : {0664U, 0646U, 0666U}) {
    change_mode(kFile, mode);
    expect_denied("chmod go-w " + tree_.path(kFile));
  }
}

TEST_F(Trusted, ADirectoryThatOthersMayWriteIsRefused) {
  change_mode("run/gantry", 0757);
  expect_denied("chmod go-w " + tree_.path("run/gantry"));
  change_mode("run/gantry", 0755);
  change_mode("run", 0777);
  expect_denied("chmod go-w " + tree_.path("run"));
  change_mode("run", 01777);
  EXPECT_TRUE(read_now().ok()) << "sticky, as /tmp";
}

TEST_F(Trusted, AnotherUsersFileOrDirectoryIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  give(kFile, kSomebody);
  expect_denied("chown root " + tree_.path(kFile));
  give(kFile, 0);
  give("run/gantry", kSomebody);
  expect_denied("chown root " + tree_.path("run/gantry"));
}

TEST_F(Trusted, AGroupThatMayWriteADirectoryMustBeTheRoots) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  change_mode("run/gantry", 0775);
  EXPECT_TRUE(read_now().ok()) << "of root's group";
  give("run/gantry", 0, 4711);
  expect_denied("chmod go-w");
}

TEST_F(Trusted, ATreeThatAUserMadeIsThatUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  give("/", kSomebody);
  give("run/gantry", kSomebody);
  give(kFile, kSomebody);
  EXPECT_TRUE(read_now().ok());
}

}  // namespace
}  // namespace gantry::sys
