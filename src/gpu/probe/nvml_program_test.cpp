// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_program.hpp"

#include "gpu/probe/nvml_view.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

namespace gantry::probe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FindNvmlProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    tree_.file("lib/gantry/gantry-nvml", "#!/bin/sh\n");
    allow("lib/gantry", 0755);
    allow("lib/gantry/gantry-nvml", 0755);
  }
  void allow(const char* path, mode_t mode) const {
    ASSERT_EQ(::chmod(tree_.path(path).c_str(), mode), 0);
  }
  test::Tree tree_;
};

TEST_F(FindNvmlProgram, TakesAFileThatOnlyItsOwnerCanChange) {
  const auto found = find_nvml_program(tree_.path("lib/gantry"));
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->path, tree_.path("lib/gantry/gantry-nvml"));
}

// The checked file is run, also if another one has got its path since.
TEST_F(FindNvmlProgram, KeepsTheFileThatItChecked) {
  const auto found = find_nvml_program(tree_.path("lib/gantry"));
  ASSERT_TRUE(found.ok()) << found.error().text();
  ASSERT_EQ(::rename(tree_.path("lib/gantry").c_str(), tree_.path("lib/checked").c_str()), 0);
  tree_.file("lib/gantry/gantry-nvml", "another");
  EXPECT_EQ(std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", found->file.get())),
            tree_.path("lib/checked/gantry-nvml"));
}

TEST_F(FindNvmlProgram, RefusesAFileThatOthersCanChange) {
  allow("lib/gantry/gantry-nvml", 0775);
  const auto found = find_nvml_program(tree_.path("lib/gantry"));
  EXPECT_EQ(found.error().code(), Errc::Denied);
  EXPECT_THAT(found.error().text(),
              AllOf(HasSubstr("only /proc and /sys were read"), HasSubstr("chmod go-w")));
}

TEST_F(FindNvmlProgram, RefusesADirectoryThatOthersCanChange) {
  allow("lib/gantry", 0777);
  EXPECT_EQ(find_nvml_program(tree_.path("lib/gantry")).error().code(), Errc::Denied);
}

TEST_F(FindNvmlProgram, ChecksTheFileThatALinkLeadsTo) {
  tree_.link("other/gantry-nvml", tree_.path("lib/gantry/gantry-nvml"));
  EXPECT_EQ(find_nvml_program(tree_.path("other"))->path, tree_.path("lib/gantry/gantry-nvml"));
  allow("lib/gantry/gantry-nvml", 0757);
  EXPECT_EQ(find_nvml_program(tree_.path("other")).error().code(), Errc::Denied);
}

TEST_F(FindNvmlProgram, RefusesALinkToAnotherProgram) {
  tree_.link("other/gantry-nvml", "/bin/sh");
  const auto found = find_nvml_program(tree_.path("other"));
  EXPECT_EQ(found.error().code(), Errc::Denied);
  EXPECT_THAT(found.error().text(), HasSubstr("is a link to another program, /"));
}

TEST_F(FindNvmlProgram, SaysWhichFileIsMissing) {
  const auto found = find_nvml_program(tree_.path("lib"));
  EXPECT_EQ(found.error().code(), Errc::NotFound);
  EXPECT_THAT(found.error().text(),
              AllOf(HasSubstr(tree_.path("lib/gantry-nvml")), HasSubstr("reinstall Gantry")));
}

TEST(NvmlCommand, IsTheProgramBesideThisOne) {
  const auto command = nvml_command(kViewCommand);
  ASSERT_TRUE(command.ok()) << command.error().text();
  EXPECT_THAT(command->argv,
              ElementsAre(test::built("lib/gantry/gantry-nvml"), "view", kNvmlProtocol));
  EXPECT_TRUE(command->program.valid());
}

TEST(NvmlNotStarted, KeepsTheReason) {
  const auto error = nvml_not_started(Error::sys(EACCES, "starting /x"), "/x");
  EXPECT_EQ(error.code(), Errc::Denied);
  EXPECT_THAT(error.text(), HasSubstr("starting /x: Permission denied"));
}

TEST(NvmlParts, TravelAsAnArgument) {
  for (const NvmlParts& parts :
       {NvmlParts{}, NvmlParts{.load = true, .processes = false, .links = false},
        NvmlParts{.load = false, .processes = false, .links = false}}) {
    const auto read = parts_from_argument(to_argument(parts));
    EXPECT_EQ(read.load, parts.load);
    EXPECT_EQ(read.processes, parts.processes);
    EXPECT_EQ(read.links, parts.links);
  }
  EXPECT_EQ(to_argument({}), "processes,links");
}

}  // namespace
}  // namespace gantry::probe
