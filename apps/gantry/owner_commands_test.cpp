// SPDX-License-Identifier: Apache-2.0
// gantry vfio and gantry vgpu as owners of a GPU: with an agent, and without one.
#include "gantry/vfio_owner.hpp"
#include "gantry/vgpu_owner.hpp"
#include "gpu/ownership/change_lock.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "node/owner_lease/agent_for_test.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "vm/pci/read_bus.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using owner_lease::TestAgent;
using ownership::Owner;
using ownership::OwnershipStore;
using test::Machine;
using test::run_cli;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

model::PciAddress address(const char* text) {
  return *model::PciAddress::parse(text);
}

class OwnerCommands : public testing::Test {
 protected:
  explicit OwnerCommands(const char* machine, const char* gpu) : machine_(machine), gpu_(gpu) {
    machine_.file("/run/gantry/.keep", "");
  }

  test::CliResult gantry(std::vector<std::string> words) const {
    words.insert(words.begin(), "gantry");
    words.insert(words.begin() + 3, {"--root", machine_.root()});
    return run_cli(std::move(words));
  }
  ownership::OwnershipState ledger() const { return *OwnershipStore::peek(host_); }
  // "plugin", "vm"; "" if the ledger does not know the GPU.
  std::string owner() const {
    const auto state = ledger();
    const auto* known = state.find(address(gpu_));
    return known == nullptr ? "" : std::string(to_string(known->owner));
  }
  std::string driver() const { return pci::read_driver(host_, address(gpu_)); }

  Machine machine_;
  const char* gpu_;
  sys::Host host_ = machine_.host();
};

class VfioOwner : public OwnerCommands {
 protected:
  VfioOwner() : OwnerCommands("vfio", "0000:84:00.0") {}
};

TEST_F(VfioOwner, WithoutAnAgentTheLedgerRecordsBothWays) {
  ASSERT_EQ(gantry({"vfio", "bind", gpu_}).status, 0);
  EXPECT_EQ(owner(), "vm");
  EXPECT_THAT(ledger().intents, IsEmpty());
  const auto again = gantry({"vfio", "bind", gpu_});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("nothing to do"));
  ASSERT_EQ(gantry({"vfio", "release", gpu_}).status, 0);
  EXPECT_EQ(owner(), "plugin");
  EXPECT_EQ(driver(), "nvidia");
}

TEST_F(VfioOwner, AsksTheAgentForTheGpu) {
  TestAgent agent(host_);
  const auto bound = gantry({"vfio", "bind", gpu_});
  ASSERT_EQ(bound.status, 0) << bound.err;
  EXPECT_EQ(driver(), "vfio-pci");
  EXPECT_EQ(owner(), "vm");
  ASSERT_TRUE(agent.wait_for_notes(4));
  EXPECT_THAT(agent.notes(),
              AllOf(Contains(HasSubstr("withdraw: its owner is being changed: `gantry vfio bind "
                                       "0000:84:00.0")),
                    Contains("offer again")));
  ASSERT_EQ(gantry({"vfio", "release", gpu_}).status, 0);
  EXPECT_EQ(owner(), "plugin");
}

TEST_F(VfioOwner, APodThatTheAgentKnowsKeepsTheGpu) {
  TestAgent agent(host_);
  agent.set_usage({{.withdrawn = true, .holders = {"pod default/train"}}});
  const auto run = gantry({"vfio", "bind", gpu_});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("held by pod default/train"), HasSubstr("--drain")));
  EXPECT_EQ(driver(), "nvidia");
  EXPECT_EQ(owner(), "plugin");
  EXPECT_THAT(ledger().intents, IsEmpty());
}

TEST_F(VfioOwner, DrainWaitsForThePod) {
  TestAgent agent(host_);
  agent.set_usage({{.withdrawn = true, .holders = {"pod default/train"}}, {.withdrawn = true}});
  const auto run = gantry({"vfio", "bind", gpu_, "--drain", "--timeout", "60"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("waiting for pod default/train"));
  EXPECT_EQ(owner(), "vm");
}

TEST_F(VfioOwner, WhatCannotBePassedThroughIsNotWithdrawn) {
  TestAgent agent(host_);
  machine_.file("/proc/interrupts", " 24:  0  PCI-MSI 512-edge  nvidia\n");
  const auto run = gantry({"vfio", "bind", gpu_});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("does not remap interrupts"));
  EXPECT_THAT(agent.notes(), IsEmpty());
}

