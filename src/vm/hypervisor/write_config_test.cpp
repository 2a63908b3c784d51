// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/write_config.hpp"

#include "support/paths.hpp"
#include "vm/hypervisor/check.hpp"
#include "vm/hypervisor/gpus_for_test.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gantry::hypervisor {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kMdev = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";

VmSpec vm_with(std::vector<GuestGpu> gpus) {
  VmSpec vm;
  vm.name = "guest";
  vm.gpus = std::move(gpus);
  return vm;
}

std::string text_for(Hypervisor hypervisor, const VmSpec& vm) {
  const auto config = write_config(hypervisor, vm);
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().text());
  return config.ok() ? config->text : "";
}

// GANTRY_GOLDEN=write refreshes the files.
void expect_golden(const std::string& name, const std::string& text) {
  const auto path = test::source_dir() + "/tests/golden/vm/" + name;
  const char* mode = std::getenv("GANTRY_GOLDEN");
  if (mode != nullptr && std::string_view(mode) == "write") {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path << "; GANTRY_GOLDEN=write refreshes it";
}

VmSpec one_h200() {
  return vm_with({card_at("h200", "0000:3b:00.0", 0)});
}

VmSpec two_nodes() {
  auto vm = vm_with({card_at("a100-80", "0000:3b:00.0", 0), card_at("a100-80", "0000:86:00.0", 1)});
  vm.huge_pages = HugePages::Size1G;
  vm.memory_bytes = 64 * kGiB;
  vm.cpus = 16;
  return vm;
}

VmSpec small_with_audio() {
  return vm_with({with_audio(card_at("t4", "0000:3b:00.0", 0))});
}

TEST(WriteConfig, QemuMatchesTheGoldenFiles) {
  expect_golden("h200.qemu", text_for(Hypervisor::Qemu, one_h200()));
  expect_golden("a100-80-two-nodes.qemu", text_for(Hypervisor::Qemu, two_nodes()));
  expect_golden("t4-audio.qemu", text_for(Hypervisor::Qemu, small_with_audio()));
  expect_golden("vendor-vfio.qemu",
                text_for(Hypervisor::Qemu, vm_with({vendor_vf_at("0000:3b:00.4")})));
  expect_golden("l40s.qemu",
                text_for(Hypervisor::Qemu, vm_with({card_at("l40s", "0000:3b:00.0", 0)})));
}

TEST(WriteConfig, LibvirtMatchesTheGoldenFiles) {
  expect_golden("h200.xml", text_for(Hypervisor::Libvirt, one_h200()));
  expect_golden("a100-80-two-nodes.xml", text_for(Hypervisor::Libvirt, two_nodes()));
  expect_golden("t4-audio.xml", text_for(Hypervisor::Libvirt, small_with_audio()));
  expect_golden("mdev.xml",
                text_for(Hypervisor::Libvirt, vm_with({mdev_at("0000:3b:00.0", kMdev)})));
  expect_golden("vendor-vfio.xml",
                text_for(Hypervisor::Libvirt, vm_with({vendor_vf_at("0000:3b:00.4")})));
}

TEST(WriteConfig, EsxiMatchesTheGoldenFiles) {
  expect_golden("h200.vmx", text_for(Hypervisor::Esxi, one_h200()));
  expect_golden("a100-80-two.vmx", text_for(Hypervisor::Esxi, two_nodes()));
  expect_golden("t4.vmx", text_for(Hypervisor::Esxi, vm_with({card_at("t4", "0000:3b:00.0", 0)})));
  auto vgpu = vm_with({});
  vgpu.vgpu_profile = "grid_a100-40c";
  expect_golden("vgpu-a100-40c.vmx", text_for(Hypervisor::Esxi, vgpu));
}

TEST(WriteConfig, TheOtherHypervisorsMatchTheGoldenFiles) {
  expect_golden("h200.cloud-hypervisor", text_for(Hypervisor::CloudHypervisor, one_h200()));
  expect_golden("a100-80-two-nodes.cloud-hypervisor",
                text_for(Hypervisor::CloudHypervisor, two_nodes()));
  expect_golden("h200.proxmox", text_for(Hypervisor::Proxmox, one_h200()));
  expect_golden("t4-audio.proxmox", text_for(Hypervisor::Proxmox, small_with_audio()));
  expect_golden("h200.openstack", text_for(Hypervisor::OpenStack, one_h200()));
  expect_golden("vendor-vfio.openstack",
                text_for(Hypervisor::OpenStack, vm_with({vendor_vf_at("0000:3b:00.4")})));
}

// What we write passes our own check: the writer and the reader agree about every line.
TEST(WriteConfig, TheCheckFindsNothingMissing) {
  for (const auto& vm :
       {one_h200(), two_nodes(), small_with_audio(), vm_with({mdev_at("0000:3b:00.0", kMdev)}),
        vm_with({vendor_vf_at("0000:3b:00.4")})}) {
    for (const auto hypervisor : {Hypervisor::Qemu, Hypervisor::Libvirt}) {
      const auto text = text_for(hypervisor, vm);
      const auto checked = check_config(text, vm.gpus);
      ASSERT_TRUE(checked.ok()) << checked.error().text() << "\n" << text;
      EXPECT_EQ(checked->unknown, 0);
      EXPECT_EQ(checked->gpus + checked->vgpus, static_cast<int>(vm.gpus.size()));
      for (const auto& finding : checked->findings) ADD_FAILURE() << finding.what << "\n" << text;
    }
  }
}

TEST(WriteConfig, TheCheckFindsNothingMissingInAVmx) {
  auto vgpu = vm_with({});
  vgpu.vgpu_profile = "grid_a100-40c";
  auto one_node = two_nodes();
  one_node.gpus[1].numa_node = 0;
  for (const auto& vm : {one_h200(), one_node, vgpu}) {
    const auto text = text_for(Hypervisor::Esxi, vm);
    const auto checked = check_config(text, {});
    ASSERT_TRUE(checked.ok()) << checked.error().text();
    for (const auto& finding : checked->findings) ADD_FAILURE() << finding.what << "\n" << text;
  }
}

// Which nodes the virtual machine has is up to ESXi, so only the first one is sure.
TEST(WriteConfig, EsxiPutsItsGpusOnTheOnlyNode) {
  auto vm = small_with_audio();
  vm.gpus[0].numa_node.reset();
  const auto one = write_config(Hypervisor::Esxi, vm);
  ASSERT_TRUE(one.ok()) << one.error().text();
  EXPECT_THAT(one->text, HasSubstr("pciPassthru0.numaNode = \"0\""));
  EXPECT_THAT(one->text, HasSubstr("pciPassthru1.numaNode = \"0\""));
  EXPECT_THAT(one->notes, Contains(HasSubstr("not verified on ESXi: pciPassthruN.numaNode")));
  const auto two = write_config(Hypervisor::Esxi, two_nodes());
  ASSERT_TRUE(two.ok()) << two.error().text();
  EXPECT_THAT(two->text, Not(HasSubstr("numaNode")));
  EXPECT_THAT(two->notes, Contains(HasSubstr("the NUMA nodes 0, 1 of the host")));
  const auto checked = check_config(two->text, {});
  ASSERT_TRUE(checked.ok()) << checked.error().text();
  ASSERT_EQ(checked->findings.size(), 1U);
  EXPECT_EQ(checked->findings[0].id, "numa-node");
}

// NVIDIA's rule for the C series; the Q series of a small card needs no line.
TEST(WriteConfig, EsxiGivesAComputeVgpuItsWindow) {
  auto vm = vm_with({});
  vm.vgpu_profile = "GRID_T4-8C";
  const auto text = text_for(Hypervisor::Esxi, vm);
  EXPECT_THAT(text, HasSubstr("pciPassthru.use64bitMMIO = \"TRUE\""));
  EXPECT_THAT(text, HasSubstr("pciPassthru.64bitMMIOSizeGB = \"64\""));
  EXPECT_THAT(text, HasSubstr("pciPassthru0.vgpu = \"grid_t4-8c\""));
  vm.vgpu_profile = "grid_t4-8q";
  EXPECT_THAT(text_for(Hypervisor::Esxi, vm), Not(HasSubstr("MMIO")));
}

// What the lines themselves cannot say: the host's graphics mode and package, the guest's driver,
// the licence.
TEST(WriteConfig, EsxiSaysWhatElseAVgpuNeeds) {
  VmSpec vm;
  vm.vgpu_profile = "grid_t4-8q";
  const auto config = write_config(Hypervisor::Esxi, vm);
  ASSERT_TRUE(config.ok()) << config.error().text();
  const auto has_note = [&](std::string_view part) {
    EXPECT_THAT(config->notes, Contains(HasSubstr(std::string(part))));
  };
  has_note("Host Graphics set to Shared Direct");
  has_note("on the host: NVIDIA's vGPU manager for this ESXi release (a VIB)");
  has_note("in the guest: the driver of the same vGPU release as the manager, or of the branch");
  has_note("licence: profiles of series Q need NVIDIA RTX Virtual Workstation");
  has_note("are not documented for .vmx files");
  vm.vgpu_profile = "grid_a100-40c";
  const auto compute = write_config(Hypervisor::Esxi, vm);
  ASSERT_TRUE(compute.ok()) << compute.error().text();
  EXPECT_THAT(compute->notes, Contains(HasSubstr("licence: profiles of series C need NVIDIA AI")));
}

TEST(WriteConfig, ACardThatADriverHoldsIsManagedByLibvirt) {
  auto vm = one_h200();
  EXPECT_THAT(text_for(Hypervisor::Libvirt, vm), HasSubstr("managed='no'"));
  vm.gpus[0].driver = "nvidia";
  const auto config = write_config(Hypervisor::Libvirt, vm);
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->text, HasSubstr("managed='yes'"));
  EXPECT_THAT(config->notes, testing::Contains(HasSubstr("gantry vfio bind 0000:3b:00.0")));
}

