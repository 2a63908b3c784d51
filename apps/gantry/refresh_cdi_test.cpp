// SPDX-License-Identifier: Apache-2.0
// The CDI specification after GPUs left their driver and came back.
#include "container/publish/refresh.hpp"
#include "node/owner_lease/agent_for_test.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kGpu = "0000:18:00.0";
constexpr const char* kNone = "(no specification)";

class RefreshCdi : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    machine_.file("/run/gantry/.keep", "");
  }
  test::CliResult run(std::vector<std::string> words) const {
    words.insert(words.begin(), "gantry");
    words.insert(words.begin() + 3, {"--root", machine_.root()});
    return test::run_cli(std::move(words));
  }
  std::string spec() const { return machine_.host().read(publish::kSpecPath).value_or(kNone); }

  test::Machine machine_{"h200x8"};
};

TEST_F(RefreshCdi, IsMadeAgainAfterBindAndAfterRelease) {
  ASSERT_EQ(run({"cdi", "refresh"}).status, 0);
  const auto before = spec();
  machine_.remove(publish::kSpecPath);
  const auto bound = run({"vfio", "bind", kGpu});
  ASSERT_EQ(bound.status, 0) << bound.err;
  EXPECT_NE(spec(), kNone);
  ASSERT_EQ(run({"vfio", "release", kGpu}).status, 0);
  EXPECT_EQ(spec(), before);
}

TEST_F(RefreshCdi, IsLeftToTheAgentAndNotBegunWhereItIsNotUsed) {
  ASSERT_EQ(run({"vfio", "bind", kGpu}).status, 0);
  EXPECT_EQ(spec(), kNone);
  ASSERT_EQ(run({"vfio", "release", kGpu}).status, 0);
  ASSERT_EQ(run({"cdi", "refresh"}).status, 0);
  machine_.remove(publish::kSpecPath);
  const auto host = machine_.host();
  const owner_lease::TestAgent agent(host);
  ASSERT_EQ(run({"vfio", "bind", kGpu}).status, 0);
  EXPECT_EQ(spec(), kNone);
}

TEST_F(RefreshCdi, AFailureIsANoteWithTheCommandThatHelps) {
  ASSERT_EQ(run({"cdi", "refresh"}).status, 0);
  machine_.file("/var/run/cdi/other.yaml",
                "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices: [{name: \"0\", containerEdits: "
                "{deviceNodes: [{path: /dev/nvidia0}]}}]\n");
  const auto bound = run({"vfio", "bind", kGpu});
  EXPECT_EQ(bound.status, 0);
  EXPECT_THAT(bound.err, HasSubstr("sudo gantry cdi refresh --root " + machine_.root()));
}

}  // namespace
}  // namespace gantry::cli
