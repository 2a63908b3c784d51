// SPDX-License-Identifier: Apache-2.0
// Prometheus' own reader on our pages. It also has opinions about names; those are for our own
// names, not for those that others chose.
#include "base/core/text.hpp"
#include "node/metrics/pages.hpp"
#include "node/metrics/snapshot_for_test.hpp"
#include "support/tree.hpp"

#include <sys/wait.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace gantry::metrics {
namespace {

struct CommandResult {
  int status = -1;
  std::string output;
};

CommandResult run(const std::string& command) {
  CommandResult result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr)
    result.output += buffer.data();
  result.status = WEXITSTATUS(::pclose(pipe));
  return result;
}

void expect_readable(const std::string& page) {
  constexpr int kOnlyOpinions = 3;
  test::Tree tree;
  tree.file("page", page);
  const auto result = run(fmt::format("promtool check metrics < {}", tree.path("/page")));
  EXPECT_TRUE(result.status == 0 || result.status == kOnlyOpinions) << result.status << "\n"
                                                                    << result.output;
  for (const auto line : lines(result.output)) {
    const bool of_others = line.starts_with("DCGM_") || line.starts_with("memory_total ");
    EXPECT_TRUE(of_others || line.empty()) << line;
  }
}

class Promtool : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run("promtool --version").status != 0)
      GTEST_SKIP() << "promtool is not installed: apt-get install prometheus";
  }
};

TEST_F(Promtool, ReadsTheGkePage) {
  expect_readable(gke_page(busy_machine_for_test()));
}

TEST_F(Promtool, ReadsTheDcgmPage) {
  expect_readable(dcgm_page(busy_machine_for_test()));
}

TEST_F(Promtool, ReadsPagesOfMachinesWithInstances) {
  auto snapshot = machine_for_test(2);
  divide(snapshot, 0, 7);
  expect_readable(dcgm_page(snapshot));
  expect_readable(gke_page(snapshot));
}

TEST_F(Promtool, ReadsUnusualNames) {
  auto snapshot = machine_for_test(1);
  snapshot.inventory.gpus[0].name = "a\"b\\c\nd\xff";
  snapshot.holders = {hold("{}", "=\",", "#", {"GPU-0"})};
  expect_readable(dcgm_page(snapshot));
}

TEST_F(Promtool, ReadsThePageOfNothing) {
  expect_readable(dcgm_page({}));
}

}  // namespace
}  // namespace gantry::metrics
