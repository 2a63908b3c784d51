// SPDX-License-Identifier: Apache-2.0
#include "support/paths.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::StartsWith;

test::CliResult sim_package(std::vector<std::string> words) {
  std::vector<std::string> all = {"gantry",
                                  "sim",
                                  "package",
                                  "--source",
                                  test::source_dir(),
                                  "--libraries",
                                  test::built("lib/gantry/sim")};
  all.insert(all.end(), words.begin(), words.end());
  return run_cli(all);
}

TEST(SimPackage, WritesAProgramAndSaysItsDigest) {
  const test::Tree tree;
  const auto path = tree.path("driver.run");
  const auto run = sim_package({"--driver", "460.56", "-o", path});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith(path + ": simulated driver 460.56, "));
  EXPECT_THAT(run.out, HasSubstr("\nsha256: "));
  EXPECT_THAT(run.out, HasSubstr("gantry driver install --run " + path + " --sha256 "));
  using std::filesystem::perms;
  EXPECT_NE(std::filesystem::status(path).permissions() & perms::owner_exec, perms::none);
}

TEST(SimPackage, PrintsJson) {
  const test::Tree tree;
  const auto run = sim_package({"--driver", "580", "-o", tree.path("driver.run"), "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"version\": \"580.159.04\""));
}

TEST(SimPackage, NeedsAKnownDriverAndTheSourceTree) {
  EXPECT_EQ(sim_package({}).status, 2);
  const auto unknown = sim_package({"--driver", "999.1"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("no simulated driver of branch 999"));
  const test::Tree empty;
  const auto nothing =
      run_cli({"gantry", "sim", "package", "--driver", "580", "--source", empty.root()});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, HasSubstr("is not Gantry's source tree"));
}

}  // namespace
}  // namespace gantry::cli
