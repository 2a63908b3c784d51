// SPDX-License-Identifier: Apache-2.0
#include "gpu/model/inventory_json.hpp"

#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

namespace gantry::model {
namespace {

using ::testing::HasSubstr;

// The machine that docs/inventory-json.md shows.
Inventory documented() {
  Inventory inv;
  inv.generation = "5f0c2a4be1d93b77";
  inv.boot_id = "0b6f2f0e-8a55-4d0e-9c8a-3f3f0f1f2a11";
  inv.driver = {.version = "580.159.04",
                .library_version = "580.159.04",
                .cuda_version = "13.0",
                .flavour = ModuleFlavour::Open,
                .root = "/",
                .library_directory = "/usr/lib/x86_64-linux-gnu",
                .nvml_error = ""};
  Gpu gpu;
  gpu.uuid = {"GPU-f4a6d3c1-7f51-4a52-9d5e-1c7ad8a2f001"};
  gpu.name = "NVIDIA H200";
  gpu.pci = {.bus = 0, .device = 6};
  gpu.minor = 0;
  gpu.drm_nodes = {"/dev/dri/card0", "/dev/dri/by-path/pci-0000:00:06.0-card",
                   "/dev/dri/renderD128", "/dev/dri/by-path/pci-0000:00:06.0-render"};
  gpu.memory_bytes = 150754820096;
  gpu.cpu_list = "0-15";
  gpu.compute_capability = {{.major = 9, .minor = 0}};
  gpu.brand = "NVIDIA";
  gpu.architecture = "Hopper";
  gpu.persistence = true;
  gpu.pci_device_id = 0x233510de;
  gpu.pci_subsystem_id = 0x18bf10de;
  gpu.mig.current = MigMode::Enabled;
  gpu.mig.pending = MigMode::Enabled;
  gpu.mig.instances.push_back({.uuid = {"MIG-0d9f2f1b-5a0c-5c53-8d41-0a2f6d3c9b10"},
                               .gpu_instance = 9,
                               .profile = "1g.18gb",
                               .memory_bytes = 17448304640,
                               .multiprocessors = 16,
                               .placement_size = 1,
                               .gpu_slices = 1,
                               .compute_slices = 1,
                               .engines = {.copy = 1, .decoder = 1, .jpeg = 1},
                               .gpu_instance_node = "/dev/nvidia-caps/nvidia-cap84",
                               .compute_instance_node = "/dev/nvidia-caps/nvidia-cap85"});
  gpu.health.state = HealthState::Ok;
  gpu.telemetry.temperature_celsius = 31;
  gpu.processes.push_back({.pid = 4711, .memory_bytes = 536870912, .name = "python3"});
  inv.gpus.push_back(gpu);
  inv.links = {{Link{.pcie = PciePath::Self}}};
  inv.nodes.push_back({"/dev/nvidia0", 195, 0, 0666, 0, 0, "GPU 0"});
  inv.files.push_back({.path = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04",
                       .capabilities = {Capability::Compute},
                       .soname = "libcuda.so.1",
                       .links = {"libcuda.so", "libcuda.so.1"},
                       .size = 96485376,
                       .why = "in ld.so.cache"});
  inv.functions.push_back({.address = {.device = 6},
                           .vendor = 0x10de,
                           .device = 0x2335,
                           .class_code = 0x030200,
                           .driver = "nvidia",
                           .iommu_group = {},
                           .numa_node = {},
                           .driver_override = ""});
  inv.differences.push_back({"GPU 0000:00:06.0: minor", "0", "1"});
  inv.notes.emplace_back("GPU 0: serial number: not supported");
  return inv;
}

// Gives every member a random value, so that a key that is written but not read (or swapped) is
// noticed.
class RandomInventory {
 public:
  explicit RandomInventory(unsigned seed) : random_(seed) {}

  Inventory inventory() {
    Inventory inv;
    inv.generation = text();
    inv.boot_id = text();
    inv.driver = {text(), text(), text(), word<ModuleFlavour>(3), text(), text(), text()};
    inv.gpus = some<Gpu>([&] { return gpu(); });
    inv.links.resize(inv.gpus.size());
    for (auto& row : inv.links) {
      for (std::size_t i = 0; i < inv.gpus.size(); ++i) {
        row.push_back({word<PciePath>(8), number<int>(), flag()});
      }
    }
    inv.nodes = some<DeviceNode>([&] {
      return DeviceNode{text(), number(), number(), number(), number(), number(), text()};
    });
    inv.files = some<DriverFile>([&] { return file(); });
    inv.functions = some<PciFunction>([&] {
      return PciFunction{address(),
                         number<std::uint16_t>(),
                         number<std::uint16_t>(),
                         number(),
                         text(),
                         maybe<int>(),
                         maybe<int>(),
                         text()};
    });
    inv.differences = some<Discrepancy>([&] { return Discrepancy{text(), text(), text()}; });
    inv.notes = some<std::string>([&] { return text(); });
    return inv;
  }

