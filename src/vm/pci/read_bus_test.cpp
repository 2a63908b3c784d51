// SPDX-License-Identifier: Apache-2.0
#include "vm/pci/read_bus.hpp"

#include "support/machine.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace gantry::pci {
namespace {

using model::PciAddress;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PciAddress at(std::string_view text) {
  return *PciAddress::parse(text);
}

// A GPU as a kernel with SR-IOV, device links and iommufd shows it.
void write_gpu(test::Tree& tree) {
  const std::string d = "sys/bus/pci/devices/0000:3b:00.0/";
  tree.file(d + "vendor", "0x10de\n").file(d + "device", "0x2236\n");
  tree.file(d + "subsystem_vendor", "0x10de\n").file(d + "subsystem_device", "0x1482\n");
  tree.file(d + "class", "0x030200\n").file(d + "revision", "0xa1\n");
  tree.file(d + "modalias", "pci:v000010DEd00002236sv000010DEsd00001482bc03sc02i00\n");
  tree.link(d + "driver", "../../../bus/pci/drivers/nvidia");
  tree.link(d + "iommu_group", "../../../kernel/iommu_groups/12");
  tree.file(d + "driver_override", "(null)\n").file(d + "numa_node", "-1\n");
  tree.file(d + "reset", "").file(d + "reset_method", "flr bus\n");
  tree.file(d + "resource",
            "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n"
            "0x0000038000000000 0x00000387ffffffff 0x000000000014220c\n"
            "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
  tree.file(d + "consumer:pci:0000:3b:00.1/status", "active\n");
  tree.file(d + "sriov_totalvfs", "32\n").file(d + "sriov_numvfs", "2\n");
  tree.file(d + "sriov_vf_device", "2238\n").file(d + "sriov_drivers_autoprobe", "1\n");
  tree.link(d + "virtfn0", "../0000:3b:00.4").link(d + "virtfn1", "../0000:3b:00.5");
  tree.file(d + "drm/card1/dev", "226:1\n").file(d + "vfio-dev/vfio7/dev", "511:7\n");
  tree.file("sys/kernel/iommu_groups/12/type", "DMA-FQ\n");
  tree.link("sys/kernel/iommu_groups/12/devices/0000:3b:00.0", "../../../../x");
}

TEST(ReadBus, ReadsAGpuWithAllItsFiles) {
  test::Tree tree;
  write_gpu(tree);
  const auto bus = read_bus(tree.host());
  ASSERT_TRUE(bus.ok()) << bus.error().text();
  ASSERT_EQ(bus->functions.size(), 1U);
  const auto& gpu = bus->functions[0];
  EXPECT_TRUE(gpu.is_gpu());
  EXPECT_EQ(to_string(gpu.id), "10de:2236 subsystem 10de:1482 revision a1");
  EXPECT_EQ(gpu.driver, "nvidia");
  EXPECT_EQ(gpu.driver_override, "");
  EXPECT_TRUE(gpu.has_driver_override);
  EXPECT_EQ(gpu.iommu_group, 12);
  EXPECT_EQ(gpu.numa_node, std::nullopt);
  EXPECT_THAT(gpu.consumers, ElementsAre(at("0000:3b:00.1")));
  EXPECT_THAT(gpu.reset_methods, ElementsAre("flr", "bus"));
  EXPECT_EQ(gpu.bar_bytes(), (std::uint64_t{16} << 20) + (std::uint64_t{32} << 30));
  EXPECT_TRUE(gpu.bars[1].is_64bit());
  ASSERT_TRUE(gpu.sriov);
  EXPECT_EQ(gpu.sriov->vf_device, 0x2238);
  EXPECT_THAT(gpu.sriov->vfs, ElementsAre(at("0000:3b:00.4"), at("0000:3b:00.5")));
  EXPECT_THAT(gpu.drm_nodes, ElementsAre("card1"));
  EXPECT_EQ(gpu.vfio_device, "vfio7");
  ASSERT_NE(bus->group(12), nullptr);
  EXPECT_THAT(bus->group(12)->members, ElementsAre(gpu.address));
}

TEST(ReadBus, ReadsTheNodesOfASoundFunction) {
  test::Tree tree;
  const std::string d = "sys/bus/pci/devices/0000:3b:00.1/";
  tree.file(d + "vendor", "0x10de\n")
      .file(d + "device", "0x1aef\n")
      .file(d + "class", "0x040300\n");
  tree.file(d + "sound/card1/controlC1/dev", "116:7\n").file(d + "sound/card1/id", "NVidia\n");
  tree.file(d + "sound/card1/pcmC1D3p/dev", "116:3\n");
  const auto bus = read_bus(tree.host());
  ASSERT_TRUE(bus.ok()) << bus.error().text();
  EXPECT_THAT(bus->functions.at(0).sound_nodes, ElementsAre("controlC1", "pcmC1D3p"));
}

TEST(ReadBus, ReadsTheSimulatedHost) {
  const test::Machine machine("vfio");
  const auto bus = read_bus(machine.host());
  ASSERT_TRUE(bus.ok()) << bus.error().text();
  const auto* gpu = bus->find(at("0000:04:00.0"));
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->driver, "vfio-pci");
  EXPECT_EQ(gpu->driver_override, "vfio-pci");
  EXPECT_EQ(gpu->iommu_group, 23);
  EXPECT_TRUE(gpu->answers);
}

TEST(ReadBus, AFunctionWithoutIdsIsANote) {
  test::Tree tree;
  tree.file("sys/bus/pci/devices/0000:01:00.0/vendor", "garbage");
  const auto bus = read_bus(tree.host());
  ASSERT_TRUE(bus.ok());
  EXPECT_THAT(bus->functions, IsEmpty());
  EXPECT_THAT(bus->notes, ElementsAre(HasSubstr("0000:01:00.0")));
}

TEST(ReadBus, WithoutSysfsItIsAnError) {
  const test::Tree tree;
  const auto bus = read_bus(tree.host());
  ASSERT_FALSE(bus.ok());
  EXPECT_EQ(bus.error().code(), Errc::NotFound);
  EXPECT_THAT(bus.error().text(), HasSubstr("finding PCI functions"));
}

// While an unbind waits in the kernel, readers of driver_override wait too. A pipe without a writer
// blocks its reader in the same way.
TEST(ReadBus, AFunctionWhoseLockTheKernelHoldsDoesNotBlockTheReader) {
  test::Tree tree;
  write_gpu(tree);
  const std::string file = "sys/bus/pci/devices/0000:3b:00.0/driver_override";
  tree.remove(file);
  ASSERT_EQ(::mkfifo(tree.path(file).c_str(), 0600), 0);
  const auto bus = read_bus(tree.host());
  ASSERT_TRUE(bus.ok());
  EXPECT_TRUE(bus->functions.at(0).locked);
  EXPECT_EQ(bus->functions.at(0).driver, "nvidia");
  const int writer = ::open(tree.path(file).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  ::close(writer);  // lets the reader go
}

TEST(ReadFunction, ACardThatWentAwayIsNotFound) {
  test::Tree tree;
  write_gpu(tree);
  EXPECT_TRUE(read_function(tree.host(), at("3b:00.0")).ok());
  tree.remove("sys/bus/pci/devices/0000:3b:00.0");
  const auto gone = read_function(tree.host(), at("3b:00.0"));
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code(), Errc::NotFound);
  EXPECT_THAT(gone.error().text(), HasSubstr("0000:3b:00.0 is not on the PCI bus"));
}

std::string with_capability(std::uint32_t header, std::string_view bytes) {
  std::string space(4096, '\0');
  for (unsigned i = 0; i < 4; ++i) space[0x100 + i] = static_cast<char>(header >> (8 * i) & 0xffU);
  space.replace(0x104, bytes.size(), bytes);
  return space;
}

TEST(FindSerial, ReadsTheCapability) {
  EXPECT_EQ(find_serial(with_capability(0x00010003, "\x08\x07\x06\x05\x04\x03\x02\x01")),
            "01-02-03-04-05-06-07-08");
}

TEST(FindSerial, EndsInALoopAndInShortOrDeadSpaces) {
  EXPECT_EQ(find_serial(with_capability(0x10010001, "")), "");  // points to itself
  EXPECT_EQ(find_serial(""), "");
  EXPECT_EQ(find_serial(std::string(256, '\0')), "");
  EXPECT_EQ(find_serial(std::string(4096, '\xff')), "");
}

TEST(SameCard, ASerialThatOneSideCannotReadDecidesNothing) {
  const CardId card{.vendor = 0x10de, .device = 0x2236, .serial = "01"};
  auto unknown = card;
  unknown.serial.clear();
  auto twin = card;
  twin.serial = "02";
  auto other = card;
  other.device = 0x2335;
  EXPECT_TRUE(same_card(card, unknown));
  EXPECT_FALSE(same_card(card, twin));
  EXPECT_FALSE(same_card(card, other));
}

}  // namespace
}  // namespace gantry::pci
