// SPDX-License-Identifier: Apache-2.0
// The container runtime without an inventory and the probe without NVML read the same files: both
// must see the same GPUs, with the same indices.
#include "container/runtime/injection/procfs_inventory.hpp"

#include "container/runtime/injection/machine.hpp"
#include "gpu/probe/snapshot.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using test::Tree;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kWhole = "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-aaaa\n";
constexpr std::string_view kUnread =
    "Model: \t\t Unknown\nIRQ:   \t\t 11\nGPU UUID: \t GPU-????????"
    "-????"
    "-????"
    "-????"
    "-????????????\n"
    "Video BIOS: \t ??.??.??.??.??\nDevice Minor: \t 1\nGPU Excluded:\t No\n";

const probe::SnapshotOptions kWithoutFiles{.files = probe::FindFiles::No};

// The facts of a GPU that the files in procfs contain.
std::string describe(const model::Gpu& gpu) {
  return fmt::format("{}: {} \"{}\" \"{}\" minor {}{}", gpu.index, gpu.pci.sysfs(), gpu.uuid.text,
                     gpu.name, gpu.minor ? fmt::to_string(*gpu.minor) : "unknown",
                     gpu.mig.current == model::MigMode::Enabled ? ", MIG" : "");
}

std::vector<std::string> describe(const Result<model::Inventory>& inventory) {
  if (!inventory.ok()) return {};  // the probe has notes where the runtime fails
  std::vector<std::string> gpus;
  for (const auto& gpu : inventory->gpus) gpus.push_back(describe(gpu));
  return gpus;
}

class SameGpus : public ::testing::Test {
 protected:
  SameGpus() {
    tree_.directory("sys/module/nvidia").directory("proc/driver/nvidia/gpus");
    tree_.file("proc/driver/nvidia/version", "NVRM version: Kernel Module  580.159.04  x\n");
  }

  void add_gpu(std::string_view address, std::string_view information) {
    tree_.file(fmt::format("proc/driver/nvidia/gpus/{}/information", address), information);
  }
  void add_instance(std::string_view path) {
    tree_.directory(fmt::format("proc/driver/nvidia/capabilities/{}", path));
  }

  // The GPUs of the container runtime; fails if the probe has others.
  std::vector<std::string> gpus() {
    const auto host = tree_.host();
    probe::NvmlView nvml;
    nvml.inventory.driver.nvml_error = "NVML was not queried";
    const auto probed = describe(probe::complete_inventory(host, nvml, kWithoutFiles));
    auto injected = describe(procfs_inventory(host, {.version = "580.159.04"}));
    EXPECT_EQ(injected, probed);
    return injected;
  }

  Tree tree_;
};

TEST_F(SameGpus, WithoutExcludedOnesOfAnyDriver) {
  add_gpu("0000:01:00.0", fmt::format("{}Device Minor: \t 0\nBlacklisted:\t Yes\n", kWhole));
  add_gpu("0000:02:00.0", fmt::format("{}Device Minor: \t 1\nGPU Excluded:\t Yes\n", kWhole));
  add_gpu("0000:03:00.0", fmt::format("{}Device Minor: \t 2\nBlacklisted:\t No\n", kWhole));
  EXPECT_THAT(gpus(), ElementsAre("0: 0000:03:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 2"));
}

TEST_F(SameGpus, WithoutValuesThatTheDriverDoesNotKnowYet) {
  add_gpu("0000:01:00.0", kUnread);
  EXPECT_THAT(gpus(), ElementsAre("0: 0000:01:00.0 \"\" \"\" minor 1"));
}

TEST_F(SameGpus, InTheOrderOfTheirPciAddresses) {
  add_gpu("10000:01:00.0", fmt::format("{}Device Minor: \t 2\n", kWhole));
  add_gpu("e322:00:00.0", fmt::format("{}Device Minor: \t 1\n", kWhole));
  EXPECT_THAT(gpus(), ElementsAre("0: e322:00:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 1",
                                  "1: 10000:01:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 2"));
}

// If a GPU were left out, every index after it would mean another GPU than in the inventory.
TEST_F(SameGpus, WithTheSameIndicesAfterADamagedFile) {
  add_gpu("0000:01:00.0", "");
  add_gpu("0000:02:00.0", std::string(70000, 'x'));
  add_gpu("0000:03:00.0", "Model: \t\t NVIDIA H200\nGPU UU");
  add_gpu("0000:04:00.0", fmt::format("{}Device Minor: \t 3\n", kWhole));
  add_gpu("not an address", kWhole);
  EXPECT_THAT(gpus(), ElementsAre("0: 0000:01:00.0 \"\" \"\" minor unknown",
                                  "1: 0000:02:00.0 \"\" \"\" minor unknown",
                                  "2: 0000:03:00.0 \"\" \"NVIDIA H200\" minor unknown",
                                  "3: 0000:04:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 3"));
}

TEST_F(SameGpus, WithTheSameLineOfAFileThatRepeatsOne) {
  add_gpu("0000:01:00.0", fmt::format("{}Device Minor: \t 1\nDevice Minor: \t 2\n", kWhole));
  EXPECT_THAT(gpus(), ElementsAre("0: 0000:01:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 2"));
}

TEST_F(SameGpus, WithTheSameMigInstances) {
  for (int minor = 0; minor < 3; ++minor) {
    add_gpu(fmt::format("0000:0{}:00.0", minor),
            fmt::format("{}Device Minor: \t {}\n", kWhole, minor));
  }
  add_instance("gpu0/mig");
  add_instance("gpu1/mig/gi12/ci0");
  add_instance("gpu2/mig/giant");
  EXPECT_THAT(gpus(), ElementsAre("0: 0000:00:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 0",
                                  "1: 0000:01:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 1, MIG",
                                  "2: 0000:02:00.0 \"GPU-aaaa\" \"NVIDIA H200\" minor 2"));
}

TEST_F(SameGpus, NoneInADirectoryThatIsNotTheDrivers) {
  for (int bus = 0; bus < 200; ++bus) {
    for (int device = 0; device < 2; ++device) {
      add_gpu(fmt::format("0000:{:02x}:{:02x}.0", bus, device), kUnread);
    }
  }
  EXPECT_THAT(gpus(), IsEmpty());
}

TEST_F(SameGpus, OfTheSameDriver) {
  EXPECT_TRUE(runs_driver(tree_.host(), "580.159.04"));
  EXPECT_FALSE(runs_driver(tree_.host(), "Kernel"));
  tree_.file("proc/driver/nvidia/version", "NVRM version: Kernel Module\n");
  tree_.file("sys/module/nvidia/version", "580.159.04\n");
  const auto probed = probe::complete_inventory(tree_.host(), probe::NvmlView{}, kWithoutFiles);
  ASSERT_TRUE(probed.ok());
  EXPECT_EQ(probed->driver.version, "580.159.04");
  EXPECT_TRUE(runs_driver(tree_.host(), probed->driver.version));
}

}  // namespace
}  // namespace gantry::runtime
