// SPDX-License-Identifier: Apache-2.0
#include "node/labels/labels.hpp"

#include "base/json/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::labels {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

model::Gpu gpu(const char* name, std::uint64_t mib, int major = 9, int minor = 0) {
  model::Gpu gpu;
  gpu.name = name;
  gpu.memory_bytes = mib << 20U;
  gpu.compute_capability = {major, minor};
  gpu.mig.current = model::MigMode::Disabled;
  return gpu;
}

void add_instances(model::Gpu& gpu, int count, const char* profile) {
  gpu.mig.current = model::MigMode::Enabled;
  for (int i = 0; i < count; ++i) {
    auto& mig = gpu.mig.instances.emplace_back();
    mig.profile = profile;
    mig.memory_bytes = std::uint64_t{16384} << 20U;
    mig.multiprocessors = 16;
    mig.gpu_slices = mig.compute_slices = 1;
    mig.engines = {.copy = 1, .decoder = 1, .jpeg = 1};
  }
}

model::Inventory machine(std::vector<model::Gpu> gpus) {
  model::Inventory inventory;
  inventory.driver.version = "580.159.04";
  inventory.driver.cuda_version = "13.0";
  std::uint8_t bus = 1;
  for (auto& one : gpus) {
    one.pci.bus = bus++;
    inventory.functions.push_back({.address = one.pci, .vendor = 0x10de, .class_code = 0x030200});
    inventory.gpus.push_back(std::move(one));
  }
  return inventory;
}

model::Inventory eight_h200() {
  return machine(std::vector<model::Gpu>(8, gpu("NVIDIA H200", 143771)));
}

TEST(Labels, DoNotCountAGpuThatDoesNotAnswer) {
  auto one_lost = eight_h200();
  one_lost.gpus[3].health.state = model::HealthState::Lost;
  EXPECT_THAT(make_labels(one_lost, {}), Contains(Pair("nvidia.com/gpu.count", "7")));
  auto no_nvml = eight_h200();
  no_nvml.driver.nvml_error = "nvmlInit_v2: version mismatch";
  EXPECT_EQ(make_labels(no_nvml, {}), (Labels{{"nvidia.com/vgpu.present", "false"}}));
}

TEST(Labels, OfEightEqualGpus) {
  const auto labels =
      make_labels(eight_h200(), {.machine = "NVIDIA DGX H200 (rev 2)", .timestamp = 1'724'632'719});
  const Labels expected{{"nvidia.com/cuda.driver-version.full", "580.159.04"},
                        {"nvidia.com/cuda.driver-version.major", "580"},
                        {"nvidia.com/cuda.driver-version.minor", "159"},
                        {"nvidia.com/cuda.driver-version.revision", "04"},
                        {"nvidia.com/cuda.driver.major", "580"},
                        {"nvidia.com/cuda.driver.minor", "159"},
                        {"nvidia.com/cuda.driver.rev", "04"},
                        {"nvidia.com/cuda.runtime-version.full", "13.0"},
                        {"nvidia.com/cuda.runtime-version.major", "13"},
                        {"nvidia.com/cuda.runtime-version.minor", "0"},
                        {"nvidia.com/cuda.runtime.major", "13"},
                        {"nvidia.com/cuda.runtime.minor", "0"},
                        {"nvidia.com/gfd.timestamp", "1724632719"},
                        {"nvidia.com/gpu.compute.major", "9"},
                        {"nvidia.com/gpu.compute.minor", "0"},
                        {"nvidia.com/gpu.count", "8"},
                        {"nvidia.com/gpu.family", "hopper"},
                        {"nvidia.com/gpu.machine", "NVIDIA-DGX-H200-rev-2"},
                        {"nvidia.com/gpu.memory", "143771"},
                        {"nvidia.com/gpu.mode", "compute"},
                        {"nvidia.com/gpu.product", "NVIDIA-H200"},
                        {"nvidia.com/gpu.replicas", "1"},
                        {"nvidia.com/gpu.sharing-strategy", "none"},
                        {"nvidia.com/mig.capable", "true"},
                        {"nvidia.com/mps.capable", "false"},
                        {"nvidia.com/vgpu.present", "false"}};
  EXPECT_EQ(labels, expected);
}

TEST(Labels, WithoutGpusOnlyTimestampAndVgpu) {
  const auto labels = make_labels({}, {.timestamp = 1});
  EXPECT_EQ(labels,
            (Labels{{"nvidia.com/gfd.timestamp", "1"}, {"nvidia.com/vgpu.present", "false"}}));
}

TEST(Labels, ADriverVersionOfTwoParts) {
  auto inventory = eight_h200();
  inventory.driver.version = "580.105";
  const auto labels = make_labels(inventory, {});
  EXPECT_THAT(labels, Contains(Pair("nvidia.com/cuda.driver.rev", "")));
  EXPECT_THAT(labels, Contains(Pair("nvidia.com/cuda.driver-version.full", "580.105")));
  inventory.driver.version = "unknown";
  EXPECT_THAT(make_labels(inventory, {}), Not(Contains(Key("nvidia.com/cuda.driver.major"))));
}

TEST(Labels, OnMixedModelsTheMajoritySpeaksAndEachHasItsOwn) {
  const auto t4 = gpu("Tesla T4", 15360, 7, 5);
  const auto h200 = gpu("NVIDIA H200", 143771);
  std::vector<model::Gpu> list{h200, t4, t4, h200, t4};
  const auto labels = make_labels(machine(list), {});
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "Tesla-T4");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "3");
  EXPECT_EQ(labels.at("nvidia.com/gpu.memory"), "15360");
  EXPECT_EQ(labels.at("nvidia.com/gpu.family"), "turing");
  EXPECT_EQ(labels.at("nvidia.com/gpu-model.Tesla-T4.count"), "3");
  EXPECT_EQ(labels.at("nvidia.com/gpu-model.NVIDIA-H200.count"), "2");
  EXPECT_EQ(labels.at("nvidia.com/gpu-model.NVIDIA-H200.memory"), "143771");
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  EXPECT_EQ(make_labels(machine(list), {}), labels) << "whatever the order of the GPUs";
}