TEST(WriteConfig, SaysWhichLibvirtStartsAVirtualFunctionOfNvidiasDriver) {
  const auto vgpu = write_config(Hypervisor::Libvirt, vm_with({vendor_vf_at("0000:3b:00.4")}));
  ASSERT_TRUE(vgpu.ok());
  EXPECT_THAT(vgpu->notes, testing::Contains(HasSubstr("libvirt 10.0 or later")));
  const auto card =
      write_config(Hypervisor::Libvirt, vm_with({card_at("h200", "0000:86:00.0", 1)}));
  ASSERT_TRUE(card.ok());
  EXPECT_THAT(card->notes, testing::Each(testing::Not(HasSubstr("libvirt 10.0"))));
}

TEST(WriteConfig, RefusesWholeGpusAndVgpusTogether) {
  const auto config =
      write_config(Hypervisor::Qemu,
                   vm_with({card_at("h200", "0000:86:00.0", 1), vendor_vf_at("0000:3b:00.4")}));
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code(), Errc::Invalid);
  EXPECT_THAT(config.error().text(), HasSubstr("cannot be mixed"));
}

TEST(WriteConfig, RefusesAVirtualFunctionWithoutAVgpu) {
  auto vm = vm_with({vendor_vf_at("0000:3b:00.4")});
  vm.gpus[0].vgpu_type = "0";
  const auto config = write_config(Hypervisor::Libvirt, vm);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().text(), HasSubstr("gantry vgpu create"));
}

