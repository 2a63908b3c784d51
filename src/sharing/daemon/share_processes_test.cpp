// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/share_processes.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gantry::daemon {
namespace {

std::string docker(char digit) {
  return "docker-" + std::string(64, digit) + ".scope";
}

TEST(ShareProcesses, ACgroupWithAnotherContainersNameHidesNoProcess) {
  ShareProcesses family;
  family.add_container_of("0::/system.slice/" + docker('a') + "\n");
  EXPECT_TRUE(family.is_in_container("0::/system.slice/" + docker('a') + "/" + docker('b') + "\n"));
  EXPECT_FALSE(family.is_in_container("0::/system.slice/" + docker('b') + "\n"));
}

TEST(ShareProcesses, NorDoesItMakeThatContainerTheSharesOwn) {
  ShareProcesses family;
  family.add_container_of("0::/system.slice/" + docker('a') + "\n");
  family.add_container_of("0::/system.slice/" + docker('a') + "/" + docker('b') + "\n");
  EXPECT_FALSE(family.is_in_container("0::/system.slice/" + docker('b') + "\n"));
}

TEST(ShareProcesses, TwoContainersOfOneShareAreBothIts) {
  ShareProcesses family;
  family.add_container_of("0::/system.slice/" + docker('a') + "\n");
  family.add_container_of("0::/system.slice/" + docker('b') + "\n");
  EXPECT_TRUE(family.is_in_container("0::/system.slice/" + docker('a') + "\n"));
  EXPECT_TRUE(family.is_in_container("0::/system.slice/" + docker('b') + "/sub\n"));
}

// A user of the host may create cgroups below its own, and attach to a share from there.
TEST(ShareProcesses, AnInventedCgroupNameAttractsNoProcess) {
  ShareProcesses family;
  family.add_container_of("0::/user.slice/user-1000.slice/user@1000.service/" + docker('a') + "\n");
  EXPECT_FALSE(family.is_in_container("0::/system.slice/" + docker('a') + "\n"));
  EXPECT_FALSE(family.is_in_container("0::/user.slice/user-1000.slice/user@1000.service/" +
                                      docker('a') + "x\n"));
  EXPECT_TRUE(family.is_in_container("0::/user.slice/user-1000.slice/user@1000.service/" +
                                     docker('a') + "/init\n"));
}

TEST(ShareProcesses, WithManyHierarchiesAnyOfThemTells) {
  ShareProcesses family;
  const auto id = std::string(64, 'c');
  family.add_container_of("12:devices:/docker/" + id + "\n4:memory:/docker/" + id + "\n0::/\n");
  EXPECT_TRUE(family.is_in_container("12:devices:/docker/" + id + "/a\n4:memory:/\n0::/\n"));
  EXPECT_FALSE(family.is_in_container("12:devices:/\n4:memory:/other/" + id + "\n0::/\n"));
}

}  // namespace
}  // namespace gantry::daemon