TEST(Labels, AmongEqualNumbersTheLargerGpuSpeaks) {
  const auto labels =
      make_labels(machine({gpu("Tesla T4", 15360, 7, 5), gpu("NVIDIA H200", 143771)}), {});
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "1");
}

TEST(Labels, SharingShowsInReplicasStrategyAndProduct) {
  LabelOptions options{.shared = {{"nvidia.com/gpu", {SharingKind::TimeSlicing, 4, false}}}};
  auto labels = make_labels(eight_h200(), options);
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200-SHARED");
  EXPECT_EQ(labels.at("nvidia.com/gpu.replicas"), "4");
  EXPECT_EQ(labels.at("nvidia.com/gpu.sharing-strategy"), "time-slicing");
  EXPECT_EQ(labels.at("nvidia.com/mps.capable"), "false");
  options.shared["nvidia.com/gpu"] = {SharingKind::Mps, 4, true};
  labels = make_labels(eight_h200(), options);
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200") << "a renamed resource says it";
  EXPECT_EQ(labels.at("nvidia.com/gpu.sharing-strategy"), "mps");
  EXPECT_EQ(labels.at("nvidia.com/mps.capable"), "true");
  options.shared["nvidia.com/gpu"] = {SharingKind::TimeSlicing, 1, false};
  EXPECT_EQ(make_labels(eight_h200(), options).at("nvidia.com/gpu.sharing-strategy"), "none");
}

TEST(Labels, MigSingle) {
  auto inventory = eight_h200();
  for (auto& one : inventory.gpus) add_instances(one, 7, "1g.18gb");
  const auto labels = make_labels(inventory, {.mig = MigStrategy::Single});
  EXPECT_EQ(labels.at("nvidia.com/mig.strategy"), "single");
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200-MIG-1g.18gb");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "56");
  EXPECT_EQ(labels.at("nvidia.com/gpu.replicas"), "1");
  EXPECT_EQ(labels.at("nvidia.com/gpu.memory"), "16384");
  EXPECT_EQ(labels.at("nvidia.com/gpu.multiprocessors"), "16");
  EXPECT_EQ(labels.at("nvidia.com/gpu.slices.gi"), "1");
  EXPECT_EQ(labels.at("nvidia.com/gpu.engines.copy"), "1");
  EXPECT_EQ(labels.at("nvidia.com/gpu.engines.ofa"), "0");
}

TEST(Labels, MigSingleThatIsNotSingle) {
  const auto invalid = [](const model::Inventory& inventory) {
    const auto labels = make_labels(inventory, {.mig = MigStrategy::Single});
    return labels.at("nvidia.com/gpu.product") == "NVIDIA-H200-MIG-INVALID" &&
           labels.at("nvidia.com/gpu.count") == "0" && labels.at("nvidia.com/gpu.memory") == "0" &&
           labels.at("nvidia.com/gpu.replicas") == "0" &&
           labels.at("nvidia.com/gpu.sharing-strategy").empty();
  };
  auto some = eight_h200();
  add_instances(some.gpus[0], 7, "1g.18gb");
  EXPECT_TRUE(invalid(some)) << "some GPUs are whole";
  auto empty = eight_h200();
  for (auto& one : empty.gpus) one.mig.current = model::MigMode::Enabled;
  EXPECT_TRUE(invalid(empty)) << "a divided GPU without instances";
  auto two = eight_h200();
  for (auto& one : two.gpus) add_instances(one, 1, "3g.71gb");
  add_instances(two.gpus[3], 1, "1g.18gb");
  EXPECT_TRUE(invalid(two)) << "two profiles";
  EXPECT_FALSE(invalid(eight_h200())) << "no MIG at all is like strategy none";
}