TEST(WriteConfig, RefusesWhatMakesNoSense) {
  auto vm = one_h200();
  vm.name = "a b; rm -rf /";
  EXPECT_THAT(write_config(Hypervisor::Qemu, vm).error().text(), HasSubstr("cannot be the name"));
  vm = one_h200();
  vm.gpus.push_back(vm.gpus[0]);
  EXPECT_THAT(write_config(Hypervisor::Qemu, vm).error().text(), HasSubstr("named twice"));
  vm = one_h200();
  vm.memory_bytes = 3 * kGiB + kMiB;
  vm.huge_pages = HugePages::Size1G;
  EXPECT_THAT(write_config(Hypervisor::Qemu, vm).error().text(), HasSubstr("multiple of"));
  EXPECT_THAT(write_config(Hypervisor::Qemu, vm_with({})).error().text(), HasSubstr("no GPU"));
  vm = one_h200();
  vm.vgpu_profile = "grid_t4-8q";
  EXPECT_THAT(write_config(Hypervisor::Libvirt, vm).error().text(),
              HasSubstr("--vgpu is for esxi"));
  vm.vgpu_profile = "t4";
  EXPECT_THAT(write_config(Hypervisor::Esxi, vm).error().text(),
              HasSubstr("is not a vGPU profile"));
  vm.vgpu_profile = "grid_t4-8q";
  EXPECT_THAT(write_config(Hypervisor::Esxi, vm).error().text(), HasSubstr("not both"));
  vm.gpus.clear();
  vm.vgpu_profile = "T4-8Q";
  EXPECT_THAT(write_config(Hypervisor::Esxi, vm).error().text(), HasSubstr("--vgpu grid_t4-8q"));
  vm = two_nodes();
  vm.cpus = 1;
  EXPECT_THAT(write_config(Hypervisor::Qemu, vm).error().text(), HasSubstr("--cpus 2"));
}

