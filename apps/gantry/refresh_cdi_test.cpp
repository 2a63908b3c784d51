// SPDX-License-Identifier: Apache-2.0
// The CDI specification after GPUs left their driver and came back.
#include "container/publish/refresh.hpp"
#include "node/owner_lease/agent_for_test.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/journal.hpp"
#include "vm/vfio/machine_state.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kGpu = "0000:18:00.0";
constexpr const char* kOther = "0000:2a:00.0";
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

  std::string driver_of(const char* gpu) const {
    return pci::read_driver(machine_.host(), *model::PciAddress::parse(gpu));
  }
  std::string node_of(const char* gpu) const {
    const auto state = vfio::read_machine_state(machine_.host());
    const auto* found = state->driver_gpu(*model::PciAddress::parse(gpu));
    return fmt::format("/dev/nvidia{}", *found->minor);
  }
  // As a bind leaves it that was killed after its first step.
  void write_begun_bind(const char* gpu) {
    const auto address = *model::PciAddress::parse(gpu);
    const auto id = pci::read_card_id(machine_.host(), address);
    ASSERT_TRUE(id.ok());
    vfio::Journal journal{.kind = "bind", .targets = {address}};
    journal.moves = {{.address = address,
                      .target = address,
                      .id = *id,
                      .from_driver = "nvidia",
                      .from_override = "",
                      .to_driver = "vfio-pci",
                      .to_override = "vfio-pci",
                      .power = ""}};
    journal.step = 1;
    machine_.file(vfio::journal_path(journal), vfio::to_json(journal));
  }

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

// The GPU left its driver and came back, so that it may have another minor number than before.
TEST_F(RefreshCdi, IsMadeAgainAfterABindThatWasTakenBack) {
  ASSERT_EQ(run({"cdi", "refresh"}).status, 0);
  ASSERT_EQ(run({"vfio", "bind", kOther}).status, 0);
  machine_.remove("/sys/bus/pci/drivers/vfio-pci/bind");
  machine_.remove(publish::kSpecPath);
  const auto bound = run({"vfio", "bind", kGpu});
  EXPECT_EQ(bound.status, 1);
  EXPECT_EQ(driver_of(kGpu), "nvidia") << bound.err;
  EXPECT_NE(spec(), kNone);
}

TEST_F(RefreshCdi, IsMadeAgainAfterAReleaseThatWasTakenBack) {
  ASSERT_EQ(run({"cdi", "refresh"}).status, 0);
  ASSERT_EQ(run({"vfio", "bind", kGpu}).status, 0);
  machine_.remove("/sys/bus/pci/drivers/nvidia/bind");
  machine_.remove(publish::kSpecPath);
  const auto released = run({"vfio", "release", kGpu});
  EXPECT_EQ(released.status, 1);
  EXPECT_EQ(driver_of(kGpu), "vfio-pci") << released.err;
  EXPECT_NE(spec(), kNone);
}

// One of the two cannot be taken back.
TEST_F(RefreshCdi, IsMadeAgainAfterARecoverThatFailedInPart) {
  ASSERT_EQ(run({"cdi", "refresh"}).status, 0);
  for (const auto* gpu : {kGpu, kOther}) write_begun_bind(gpu);
  const auto device = machine_.host().resolve(std::string("/sys/bus/pci/devices/") + kGpu);
  machine_.remove(*device + "/driver_override");
  machine_.remove(publish::kSpecPath);
  const auto recovered = run({"vfio", "recover"});
  EXPECT_EQ(recovered.status, 1) << recovered.out;
  EXPECT_FALSE(machine_.host().exists(fmt::format("/run/gantry/vfio/{}.journal", kOther)));
  EXPECT_NE(spec(), kNone);
}

TEST_F(RefreshCdi, IsNotMadeAgainIfNoGpuMoved) {
  ASSERT_EQ(run({"cdi", "refresh"}).status, 0);
  machine_.remove(publish::kSpecPath);
  machine_.file("/proc/4711/comm", "python3\n").link("/proc/4711/fd/5", node_of(kGpu));
  EXPECT_EQ(run({"vfio", "bind", kGpu}).status, 1);
  EXPECT_EQ(spec(), kNone);
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
