// SPDX-License-Identifier: Apache-2.0
#include "sys/kernel.hpp"

#include "support/tree.hpp"

#include <gtest/gtest.h>

namespace gantry::sys {
namespace {

TEST(Kernel, MakesDirectoriesWithTheirParentsInsideTheRoot) {
  test::Tree tree;
  const Host host = tree.host();
  const auto kernel = real_kernel();
  ASSERT_TRUE(kernel->make_directory(host, "/dev/nvidia-caps/deep").ok());
  EXPECT_TRUE(host.exists("/dev/nvidia-caps/deep"));
  EXPECT_TRUE(kernel->make_directory(host, "/dev/nvidia-caps/deep").ok());
}

TEST(Kernel, ReplacesASymlinkAndLeavesNoTemporaryBehind) {
  test::Tree tree;
  tree.link("dev/char/195:0", "../wrong");
  const Host host = tree.host();
  ASSERT_TRUE(real_kernel()->make_symlink(host, "/dev/char/195:0", "../nvidia0").ok());
  EXPECT_EQ(*host.link("/dev/char/195:0"), "../nvidia0");
  EXPECT_EQ(host.list("/dev/char")->size(), 1U);
}

TEST(Kernel, RefusesToPutASymlinkOverADirectory) {
  test::Tree tree;
  tree.directory("dev/char/195:0");
  const Host host = tree.host();
  EXPECT_FALSE(real_kernel()->make_symlink(host, "/dev/char/195:0", "../nvidia0").ok());
  EXPECT_EQ(host.list("/dev/char")->size(), 1U);
}

TEST(Kernel, WritesAValueOverALongerOne) {
  test::Tree tree;
  tree.file("sys/power/control", "auto\n");
  const Host host = tree.host();
  ASSERT_TRUE(real_kernel()->write_value(host, "/sys/power/control", "on").ok());
  EXPECT_EQ(host.read_value("/sys/power/control"), "on");
}

TEST(Kernel, CreatesNoFileWhenTheValueHasNone) {
  test::Tree tree;
  const Host host = tree.host();
  EXPECT_EQ(real_kernel()->write_value(host, "/sys/nothing", "on").error().code(), Errc::NotFound);
  EXPECT_FALSE(host.exists("/sys/nothing"));
}

}  // namespace
}  // namespace gantry::sys
