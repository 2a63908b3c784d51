// SPDX-License-Identifier: Apache-2.0
#include "container/plan/fence.hpp"

#include "container/plan/machine_for_test.hpp"
#include "gpu/abi/fence.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

namespace gantry::plan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const FenceOptions kFence{.share = "blue",
                          .directory = "/run/gantry/shares/blue/fence",
                          .cuda_library = "/usr/lib/gantry/fence/libgantry-fence.so",
                          .nvml_library = "/usr/lib/gantry/fence/libgantry-fence-nvml.so"};

model::ContainerEdits fenced(const PlanOptions& options = {}) {
  const auto machine = machine_for_test();
  auto edits = *edits_for(machine, {.devices = {"0"}}, options);
  const auto status = add_fence(machine, options, kFence, edits);
  EXPECT_TRUE(status.ok());
  return edits;
}

// The last mount at a place, which is the one that programs see.
std::string source_of(const model::ContainerEdits& edits, const std::string& place) {
  std::string source;
  for (const auto& mount : edits.mounts) {
    if (mount.container_path == place) source = mount.host_path;
  }
  return source;
}

TEST(Fence, IsInFrontOfTheDriversLibrariesInEveryDirectoryOfTheLoader) {
  const auto edits = fenced();
  auto directories = loader_directories();
  directories.emplace_back(kContainerLibraryDirectory);
  for (const auto& directory : directories) {
    EXPECT_EQ(source_of(edits, directory + "/libcuda.so.1"), kFence.cuda_library);
    EXPECT_EQ(source_of(edits, directory + "/libnvidia-ml.so.1"), kFence.nvml_library);
  }
}

TEST(Fence, HasTheShareAndTheDriversOwnLibrariesWhereItLooks) {
  const auto edits = fenced();
  EXPECT_EQ(source_of(edits, FENCE_DIRECTORY), kFence.directory);
  EXPECT_THAT(source_of(edits, FENCE_REAL_CUDA),
              HasSubstr("current/sets/compute+utility/lib64/libcuda.so.1"));
  EXPECT_THAT(source_of(edits, FENCE_REAL_NVML), HasSubstr("lib64/libnvidia-ml.so.1"));
}

// Root in the container must not change what the fence reads.
TEST(Fence, MountsEverythingReadOnly) {
  for (const auto& mount : fenced().mounts) {
    if (!mount.container_path.starts_with(FENCE_DIRECTORY)) continue;
    EXPECT_THAT(mount.options, Contains("ro")) << mount.container_path;
  }
}

TEST(Fence, MountsDirectoriesBeforeWhatLiesInThem) {
  const auto edits = fenced();
  std::map<std::string, std::size_t> at;
  for (std::size_t i = 0; i < edits.mounts.size(); ++i) at[edits.mounts[i].container_path] = i;
  for (const auto& [place, index] : at) {
    const auto parent = at.find(place.substr(0, place.rfind('/')));
    if (parent == at.end()) continue;
    EXPECT_LT(parent->second, index) << place;
  }
}

TEST(Fence, OfASimulatedMachineIsNotLookedForBelowItsRoot) {
  const auto edits = fenced({.engine_root = "/tmp/machine"});
  EXPECT_EQ(source_of(edits, FENCE_DIRECTORY), "/tmp/machine/run/gantry/shares/blue/fence");
  EXPECT_EQ(source_of(edits, std::string(kContainerLibraryDirectory) + "/libcuda.so.1"),
            kFence.cuda_library);
}

TEST(Fence, HasAHookForImagesWithALibcudaOfTheirOwn) {
  const auto edits = fenced({.hook_path = "/opt/gantry/bin/nvidia-cdi-hook"});
  ASSERT_EQ(edits.hooks.size(), 1U);
  EXPECT_EQ(edits.hooks[0].stage, "createContainer");
  EXPECT_EQ(edits.hooks[0].path, "/opt/gantry/bin/nvidia-cdi-hook");
  EXPECT_THAT(edits.hooks[0].args,
              ElementsAre("nvidia-cdi-hook", "fence", "--share", "blue", "--cuda",
                          kFence.cuda_library, "--nvml", kFence.nvml_library));
}

TEST(Fence, NeedsADriverWithLibcuda) {
  auto machine = machine_for_test();
  auto edits = *edits_for(machine, {.devices = {"0"}}, {});
  std::erase_if(machine.files, [](const auto& file) { return file.soname == "libcuda.so.1"; });
  const auto status = add_fence(machine, {}, kFence, edits);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::NotFound);
}

}  // namespace
}  // namespace gantry::plan
