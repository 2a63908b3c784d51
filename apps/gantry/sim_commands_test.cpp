// SPDX-License-Identifier: Apache-2.0
#include "support/machine.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

using test::Machine;
using test::run_cli;
using ::testing::HasSubstr;

TEST(SimCreate, NamesTheWordsThatItKnows) {
  const auto run = run_cli({"gantry", "sim", "create", "h200", "--root", "/x", "--nodes", "bogus"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--nodes: \"bogus\" is not one of auto, real, table\n"));
}

TEST(SimInject, NamesWhatCanBeCleared) {
  const auto run = run_cli({"gantry", "sim", "inject", "--root", "/x", "clear", "bogus"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("clear: \"bogus\" is not one of all, xid, lost, removed, "));
}

TEST(SimInject, SaysInOneLineWhatItDid) {
  const Machine machine("h200x8");
  const auto inject = [&](std::vector<std::string> words) {
    std::vector<std::string> all = {"gantry", "sim", "inject", "--root", machine.root()};
    all.insert(all.end(), words.begin(), words.end());
    const auto run = run_cli(all);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  EXPECT_EQ(inject({"xid", "31"}), "GPU 0: Xid 31; it keeps working\n");
  EXPECT_EQ(inject({"xid", "95", "--gpu", "2"}),
            "GPU 2: Xid 95; it does not compute until `nvidia-smi --gpu-reset -i 2`\n");
  EXPECT_EQ(inject({"lost", "--gpu", "3"}), "GPU 3 is off the bus (Xid 79)\n");
  EXPECT_EQ(inject({"remove", "--gpu", "4"}), "GPU 4 is no longer in the machine\n");
  EXPECT_EQ(inject({"clear", "removed", "--gpu", "4"}), "GPU 4: back to its initial state\n");
  EXPECT_EQ(inject({"fault", "cuInit", "--result", "3", "--every", "2"}),
            "cuInit: returns 3, once in 2 calls\n");
  EXPECT_EQ(inject({"clear", "fault"}), "The machine: back to its initial state\n");
}

}  // namespace
}  // namespace gantry::cli
