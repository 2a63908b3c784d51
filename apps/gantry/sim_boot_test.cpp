// SPDX-License-Identifier: Apache-2.0
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What tools/vm-prepare makes, as far as the command looks at it.
class SimBoot : public ::testing::Test {
 protected:
  SimBoot() {
    parts_.file("6.1/vmlinux").file("6.1/initrd");
    parts_.file("script", "echo it's a script\n");
  }
  test::CliResult boot(std::vector<std::string> words) {
    words.insert(words.begin(), {"gantry", "sim", "boot", "--parts", parts_.root()});
    return run_cli(words);
  }
  test::Tree parts_;
};

TEST_F(SimBoot, PrintsACommandThatCanBePasted) {
  const auto run = boot({"h200", "--print", "--run", parts_.path("script")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("LD_PRELOAD=" + parts_.root() +
                                  "/gantry-gpu.so qemu-system-x86_64 \\\n  -machine q35 \\\n"));
  EXPECT_THAT(run.out, HasSubstr("string=echo it'\\''s a script"));
}

TEST_F(SimBoot, PrintsJson) {
  const auto run = boot({"t4x4", "--print", "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"preload\": \"" + parts_.root() + "/gantry-gpu.so\""));
  EXPECT_THAT(run.out, HasSubstr("\"described\": \"0000:3b:00.0\""));
}

TEST_F(SimBoot, HandsFurtherArgumentsToQemu) {
  const auto run = boot({"h200", "--print", "--", "-monitor", "none"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::EndsWith("-monitor none\n"));
}

TEST_F(SimBoot, SaysHowTheKernelsAreMade) {
  const auto missing =
      run_cli({"gantry", "sim", "boot", "h200", "--print", "--parts", parts_.path("absent")});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("there are no kernels for virtual machine hosts in"));
  EXPECT_THAT(missing.err, HasSubstr("tools/setup vm && tools/vm-prepare"));
  const auto other = boot({"h200", "--print", "--kernel", "6.12"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("--kernel is 6.1 or 6.12"));
}

TEST_F(SimBoot, NamesAnUnknownMachine) {
  const auto run = boot({"h300", "--print"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("h300"));
}

}  // namespace
}  // namespace gantry::cli