TEST_F(VfioOwner, ADryRunAsksForNothing) {
  TestAgent agent(host_);
  EXPECT_EQ(gantry({"vfio", "bind", gpu_, "--dry-run"}).status, 0);
  EXPECT_THAT(agent.notes(), IsEmpty());
}

// The kernel forgets the driver at a reboot, the ledger does not.
TEST_F(VfioOwner, ReleaseAlsoMendsARecordThatIsTooOld) {
  {
    auto store = *OwnershipStore::open(host_);
    ASSERT_TRUE(store.adopt(address(gpu_), {}, Owner::Vm, model::AllocationMode::Vm).ok());
  }
  const auto run = gantry({"vfio", "release", gpu_});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(owner(), "plugin");
}

TEST_F(VfioOwner, ReleaseOfAGpuThatIsNotBoundChangesNoOwner) {
  {
    auto store = *OwnershipStore::open(host_);
    ASSERT_TRUE(store.adopt(address(gpu_), {}, Owner::Dra, model::AllocationMode::Whole).ok());
  }
  EXPECT_EQ(gantry({"vfio", "release", gpu_}).status, 0);
  EXPECT_EQ(owner(), "dra");
}

TEST_F(VfioOwner, RecoverEndsTheChangeThatWasBegun) {
  {
    auto store = *OwnershipStore::open(host_);
    ASSERT_TRUE(store.adopt(address(gpu_), {}, Owner::Plugin, model::AllocationMode::Whole).ok());
    ASSERT_TRUE(store
                    .begin({.gpu = address(gpu_),
                            .to = Owner::Vm,
                            .use = model::AllocationMode::Vm,
                            .what = "gantry vfio bind 0000:84:00.0"},
                           {.withdrawn = true})
                    .ok());
  }
  machine_.file("/run/gantry/vfio/0000:84:00.0.journal",
                R"({"version":1,"kind":"bind","targets":["0000:84:00.0"],"moves":[],"modules":[],)"
                R"("services":[],"persistence":[],"nodes":[],"step":0,"backwards":true,)"
                R"("stuck":[]})");
  // A process that still has the GPU open must not stop the way back.
  machine_.file("/proc/4711/comm", "python3\n").link("/proc/4711/fd/5", "/dev/nvidia0");
  const auto run = gantry({"vfio", "recover"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("took back the bind of 0000:84:00.0"));
  EXPECT_THAT(ledger().intents, IsEmpty());
  EXPECT_EQ(owner(), "plugin");
}

class VgpuOwner : public OwnerCommands {
 protected:
  VgpuOwner() : OwnerCommands("vgpu-t4", "0000:3b:00.0") {}
};

TEST_F(VgpuOwner, AGpuBelongsToVirtualMachinesWhileItHasVgpus) {
  const auto made = gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(owner(), "vm");
  ASSERT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"}).status, 0);
  const auto release = gantry({"vfio", "release", gpu_});
  EXPECT_EQ(release.status, 1);
  EXPECT_THAT(release.err, HasSubstr("sudo gantry vgpu remove"));
  EXPECT_EQ(owner(), "vm");
  ASSERT_EQ(gantry({"vgpu", "remove", "--all", "--gpu", "0"}).status, 0);
  EXPECT_EQ(owner(), "plugin");
}

TEST_F(VgpuOwner, AUuidInUpperCaseNamesTheLastVgpuToo) {
  const std::string uuid = "83b8f4f2-509f-482f-8c1e-e6bfe0fa1001";
  ASSERT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0", "--uuid", uuid}).status, 0);
  EXPECT_EQ(owner(), "vm");
  const auto gone = gantry({"vgpu", "remove", "83B8F4F2-509F-482F-8C1E-E6BFE0FA1001"});
  EXPECT_EQ(gone.status, 0) << gone.err;
  EXPECT_EQ(owner(), "plugin");
}

TEST_F(VgpuOwner, AsksTheAgentOnceForTheFirstVgpu) {
  TestAgent agent(host_);
  ASSERT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"}).status, 0);
  EXPECT_EQ(owner(), "vm");
  const auto asked = agent.notes().size();
  EXPECT_THAT(agent.notes(), Contains("yields: nvidia-vgpu-mgr"));
  ASSERT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"}).status, 0);
  EXPECT_LE(agent.notes().size(), asked + 1) << "at most the offer that was still to come";
  ASSERT_EQ(gantry({"vgpu", "remove", "--all"}).status, 0);
  EXPECT_EQ(owner(), "plugin");
}

TEST_F(VgpuOwner, AGpuOfAPodGetsNoVgpus) {
  TestAgent agent(host_);
  agent.set_usage({{.withdrawn = true, .holders = {"pod default/train"}}});
  const auto run = gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("pod default/train"));
  const auto devices = host_.list("/sys/bus/mdev/devices");
  EXPECT_TRUE(!devices.ok() || devices->empty());
  EXPECT_EQ(owner(), "plugin");
}