TEST(Labels, MigMixed) {
  auto inventory = eight_h200();
  add_instances(inventory.gpus[0], 2, "1g.18gb");
  add_instances(inventory.gpus[0], 1, "1g.18gb+me");
  add_instances(inventory.gpus[1], 1, "1g.18gb");
  const auto labels = make_labels(
      inventory, {.mig = MigStrategy::Mixed,
                  .shared = {{"nvidia.com/mig-1g.18gb", {SharingKind::TimeSlicing, 2, false}}}});
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "8");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.count"), "3");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.product"), "NVIDIA-H200-MIG-1g.18gb-SHARED");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.replicas"), "2");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.sharing-strategy"), "time-slicing");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.me.count"), "1");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.me.replicas"), "1");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.memory"), "16384");
}

TEST(Labels, AGpuThatIsDividedIsNotReplicated) {
  auto inventory = eight_h200();
  for (auto& one : inventory.gpus) add_instances(one, 7, "1g.18gb");
  const auto labels = make_labels(
      inventory, {.shared = {{"nvidia.com/gpu", {SharingKind::TimeSlicing, 4, false}}}});
  EXPECT_EQ(labels.at("nvidia.com/gpu.replicas"), "0");
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200");
}

TEST(Labels, TheFabricOnlyWhereAllAgree) {
  auto inventory = eight_h200();
  for (auto& one : inventory.gpus) one.fabric_clique = "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1";
  EXPECT_EQ(make_labels(inventory, {}).at("nvidia.com/gpu.clique"),
            "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1");
  inventory.gpus[3].fabric_clique = "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.2";
  EXPECT_THAT(make_labels(inventory, {}), Not(Contains(Key("nvidia.com/gpu.clique"))));
}

TEST(Labels, OfAVgpuGuest) {
  const auto labels = make_labels(eight_h200(), {.vgpu = VgpuHost{"550.54.16", "r550_40"}});
  EXPECT_EQ(labels.at("nvidia.com/vgpu.present"), "true");
  EXPECT_EQ(labels.at("nvidia.com/vgpu.host-driver-version"), "550.54.16");
  EXPECT_EQ(labels.at("nvidia.com/vgpu.host-driver-branch"), "r550_40");
}

TEST(Sanitised, KeepsWhatALabelMayHave) {
  EXPECT_EQ(sanitize("NVIDIA A100-SXM4-80GB"), "NVIDIA-A100-SXM4-80GB");
  EXPECT_EQ(sanitize("  NVIDIA   GeForce (TM)  "), "NVIDIA-GeForce-TM");
  EXPECT_EQ(sanitize("Quadro K2000 @ ½"), "Quadro-K2000");
  EXPECT_EQ(sanitize("-_.x._-"), "x");
  EXPECT_EQ(sanitize("(((("), "");
  EXPECT_EQ(sanitize(std::string(100, 'x')), std::string(63, 'x'));
  EXPECT_EQ(sanitize(std::string(62, 'x') + "--y"), std::string(62, 'x'));
}

TEST(NodeFeature, IsTheObjectThatNfdReads) {
  const auto text = to_node_feature(
      {{"nvidia.com/gpu.count", "8"}},
      {.node = "node-1",
       .name_space = "gpu",
       .owners = {{"apps/v1", "DaemonSet", "gantry", "u-1", true}, {"v1", "Pod", "p", "u-2"}}});
  const auto document = json::Document::parse(text);
  ASSERT_TRUE(document.ok()) << document.error().text();
  EXPECT_EQ((*document)["apiVersion"].string(), "nfd.k8s-sigs.io/v1alpha1");
  EXPECT_EQ((*document)["kind"].string(), "NodeFeature");
  const auto metadata = (*document)["metadata"];
  EXPECT_EQ(metadata["name"].string(), "nvidia-features-for-node-1");
  EXPECT_EQ(metadata["namespace"].string(), "gpu");
  EXPECT_EQ(metadata["labels"]["nfd.node.kubernetes.io/node-name"].string(), "node-1");
  EXPECT_EQ(metadata["ownerReferences"].element(0)["controller"].boolean(), true);
  EXPECT_FALSE(metadata["ownerReferences"].element(1)["controller"]);
  EXPECT_EQ((*document)["spec"]["labels"]["nvidia.com/gpu.count"].string(), "8");
  EXPECT_TRUE((*document)["spec"]["features"]["flags"].is(json::Kind::Object));
}

}  // namespace
}  // namespace gantry::labels
