// SPDX-License-Identifier: Apache-2.0
// Every simulated machine, read back: what its YAML says is what the probe must find.
#include "probe/nvml_words.hpp"
#include "probe/snapshot.hpp"
#include "sim/machine.hpp"
#include "sim/topology.hpp"
#include "support/machine.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace gantry::probe {
namespace {

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
      // Beyond the host bridge only the NUMA nodes tell, and the kernel may not know them.
      const bool nobody_says =
          level >= 40 && (expected[i].pci.numa_node < 0 || expected[j].pci.numa_node < 0);
      EXPECT_EQ(inventory.links[i][j].pcie,
                nobody_says ? model::PciePath::Unknown
                            : path_of(static_cast<nvmlGpuTopologyLevel_t>(level)))
          << "GPU " << i << " and GPU " << j;
    }
  }
}

void expect_functions(const model::Inventory& inventory, const sim::Machine& described) {
  std::map<model::PciAddress, std::string> expected;
  for (const auto* function : sim::functions_of(described)) {
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
  const auto inventory = snapshot(machine.host(), {.nvml = UseNvml::Skip, .files = FindFiles::No});
  ASSERT_TRUE(inventory.ok()) << inventory.error().text();
  EXPECT_EQ(inventory->driver.version, described->driver.module_version);
  const auto expected = driven(*described);
  expect_gpus(*inventory, expected);
  expect_paths(*inventory, *described, expected);
  expect_functions(*inventory, *described);
}

INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine, ::testing::ValuesIn(all_machines()),
                         [](const auto& one) {
                           auto name = one.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace gantry::probe
