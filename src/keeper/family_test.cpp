// SPDX-License-Identifier: Apache-2.0
#include "keeper/family.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gantry::keeper {
namespace {

std::string docker(char digit) {
  return "docker-" + std::string(64, digit) + ".scope";
}

TEST(Family, ACgroupWithAnotherContainersNameHidesNobody) {
  Family family;
  family.know_container_of("0::/system.slice/" + docker('a') + "\n");
  EXPECT_TRUE(
      family.is_in_known_container("0::/system.slice/" + docker('a') + "/" + docker('b') + "\n"));
  EXPECT_FALSE(family.is_in_known_container("0::/system.slice/" + docker('b') + "\n"));
}

TEST(Family, NorDoesItMakeThatContainerTheSharesOwn) {
  Family family;
  family.know_container_of("0::/system.slice/" + docker('a') + "\n");
  family.know_container_of("0::/system.slice/" + docker('a') + "/" + docker('b') + "\n");
  EXPECT_FALSE(family.is_in_known_container("0::/system.slice/" + docker('b') + "\n"));
}

TEST(Family, TwoContainersOfOneShareAreBothIts) {
  Family family;
  family.know_container_of("0::/system.slice/" + docker('a') + "\n");
  family.know_container_of("0::/system.slice/" + docker('b') + "\n");
  EXPECT_TRUE(family.is_in_known_container("0::/system.slice/" + docker('a') + "\n"));
  EXPECT_TRUE(family.is_in_known_container("0::/system.slice/" + docker('b') + "/sub\n"));
}

}  // namespace
}  // namespace gantry::keeper
