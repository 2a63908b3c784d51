// SPDX-License-Identifier: Apache-2.0
#include "container/publish/share_spec.hpp"

#include "container/cdi/read.hpp"
#include "container/cdi/registry.hpp"
#include "container/cdi/spec_text.hpp"
#include "container/plan/machine_for_test.hpp"
#include "gpu/abi/fence.h"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::publish {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const ShareSpecOptions kOptions{.plan = {},
                                .cuda_library = "/usr/lib/gantry/libgantry-fence.so",
                                .nvml_library = "/usr/lib/gantry/libgantry-fence-nvml.so"};

ShareDevice share(const std::string& name, const std::string& gpu) {
  return {.name = name, .gpus = {{gpu}}, .directory = "/run/gantry/shares/" + name + "/fence"};
}

TEST(ShareSpec, HasADeviceForEachShareWithItsGpuAndTheFence) {
  const auto machine = plan::machine_for_test();
  const std::vector shares{share("blue", machine.gpus[0].uuid.text),
                           share("red", machine.gpus[1].uuid.text)};
  const auto spec = generate_share_spec(machine, shares, kOptions);
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_THAT(cdi::load_spec(cdi::to_text(*spec, cdi::Format::Json), "x.json")->devices.size(), 2U);
  const auto* red = spec->find("red");
  ASSERT_NE(red, nullptr);
  EXPECT_THAT(red->edits.device_nodes, Contains(Field(&cdi::DeviceNode::path, "/dev/nvidia1")));
  EXPECT_THAT(red->edits.device_nodes,
              Not(Contains(Field(&cdi::DeviceNode::path, "/dev/nvidia0"))));
  EXPECT_THAT(red->edits.mounts, Contains(Field(&cdi::Mount::container_path, FENCE_REAL_CUDA)));
  EXPECT_THAT(red->edits.mounts,
              Contains(Field(&cdi::Mount::host_path, "/run/gantry/shares/red/fence")));
}

TEST(ShareSpec, OfAMigInstanceHasTheInstanceAndNoFence) {
  const auto machine = plan::machine_for_test();
  auto mine = share("slice", machine.gpus[2].mig.instances[0].uuid.text);
  mine.fenced = FenceUse::No;
  const auto spec = generate_share_spec(machine, std::vector{mine}, kOptions);
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  const auto& edits = spec->devices.front().edits;
  EXPECT_THAT(edits.device_nodes,
              Contains(Field(&cdi::DeviceNode::path, "/dev/nvidia-caps/nvidia-cap30")));
  EXPECT_THAT(edits.mounts, Each(Field(&cdi::Mount::container_path, Not(HasSubstr("fence")))));
}

TEST(ShareSpec, NamesTheShareWhoseGpuIsGone) {
  const auto spec = generate_share_spec(plan::machine_for_test(),
                                        std::vector{share("blue", "GPU-gone")}, kOptions);
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().code(), Errc::NotFound);
  EXPECT_THAT(spec.error().text(), HasSubstr("gantry.dev/share=blue"));
}

TEST(ShareSpec, IsWhatEnginesFindAndGoesWithTheLastShare) {
  const test::Tree tree;
  const auto host = tree.host();
  const auto machine = plan::machine_for_test();
  const std::vector shares{share("blue", machine.gpus[0].uuid.text)};
  EXPECT_TRUE(*write_share_spec(host, machine, shares, kOptions));
  EXPECT_FALSE(*write_share_spec(host, machine, shares, kOptions));
  const auto registry = cdi::Registry::load(host);
  EXPECT_THAT(registry.rejected(), IsEmpty());
  EXPECT_TRUE(registry.devices().contains("gantry.dev/share=blue"));
  EXPECT_TRUE(*write_share_spec(host, machine, {}, kOptions));
  EXPECT_FALSE(host.exists(kShareSpecPath));
  EXPECT_FALSE(*write_share_spec(host, machine, {}, kOptions));
}

}  // namespace
}  // namespace gantry::publish
