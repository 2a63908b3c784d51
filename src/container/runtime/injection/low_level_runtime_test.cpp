// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/low_level_runtime.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {
namespace {

using ::testing::HasSubstr;

class LowLevel : public ::testing::Test {
 protected:
  void program(const std::string& name) {
    tree_.file(name, "#!/bin/sh\n");
    ASSERT_EQ(::chmod(tree_.path(name).c_str(), 0755), 0);
  }
  test::Tree tree_;
};

TEST_F(LowLevel, TheFirstCandidateThatIsThereIsTaken) {
  program("bin/my-crun");
  const auto found = find_low_level({"my-runc", "my-crun"}, tree_.path("bin"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, tree_.path("bin/my-crun"));
}

TEST_F(LowLevel, APathIsTakenAsItIs) {
  program("opt/kata");
  EXPECT_EQ(*find_low_level({tree_.path("opt/none"), tree_.path("opt/kata")}, ""),
            tree_.path("opt/kata"));
}

TEST_F(LowLevel, FilesThatCannotRunAndDirectoriesAreSteppedOver) {
  tree_.file("a/my-runc").directory("b/my-runc");
  program("c/my-runc");
  const auto path = tree_.path("a") + ":" + tree_.path("b") + ":" + tree_.path("c");
  EXPECT_EQ(*find_low_level({"my-runc"}, path), tree_.path("c/my-runc"));
}

TEST_F(LowLevel, ThisProgramIsNeverItsOwnRuntime) {
  ASSERT_EQ(::symlink("/proc/self/exe", tree_.path("my-runc").c_str()), 0);
  const auto found = find_low_level({"my-runc"}, tree_.root());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Errc::NotFound);
}

TEST_F(LowLevel, NothingFoundNamesThePlacesAndTheRemedy) {
  const auto found = find_low_level({"my-runc", "my-crun"}, "/somewhere");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().text(), HasSubstr("my-runc, my-crun"));
  EXPECT_THAT(found.error().text(), HasSubstr("/somewhere:/usr/local/sbin"));
  EXPECT_THAT(found.error().text(), HasSubstr("config.toml"));
}

TEST_F(LowLevel, TheUsualPlacesComeAfterThePathAndTheLastIsThatOfCriosPackages) {
  program("usr/libexec/crio/my-crun");
  std::vector<std::string> below;
  for (const auto place : kUsualPlaces) below.push_back(tree_.path(place));
  const std::vector<std::string_view> places(below.begin(), below.end());
  const auto found = find_low_level({"my-crun"}, tree_.path("path"), places);
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(*found, tree_.path("/usr/libexec/crio/my-crun"));
  program("usr/sbin/my-crun");
  EXPECT_EQ(*find_low_level({"my-crun"}, "", places), tree_.path("/usr/sbin/my-crun"));
  program("path/my-crun");
  EXPECT_EQ(*find_low_level({"my-crun"}, tree_.path("path"), places), tree_.path("path/my-crun"));
}

TEST_F(LowLevel, TheWorkingDirectoryIsNotSearched) {
  program("my-runc");
  ASSERT_EQ(::chdir(tree_.root().c_str()), 0);
  EXPECT_FALSE(find_low_level({"my-runc"}, ".:").ok());
  ASSERT_EQ(::chdir("/"), 0);
}

TEST(PersonaPath, IsAlsoThisVeryProgramUnderAnotherName) {
  std::array<char, 4096> own{};
  ASSERT_GT(::readlink("/proc/self/exe", own.data(), own.size() - 1), 0);
  const std::string path(own.data());
  const auto name = path.substr(path.rfind('/') + 1);
  EXPECT_EQ(own_program_path(name), path);
  EXPECT_EQ(sibling_program_path(name), "");  // becoming it would never end
  EXPECT_EQ(own_program_path("no-such-program"), "");
}

}  // namespace
}  // namespace gantry::runtime