 private:
  std::uint64_t raw() { return random_(); }
  bool flag() { return raw() % 2 == 0; }
  template <class T = std::uint32_t>
  T number() {
    return static_cast<T>(raw() >> (raw() % 48));
  }
  template <class T>
  std::optional<T> maybe() {
    return flag() ? std::optional<T>(number<T>()) : std::nullopt;
  }
  template <class E>
  E word(std::uint64_t count) {
    return static_cast<E>(raw() % count);
  }
  std::string text() {
    static const std::vector<std::string> pieces = {"",  "a",    "\"", "\\",  "\n",
                                                    "é", "/dev", "{[", "\x01"};
    std::string made;
    for (auto left = raw() % 5; left > 0; --left) made += pieces[raw() % pieces.size()];
    return made;
  }
  template <class T, class F>
  std::vector<T> some(F make) {
    std::vector<T> made;
    for (auto left = raw() % 4; left > 0; --left) made.push_back(make());
    return made;
  }
  PciAddress address() {
    return {number(), number<std::uint8_t>(), static_cast<std::uint8_t>(raw() % 32),
            static_cast<std::uint8_t>(raw() % 8)};
  }
  MigInstance instance() {
    return {
        {text()},      number<int>(),
        number<int>(), number<int>(),
        text(),        number<std::uint64_t>(),
        number<int>(), number<int>(),
        number<int>(), number<int>(),
        number<int>(), {number<int>(), number<int>(), number<int>(), number<int>(), number<int>()},
        text(),        text()};
  }
  DriverFile file() {
    return {text(),
            word<DriverFileKind>(6),
            some<Capability>([&] { return word<Capability>(7); }),
            text(),
            some<std::string>([&] { return text(); }),
            flag(),
            number<std::uint64_t>(),
            text()};
  }
  Gpu gpu() {
    Gpu g;
    g.index = number<int>();
    g.uuid = {text()};
    g.name = text();
    g.pci = address();
    g.minor = maybe<std::uint32_t>();
    g.drm_nodes = {text()};
    g.memory_bytes = maybe<std::uint64_t>();
    g.numa_node = maybe<int>();
    g.cpu_list = text();
    if (flag()) {
      g.compute_capability = {static_cast<int>(raw() % 100), static_cast<int>(raw() % 10)};
    }
    for (auto* field : {&g.brand, &g.architecture, &g.vbios, &g.gsp_firmware, &g.serial,
                        &g.compute_mode, &g.virtualization, &g.fabric_clique}) {
      *field = text();
    }
    if (flag()) g.persistence = flag();
    g.pci_device_id = number();
    g.pci_subsystem_id = number();
    g.mig = {word<MigMode>(4), word<MigMode>(4), some<MigInstance>([&] { return instance(); })};
    g.health = {word<HealthState>(4), some<std::string>([&] { return text(); })};
    g.telemetry = {maybe<std::uint64_t>(), maybe<std::uint64_t>(), maybe<int>(),
                   maybe<int>(),           maybe<int>(),           maybe<int>(),
                   maybe<std::uint64_t>(), maybe<std::uint64_t>()};
    g.processes = some<GpuProcess>([&] {
      return GpuProcess{number(), maybe<std::uint64_t>(), text(), flag() ? 'C' : 'G'};
    });
    return g;
  }
  std::mt19937_64 random_;
};

std::string documented_json() {
  return to_json(documented());
}

std::string with(std::string_view from, std::string_view to) {
  auto text = documented_json();
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(const std::string& text, std::string_view why) {
  const auto read = inventory_from_json(text);
  ASSERT_FALSE(read.ok()) << why;
  EXPECT_EQ(read.error().code(), Errc::Corrupt);
  EXPECT_THAT(read.error().text(), HasSubstr(std::string(why)));
}

TEST(InventoryJson, ComesBackAsItWas) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const auto inventory = RandomInventory(seed).inventory();
    for (const auto layout : {JsonLayout::Pretty, JsonLayout::Compact}) {
      const auto text = to_json(inventory, layout);
      const auto read = inventory_from_json(text);
      ASSERT_TRUE(read.ok()) << read.error().text();
      ASSERT_EQ(*read, inventory) << "seed " << seed << "\n" << text;
      ASSERT_EQ(to_json(*read, layout), text);
    }
  }
}

TEST(InventoryJson, IsWhatTheDocumentShows) {
  std::ifstream file(test::source_dir() + "/docs/inventory-json.md");
  std::stringstream page;
  page << file.rdbuf();
  const auto text = page.str();
  const std::string fence = "```json\n";
  const auto begin = text.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const auto from = begin + fence.size();
  EXPECT_EQ(text.substr(from, text.find("```\n", from) - from), documented_json());
}

TEST(InventoryJson, SaysNullForWhatIsNotKnown) {
  Inventory inventory;
  inventory.gpus.emplace_back();
  inventory.links = {{Link{.pcie = PciePath::Self}}};
  const auto text = to_json(inventory);
  for (const auto* key : {"uuid", "minor", "memory_bytes", "numa_node", "compute_capability",
                          "persistence", "brand", "temperature_celsius"}) {
    EXPECT_THAT(text, HasSubstr("\"" + std::string(key) + "\": null"));
  }
}

TEST(InventoryJson, ReplacesBytesThatAreNoText) {
  Inventory inventory;
  inventory.notes.emplace_back("bad \xff byte");
  const auto read = inventory_from_json(to_json(inventory));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->notes[0], "bad \xEF\xBF\xBD byte");
}

