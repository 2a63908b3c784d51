// SPDX-License-Identifier: Apache-2.0
// Probes every simulated machine: the result must match its YAML.
#include "gpu/model/inventory_json.hpp"
#include "gpu/probe/nvml_names.hpp"
#include "gpu/probe/snapshot.hpp"
#include "sim/machine/machine.hpp"
#include "sim/machine/topology.hpp"
#include "support/machine.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace gantry::probe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<std::string> all_machines() {
  std::vector<std::string> names;
  for (const auto& entry : sim::machine_catalog()) names.push_back(entry.name);
  return names;
}

// The GPUs that the nvidia driver has, in PCI order.
std::vector<sim::Gpu> driven(const sim::Machine& machine) {
  std::vector<sim::Gpu> gpus;
  if (machine.driver.module_version.empty()) return gpus;
  for (const auto& gpu : machine.gpus) {
    if (gpu.pci.driver == "nvidia" && !gpu.excluded) gpus.push_back(gpu);
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const auto& a, const auto& b) { return a.pci.address < b.pci.address; });
  return gpus;
}

void expect_gpus(const model::Inventory& inventory, const std::vector<sim::Gpu>& expected) {
  ASSERT_EQ(inventory.gpus.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& gpu = inventory.gpus[i];
    EXPECT_EQ(gpu.pci, expected[i].pci.address);
    EXPECT_EQ(gpu.uuid.text, expected[i].uuid);
    EXPECT_EQ(gpu.name, expected[i].name);
    EXPECT_EQ(gpu.minor, expected[i].minor);
    const auto node = expected[i].pci.numa_node;
    EXPECT_EQ(gpu.numa_node, node < 0 ? std::nullopt : std::optional<int>(node));
  }
}

void expect_paths(const model::Inventory& inventory, const sim::Machine& described,
                  const std::vector<sim::Gpu>& expected) {
  ASSERT_EQ(inventory.links.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t j = 0; j < expected.size(); ++j) {
      if (i == j) continue;
      const auto level = sim::topology_level(described, expected[i].pci, expected[j].pci);
      // Between host bridges of unknown nodes, only NVML can tell.
      if (inventory.links[i][j].pcie == model::PciePath::Unknown && level >= NVML_TOPOLOGY_NODE &&
          expected[i].pci.numa_node < 0) {
        continue;
      }
      EXPECT_EQ(inventory.links[i][j].pcie,
                to_pcie_path(static_cast<nvmlGpuTopologyLevel_t>(level)))
          << "GPU " << i << " and GPU " << j;
    }
  }
}

void expect_functions(const model::Inventory& inventory, const sim::Machine& described) {
  std::map<model::PciAddress, std::string> expected;
  for (const auto* function : sim::pci_functions(described)) {
    if (function->vendor == 0x10de) expected[function->address] = function->driver;
  }
  std::map<model::PciAddress, std::string> found;
  for (const auto& function : inventory.functions) found[function.address] = function.driver;
  EXPECT_EQ(found, expected);
}

class EveryMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMachine, IsReadFromTheKernelAsItWasDescribed) {
  const auto described = sim::load_machine(GetParam());
  ASSERT_TRUE(described.ok());
  const test::Machine machine(GetParam());
  const auto inventory = snapshot(machine.host(), {.nvml = NvmlUse::Skip, .files = FindFiles::No});
  ASSERT_TRUE(inventory.ok()) << inventory.error().text();
  EXPECT_EQ(inventory->driver.version, described->driver.module_version);
  const auto expected = driven(*described);
  expect_gpus(*inventory, expected);
  expect_paths(*inventory, *described, expected);
  expect_functions(*inventory, *described);
}

// Machines on which NVML and the kernel must disagree.
bool is_broken(const std::string& name) {
  for (const auto* broken : {"mismatch", "no-nodes", "fallen-off", "fabric-down", "nouveau",
                             "secure-boot", "wrong-group"}) {
    if (name == broken) return true;
  }
  return false;
}

class HealthyMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(HealthyMachine, IsTheSameThroughNvml) {
  if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  const auto described = sim::load_machine(GetParam());
  const test::Machine machine(GetParam());
  const auto inventory = snapshot(machine.host());
  ASSERT_TRUE(inventory.ok()) << inventory.error().text();
  EXPECT_EQ(inventory->driver.nvml_error, "");
  EXPECT_EQ(inventory->driver.library_version, described->driver.version);
  EXPECT_THAT(inventory->differences, IsEmpty()) << model::to_json(*inventory);
  const auto expected = driven(*described);
  expect_gpus(*inventory, expected);
  for (std::size_t i = 0; i < std::min(inventory->gpus.size(), expected.size()); ++i) {
    const auto& gpu = inventory->gpus[i];
    EXPECT_EQ(gpu.memory_bytes, std::uint64_t{expected[i].memory_total_mib} << 20U);
    EXPECT_EQ(gpu.brand, expected[i].brand);
    EXPECT_EQ(gpu.architecture, expected[i].architecture);
    EXPECT_EQ(gpu.persistence, expected[i].persistence);
    EXPECT_EQ(gpu.health.state, model::HealthState::Ok);
  }
}