TEST(WriteConfig, AnUnknownNodeDoesNotBindMemory) {
  auto vm = one_h200();
  vm.gpus[0].numa_node.reset();
  const auto text = text_for(Hypervisor::Qemu, vm);
  EXPECT_THAT(text, HasSubstr("pxb-pcie,id=gpubus0,bus=pcie.0,bus_nr=32,numa_node=0"));
  EXPECT_THAT(text, Not(HasSubstr("policy=bind")));
}

TEST(WriteConfig, TheUuidDependsOnNameAndGpusOnly) {
  const auto vm = one_h200();
  EXPECT_EQ(vm_uuid(vm), vm_uuid(one_h200()));
  auto other = vm;
  other.name = "other";
  EXPECT_NE(vm_uuid(vm), vm_uuid(other));
  EXPECT_NE(vm_uuid(vm), vm_uuid(two_nodes()));
  EXPECT_EQ(vm_uuid(vm).size(), 36U);
  other.uuid = "C1F7E0A8-7F5B-4A3E-9B7C-1D2E3F405162";
  EXPECT_EQ(vm_uuid(other), "c1f7e0a8-7f5b-4a3e-9b7c-1d2e3f405162");
}

TEST(WriteConfig, IommufdReplacesGroups) {
  auto vm = one_h200();
  vm.iommufd = true;
  const auto text = text_for(Hypervisor::Qemu, vm);
  EXPECT_THAT(text, HasSubstr("-object iommufd,id=iommufd0"));
  EXPECT_THAT(text, HasSubstr("iommufd=iommufd0"));
  EXPECT_EQ(write_config(Hypervisor::Proxmox, vm).error().code(), Errc::Unsupported);
}

TEST(GuestNodes, MemoryAndProcessorsAreSharedOutCompletely) {
  auto vm = two_nodes();
  vm.memory_bytes = 65 * kGiB;
  vm.cpus = 17;
  const auto nodes = guest_nodes(vm);
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].memory_bytes, 33 * kGiB);
  EXPECT_EQ((*nodes)[1].memory_bytes, 32 * kGiB);
  EXPECT_EQ((*nodes)[0].cpus(), "0-7");
  EXPECT_EQ((*nodes)[1].cpus(), "8-16");
}

TEST(GuestNodes, AGpuWithAnUnknownNodeJoinsTheOnlyKnownOne) {
  auto vm = vm_with({card_at("t4", "0000:3b:00.0", 1), card_at("t4", "0000:3c:00.0", 1)});
  vm.gpus[1].numa_node.reset();
  const auto nodes = guest_nodes(vm);
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_THAT((*nodes)[0].gpus, testing::ElementsAre(0U, 1U));
  EXPECT_EQ((*nodes)[0].host_node, 1);
}

}  // namespace
}  // namespace gantry::hypervisor