TEST(InventoryJson, NamesTheKeyThatIsWrong) {
  expect_refused(with("\"minor\": 0", "\"minor\": \"0\""),
                 "gpus[0].minor: expected a whole number");
  expect_refused(with("\"minor\": 0", "\"minor\": -1"), "gpus[0].minor");
  expect_refused(with("\"minor\": 0", "\"minor\": 0.5"), "gpus[0].minor");
  expect_refused(with("\"minor\": 0", "\"minor\": 4294967296"), "gpus[0].minor");
  expect_refused(with("\"minor\": 0,", ""), "gpus[0].minor: missing");
  expect_refused(with("\"gpu_instance\": 9", "\"gpu_instance\": []"),
                 "gpus[0].mig.instances[0].gpu_instance");
  expect_refused(with("\"enabled\"", "\"on\""), "gpus[0].mig.current: unknown value");
  expect_refused(with("\"0666\"", "\"0689\""), "nodes[0].mode: expected an octal mode");
  expect_refused(with("\"0x10de\"", "\"10de\""), "functions[0].vendor");
  expect_refused(with("\"0000:00:06.0\"", "\"six\""), "gpus[0].pci: expected a PCI address");
  expect_refused(with("\"9.0\"", "\"nine\""), "gpus[0].compute_capability");
  expect_refused(with("\"is_32bit\": false", "\"is_32bit\": 0"), "files[0].is_32bit");
  expect_refused(with("\"C\"", "\"CG\""), "gpus[0].processes[0].type");
}

TEST(InventoryJson, LeavesUnknownKeysAlone) {
  const auto read = inventory_from_json(with("\"schema\": 1,", "\"schema\": 1, \"colour\": {},"));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, documented());
}

TEST(InventoryJson, RefusesAnotherSchema) {
  expect_refused(with("\"schema\": 1", "\"schema\": 2"), "schema: 2 is not supported");
  expect_refused(with("\"schema\": 1", "\"schema\": \"1\""), "schema: expected a whole number");
  expect_refused("{}", "schema: missing");
  expect_refused("[]", "expected an object");
}

TEST(InventoryJson, RefusesALinkMatrixThatIsNotSquare) {
  auto inventory = documented();
  inventory.links[0].emplace_back();
  expect_refused(to_json(inventory), "links: expected 1 rows of 1");
}

TEST(InventoryJson, RefusesWhatIsNoJsonHugeOrDeep) {
  expect_refused("", "not JSON");
  expect_refused(documented_json().substr(0, 500), "not JSON");
  expect_refused(std::string(kInventoryJsonLimit + 1, ' '), "are not an inventory");
  expect_refused(std::string(100'000, '['), "nested too deep");
}

}  // namespace
}  // namespace gantry::model