TEST_F(VgpuOwner, ATypeThatIsWrongWithdrawsNothing) {
  TestAgent agent(host_);
  EXPECT_EQ(gantry({"vgpu", "create", "T4-5Q", "--gpu", "0"}).status, 1);
  EXPECT_THAT(agent.notes(), IsEmpty());
}

TEST_F(VgpuOwner, NoVgpuIsCreatedWhileAnotherCommandChangesTheOwner) {
  ASSERT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"}).status, 0);
  {
    const auto other = ownership::ChangeLock::take(host_, address(gpu_));
    ASSERT_TRUE(other.ok());
    const auto run = gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"});
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, HasSubstr(gpu_));
  }
  EXPECT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"}).status, 0);
}

TEST_F(VgpuOwner, AGpuWithAVgpuThatCameMeanwhileIsNotGivenBack) {
  ASSERT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"}).status, 0);
  Context context;
  const VgpuOwners all_go{.with_vgpus = {}, .without_vgpus = {address(gpu_)}};
  const auto removed = with_vgpu_lease(host_, all_go, context, [] {
    return Result<vgpu::ChangeReport>(vgpu::ChangeReport{});  // the new one stays
  });
  EXPECT_EQ(removed.error().code(), Errc::Internal);
  EXPECT_THAT(removed.error().remedy(), HasSubstr("vgpu apply --restore"));
  EXPECT_EQ(owner(), "vm");
  EXPECT_EQ(gantry({"vgpu", "apply", "--restore"}).status, 0);
  EXPECT_EQ(owner(), "vm");
  EXPECT_THAT(ledger().intents, IsEmpty());
}

TEST_F(VgpuOwner, AReleaseLooksForVgpusAgainWhenItHasTheLease) {
  ASSERT_EQ(gantry({"vgpu", "create", "T4-4Q", "--gpu", "0"}).status, 0);
  Context context;
  bool acted = false;
  const auto released = with_vfio_lease(
      host_, {.gpus = {address(gpu_)}, .to = Owner::Plugin, .command = "gantry vfio release"},
      context, [&]() -> Result<vfio::BindResult> {
        acted = true;
        return vfio::BindResult{};
      });
  EXPECT_EQ(released.error().code(), Errc::Busy);
  EXPECT_FALSE(acted);
  EXPECT_EQ(owner(), "vm");
  EXPECT_THAT(ledger().intents, IsEmpty());
}

// Killed between the ledger and the first write: nothing else knows of the change.
TEST_F(VgpuOwner, RestoreAlsoEndsAChangeThatOnlyTheLedgerKnows) {
  {
    auto store = *OwnershipStore::open(host_);
    ASSERT_TRUE(store.adopt(address(gpu_), {}, Owner::Plugin, model::AllocationMode::Whole).ok());
    ASSERT_TRUE(store
                    .begin({.gpu = address(gpu_),
                            .to = Owner::Vm,
                            .use = model::AllocationMode::Vm,
                            .what = "gantry vgpu apply --restore"},
                           {.withdrawn = true})
                    .ok());
  }
  const auto run = gantry({"vgpu", "apply", "--restore"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(ledger().intents, SizeIs(0));
  EXPECT_EQ(owner(), "plugin");
}

}  // namespace
}  // namespace gantry::cli
