// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/ownership_store.hpp"
#include "support/machine.hpp"
#include "support/parsed_json.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry {
namespace {

using test::run_cli;
using testing::HasSubstr;

TEST(GpuReset, ShowsItsStepsInADryRun) {
  const test::Machine machine("h200");
  const auto run = run_cli({"gantry", "gpu", "reset", "0", "--dry-run", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("owner plugin"));
  EXPECT_THAT(run.out, HasSubstr("driver/unbind"));
  EXPECT_THAT(run.out, HasSubstr("/reset (flr)"));
  EXPECT_THAT(run.out, HasSubstr("/sys/bus/pci/drivers/nvidia/bind"));
  EXPECT_FALSE(machine.host().exists("/var/lib/gantry/ledger")) << "a dry run writes nothing";
}

TEST(GpuReset, PrintsItsPlanAsJson) {
  const test::Machine machine("h200");
  const auto run =
      run_cli({"gantry", "gpu", "reset", "0", "--dry-run", "--json", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"method\": \"flr\""));
  EXPECT_THAT(run.out, HasSubstr("\"done\": false"));
}

TEST(GpuReset, NeedsTheMachinesOwnKernel) {
  const test::Machine machine("h200");
  const auto run = run_cli({"gantry", "gpu", "reset", "0", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("own kernel"));
  EXPECT_THAT(run.err, HasSubstr("--dry-run"));
}

TEST(GpuReset, NamesTheGpusThatThereAre) {
  const test::Machine machine("h200");
  const auto run = run_cli({"gantry", "gpu", "reset", "7", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("there is no GPU `7`; there are 0000:"));
}

TEST(GpuReset, WaitsForAChangeOfTheOwner) {
  const test::Machine machine("h200");
  const auto gpus = machine.host().list("/proc/driver/nvidia/gpus");
  ASSERT_TRUE(gpus.ok());
  const auto gpu = *model::PciAddress::parse(gpus->at(0));
  {
    auto ledger = ownership::OwnershipStore::open(machine.host());
    ASSERT_TRUE(ledger.ok()) << ledger.error().text();
    ASSERT_TRUE(
        ledger->adopt(gpu, {}, ownership::Owner::Plugin, model::AllocationMode::Whole).ok());
    ASSERT_TRUE(ledger
                    ->begin({.gpu = gpu,
                             .to = ownership::Owner::Vm,
                             .use = model::AllocationMode::Vm,
                             .what = "gantry vfio bind " + gpu.sysfs(),
                             .pid = 4711},
                            {.withdrawn = true})
                    .ok());
  }
  const auto run = run_cli({"gantry", "gpu", "reset", "0", "--dry-run", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("gantry vfio bind"));
  EXPECT_THAT(run.err, HasSubstr("process 4711"));
}

}  // namespace
}  // namespace gantry