std::vector<std::string> healthy_machines() {
  auto names = all_machines();
  names.erase(std::remove_if(names.begin(), names.end(), is_broken), names.end());
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& one) {
  auto name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine, ::testing::ValuesIn(all_machines()), test_name);
INSTANTIATE_TEST_SUITE_P(Machines, HealthyMachine, ::testing::ValuesIn(healthy_machines()),
                         test_name);

class NamedMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  }
  static model::Inventory look(std::string_view name) {
    const test::Machine machine(name);
    return *snapshot(machine.host());
  }
};

TEST_F(NamedMachine, WithMigHasInstancesWithTheirNodes) {
  const auto inventory = look("a100x8");
  ASSERT_THAT(inventory.gpus, SizeIs(8));
  EXPECT_THAT(inventory.gpus[0].mig.instances, SizeIs(7));
  const auto& instances = inventory.gpus[1].mig.instances;
  ASSERT_THAT(instances, SizeIs(4));
  std::vector<std::string> profiles;
  for (const auto& instance : instances) {
    profiles.push_back(instance.profile);
    EXPECT_TRUE(instance.uuid.text.starts_with("MIG-")) << instance.uuid.text;
    EXPECT_THAT(instance.gpu_instance_node, HasSubstr("/dev/nvidia-caps/nvidia-cap"));
    EXPECT_THAT(instance.compute_instance_node, HasSubstr("/dev/nvidia-caps/nvidia-cap"));
    EXPECT_GT(instance.memory_bytes, 0U);
    EXPECT_GT(instance.multiprocessors, 0);
    EXPECT_GT(instance.placement_size, 0);
  }
  EXPECT_THAT(profiles, UnorderedElementsAre("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"));
  EXPECT_EQ(inventory.gpus[2].mig.current, model::MigMode::Disabled);
}

TEST_F(NamedMachine, WithNvswitchCountsItsLinks) {
  const auto inventory = look("h200x8");
  for (std::size_t i = 1; i < 8; ++i) {
    EXPECT_EQ(inventory.links[0][i].nvlinks, 18);
    EXPECT_TRUE(inventory.links[0][i].nvswitch);
  }
}

TEST_F(NamedMachine, MismatchNamesBothVersions) {
  const auto inventory = look("mismatch");
  EXPECT_THAT(inventory.driver.nvml_error, HasSubstr("NVML_ERROR_LIB_RM_VERSION_MISMATCH"));
  EXPECT_THAT(inventory.gpus, SizeIs(1)) << "the kernel still knows it";
  EXPECT_THAT(inventory.differences,
              Contains(model::Discrepancy{"driver version: kernel module and libraries",
                                          "580.159.04", "580.95.05"}));
}

TEST_F(NamedMachine, FallenOffMarksOneGpuLost) {
  const auto inventory = look("fallen-off");
  ASSERT_THAT(inventory.gpus, SizeIs(8));
  for (std::size_t i = 0; i < 8; ++i) {
    const auto state = inventory.gpus[i].health.state;
    EXPECT_EQ(state, i == 3 ? model::HealthState::Lost : model::HealthState::Ok) << i;
  }
}

TEST_F(NamedMachine, FabricDownIsAReasonOnEveryGpu) {
  const auto inventory = look("fabric-down");
  ASSERT_THAT(inventory.gpus, SizeIs(8));
  for (const auto& gpu : inventory.gpus) {
    EXPECT_EQ(gpu.health.state, model::HealthState::Degraded);
    EXPECT_THAT(gpu.health.reasons, Contains(HasSubstr("fabricmanager")));
  }
}

TEST_F(NamedMachine, WithoutNodesStillShowsItsGpu) {
  const auto inventory = look("no-nodes");
  EXPECT_NE(inventory.driver.nvml_error, "");
  EXPECT_THAT(inventory.gpus, SizeIs(1));
  EXPECT_THAT(inventory.notes, Contains(HasSubstr("/dev/nvidia0")));
}

TEST_F(NamedMachine, HeldByNouveauIsListedAmongFunctions) {
  const auto inventory = look("nouveau");
  EXPECT_THAT(inventory.gpus, IsEmpty());
  EXPECT_EQ(inventory.driver.version, "");
  ASSERT_FALSE(inventory.functions.empty());
  EXPECT_EQ(inventory.functions[0].driver, "nouveau");
}

TEST_F(NamedMachine, GivenToAGuestIsListedAmongFunctions) {
  const auto inventory = look("vfio");
  EXPECT_THAT(inventory.gpus, SizeIs(1));
  const auto& passed = inventory.functions.at(0);
  EXPECT_EQ(passed.driver, "vfio-pci");
  EXPECT_EQ(passed.driver_override, "vfio-pci");
  EXPECT_EQ(passed.iommu_group, 23);
}

TEST_F(NamedMachine, WithUnknownNumaNodesSaysUnknown) {
  const auto inventory = look("numa");
  for (const auto& gpu : inventory.gpus) EXPECT_EQ(gpu.numa_node, std::nullopt);
}

}  // namespace
}  // namespace gantry::probe
