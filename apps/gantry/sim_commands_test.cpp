// SPDX-License-Identifier: Apache-2.0
#include "gantry/sim_commands.hpp"

#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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
            "GPU 2: Xid 95; it does not compute until `gantry sim run --root " + machine.root() +
                " -- nvidia-smi --gpu-reset -i 2`\n");
  EXPECT_EQ(inject({"lost", "--gpu", "3"}), "GPU 3 is off the bus (Xid 79)\n");
  EXPECT_EQ(inject({"remove", "--gpu", "4"}), "GPU 4 is no longer in the machine\n");
  EXPECT_EQ(inject({"clear", "removed", "--gpu", "4"}), "GPU 4: back to its initial state\n");
  EXPECT_EQ(inject({"fault", "cuInit", "--result", "3", "--every", "2"}),
            "cuInit: returns 3, once in 2 calls\n");
  EXPECT_EQ(inject({"clear", "fault"}), "The machine: back to its initial state\n");
}

TEST(SimUse, ServesAMachineAndTakesItBack) {
  const Machine machine("h200x8");
  const test::Tree engines;
  const auto directory = engines.path("cdi");
  const auto use =
      run_cli({"gantry", "sim", "use", "--root", machine.root(), "--spec-dir", directory});
  if (use.err.find("real NVIDIA driver") != std::string::npos) GTEST_SKIP() << use.err;
  EXPECT_EQ(use.status, 0) << use.err;
  EXPECT_THAT(use.out, HasSubstr("17 devices of h200x8 in " + machine.root()));
  const auto spec = *sys::Host::at("/")->read(directory + "/nvidia.yaml");
  EXPECT_THAT(spec, HasSubstr("hostPath: " + machine.root() + "/dev/nvidia0"));
  // Another machine takes its place; then nothing is left.
  const Machine other("t4x4");
  EXPECT_EQ(
      run_cli({"gantry", "sim", "use", "--root", other.root(), "--spec-dir", directory}).status, 0);
  const auto removed = run_cli({"gantry", "sim", "use", "--remove", "--spec-dir", directory});
  EXPECT_EQ(removed.out,
            directory + "/nvidia.yaml: removed; " + other.root() + " is no longer served\n");
  EXPECT_EQ(run_cli({"gantry", "sim", "use", "--remove", "--spec-dir", directory}).status, 0);
}

TEST(SimUse, PathsThatItPrintsCanBePasted) {
  const Machine machine("h200");
  test::Tree place;
  place.directory("with space");
  const auto directory = place.path("with space");
  const auto use =
      run_cli({"gantry", "sim", "use", "--root", machine.root(), "--spec-dir", directory});
  EXPECT_EQ(use.status, 0) << use.err;
  EXPECT_THAT(use.out, HasSubstr("gantry sim use --remove --spec-dir '" + directory + "'\n"));
  place.file("with space/nvidia.yaml", "theirs\n");
  const auto refused =
      run_cli({"gantry", "sim", "use", "--root", machine.root(), "--spec-dir", directory});
  EXPECT_THAT(refused.err, HasSubstr("sudo mv '" + directory + "/nvidia.yaml' '" + directory +
                                     "/nvidia.yaml.before-sim'"));
}

TEST(SimUse, NeverServesOverARealDriverOrAnotherFile) {
  Machine real("h200");
  EXPECT_THAT(check_serve_target(real.host(), "/var/run/cdi/nvidia.yaml").error().text(),
              HasSubstr("real NVIDIA driver"));
  real.remove("/proc/driver/nvidia/version");
  EXPECT_TRUE(check_serve_target(real.host(), "/var/run/cdi/nvidia.yaml").ok());
  const std::string theirs =
      "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- {name: all, containerEdits: {env: "
      "[A=b]}}\n";
  real.file("/etc/cdi/theirs.yaml", theirs);
  EXPECT_THAT(check_serve_target(real.host(), "/var/run/cdi/nvidia.yaml").error().text(),
              HasSubstr("/etc/cdi/theirs.yaml already defines nvidia.com/gpu devices"));
  real.remove("/etc/cdi/theirs.yaml").file("/var/run/cdi/nvidia.yaml", theirs);
  EXPECT_THAT(check_serve_target(real.host(), "/var/run/cdi/nvidia.yaml").error().text(),
              HasSubstr("sudo mv /var/run/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml.before-sim"));
}

TEST(SimRemove, RemovesAMachineAndNothingElse) {
  const Machine machine("h200");
  const auto run = run_cli({"gantry", "sim", "rm", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_FALSE(std::filesystem::exists(machine.root()));
  const test::Tree other;
  const auto refused = run_cli({"gantry", "sim", "rm", "--root", other.root()});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("is not a simulated machine"));
  EXPECT_TRUE(std::filesystem::exists(other.root()));
}

}  // namespace
}  // namespace gantry::cli
