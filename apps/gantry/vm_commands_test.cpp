// SPDX-License-Identifier: Apache-2.0
// gantry vm config and gantry vm check on simulated machines.
#include "base/core/bytes.hpp"
#include "gantry/vm_gpus.hpp"
#include "gpu/probe/snapshot.hpp"
#include "support/machine.hpp"
#include "support/parsed_json.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using hypervisor::Attachment;
using test::Machine;
using test::run_cli;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kUuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";

std::vector<hypervisor::GuestGpu> gpus_of(const Machine& machine) {
  const auto host = machine.host();
  const auto inventory =
      probe::snapshot(host, {.nvml = probe::NvmlUse::Skip, .files = probe::FindFiles::No});
  EXPECT_TRUE(inventory.ok());
  return inventory.ok() ? read_guest_gpus(host, *inventory) : std::vector<hypervisor::GuestGpu>{};
}

TEST(GuestGpus, HaveTheBarsOfSysfs) {
  const Machine machine("h200");
  const auto gpus = gpus_of(machine);
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_THAT(gpus[0].bars, ElementsAre(hypervisor::MemoryBar{0, 16 * kMiB, true},
                                        hypervisor::MemoryBar{2, 256 * kGiB, true},
                                        hypervisor::MemoryBar{4, 32 * kMiB, true}));
  EXPECT_EQ(gpus[0].numa_node, std::nullopt);
  EXPECT_EQ(gpus[0].attachment, Attachment::Passthrough);
}

TEST(GuestGpus, IncludeCardsOfVfio) {
  const Machine machine("vfio");
  const auto gpus = gpus_of(machine);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].address.sysfs(), "0000:04:00.0");
  EXPECT_EQ(gpus[0].driver, "vfio-pci");
  EXPECT_EQ(gpus[0].iommu_group, 23);
  EXPECT_EQ(gpus[0].name, "Tesla P100-PCIE-16GB");
}

// One virtual function with a vGPU and one without, and a mediated device on the card.
void add_vgpus(Machine& machine) {
  const std::string card = "/sys/devices/pci0000:80/0000:80:02.0/0000:84:00.0";
  for (const int number : {4, 5}) {
    const auto name = fmt::format("0000:84:00.{}", number);
    const auto directory = "/sys/devices/pci0000:80/0000:80:02.0/" + name;
    machine.file(directory + "/vendor", "0x10de\n");
    machine.file(directory + "/device", "0x15f8\n");
    machine.file(directory + "/class", "0x030200\n");
    machine.file(directory + "/numa_node", "1\n");
    machine.file(directory + "/resource",
                 "0x0000000000000000 0x0000000000ffffff 0x0000000000140204\n");
    machine.file(directory + "/nvidia/current_vgpu_type", number == 4 ? "1104\n" : "0\n");
    machine.link(directory + "/physfn", "../0000:84:00.0");
    machine.link("/sys/bus/pci/devices/" + name, "../../.." + directory.substr(4));
  }
  const std::string uuid(kUuid);
  machine.file(card + "/" + uuid + "/remove", "");
  machine.file(card + "/mdev_supported_types/nvidia-592/name", "GRID P100-8C\n");
  machine.link(card + "/" + uuid + "/mdev_type", "../mdev_supported_types/nvidia-592");
  machine.link("/sys/bus/mdev/devices/" + uuid, "../../.." + (card + "/" + uuid).substr(4));
}

TEST(GuestGpus, IncludeVirtualFunctionsAndMediatedDevices) {
  Machine machine("vfio");
  add_vgpus(machine);
  const auto gpus = gpus_of(machine);
  ASSERT_EQ(gpus.size(), 5U);
  EXPECT_EQ(gpus[2].attachment, Attachment::VendorVfio);
  EXPECT_EQ(gpus[2].vgpu_type, "1104");
  EXPECT_EQ(gpus[4].attachment, Attachment::Mdev);
  EXPECT_EQ(gpus[4].mdev_uuid, kUuid);
  EXPECT_EQ(gpus[4].vgpu_type, "nvidia-592");
  EXPECT_EQ(gpus[1].companions.size(), 0U);  // virtual functions are not companions
}

TEST(VmConfig, WritesADomainThatItsOwnCheckAccepts) {
  const Machine machine("vfio");
  const auto config = run_cli({"gantry", "vm", "config", "--for", "libvirt", "--memory", "8GiB",
                               "0000:04:00.0", "--root", machine.root()});
  EXPECT_EQ(config.status, 0) << config.err;
  EXPECT_THAT(config.out, HasSubstr("<name>gpu-vm</name>"));
  EXPECT_THAT(config.out, HasSubstr("bus='0x04' slot='0x00' function='0x0'"));
  test::Tree tree;
  tree.file("guest.xml", config.out);
  const auto check =
      run_cli({"gantry", "vm", "check", tree.path("guest.xml"), "--root", machine.root()});
  EXPECT_EQ(check.status, 0) << check.out << check.err;
  EXPECT_THAT(check.out, HasSubstr("a libvirt domain with 1 whole GPU and 0 vGPUs\n"));
  EXPECT_THAT(check.out, HasSubstr("nothing is missing"));
}

TEST(VmConfig, TakesIndexUuidAndAddress) {
  const Machine machine("t4x4");
  const auto by_index =
      run_cli({"gantry", "vm", "config", "--for", "qemu", "1", "--root", machine.root()});
  ASSERT_EQ(by_index.status, 0) << by_index.err;
  const auto inventory = probe::snapshot(machine.host());
  ASSERT_TRUE(inventory.ok());
  const auto& gpu = inventory->gpus[1];
  for (const auto& name : {gpu.uuid.text, gpu.pci.sysfs()}) {
    const auto run =
        run_cli({"gantry", "vm", "config", "--for", "qemu", name, "--root", machine.root()});
    EXPECT_EQ(run.out, by_index.out) << name;
  }
  EXPECT_THAT(by_index.err, HasSubstr(fmt::format("gantry vfio bind --root {} {}", machine.root(),
                                                  gpu.pci.sysfs())));
}

TEST(VmConfig, WritesVgpus) {
  Machine machine("vfio");
  add_vgpus(machine);
  const auto vf = run_cli(
      {"gantry", "vm", "config", "--for", "libvirt", "0000:84:00.4", "--root", machine.root()});
  EXPECT_EQ(vf.status, 0) << vf.err;
  EXPECT_THAT(vf.out, HasSubstr("managed='no'"));
  const auto mdev = run_cli(
      {"gantry", "vm", "config", "--for", "qemu", std::string(kUuid), "--root", machine.root()});
  EXPECT_EQ(mdev.status, 0) << mdev.err;
  EXPECT_THAT(mdev.out, HasSubstr(fmt::format("sysfsdev=/sys/bus/mdev/devices/{}", kUuid)));
  const auto empty = run_cli(
      {"gantry", "vm", "config", "--for", "qemu", "0000:84:00.5", "--root", machine.root()});
  EXPECT_EQ(empty.status, 1);
  EXPECT_THAT(empty.err, HasSubstr("has no vGPU yet"));
}

TEST(VmConfig, NeedsNoMachineForACardOfAnotherOne) {
  const auto run = run_cli(
      {"gantry", "vm", "config", "--for", "esxi", "h200@0000:3b:00.0", "--root", "/nonexistent"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("pciPassthru0.id = \"00000:059:00.0\""));
  EXPECT_THAT(run.out, HasSubstr("pciPassthru.64bitMMIOSizeGB = \"512\""));
  const auto unknown = run_cli({"gantry", "vm", "config", "--for", "esxi", "h9000@0000:3b:00.0"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("known cards: h200"));
}

TEST(VmConfig, NamesTheGpusThatExist) {
  const Machine machine("vfio");
  const auto run =
      run_cli({"gantry", "vm", "config", "--for", "qemu", "7", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("the machine has: 0000:04:00.0, 0000:84:00.0"));
}

TEST(VmConfig, RefusesAnUnknownHypervisor) {
  const auto run = run_cli({"gantry", "vm", "config", "--for", "xen", "0"});
  EXPECT_EQ(run.status, 2);
}

TEST(VmConfig, JsonHasTextNotesAndSizes) {
  const Machine machine("h200x8");
  const auto run = run_cli(
      {"gantry", "vm", "config", "--for", "qemu", "0", "1", "--json", "--root", machine.root()});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto document = test::parsed(run.out);
  EXPECT_EQ(document["for"].string(), "qemu");
  EXPECT_THAT(document["text"].string_or_empty(), HasSubstr("exec qemu-system-x86_64"));
  EXPECT_EQ(document["gpus"].size(), 2U);
  EXPECT_EQ(document["mmio_window_bytes"].u64(), 1024 * kGiB);
}

TEST(VmCheck, SaysWhatIsMissingAndExitsWithOne) {
  test::Tree tree;
  tree.file("guest.vmx",
            "memSize = \"16384\"\npciPassthru0.present = \"TRUE\"\npciPassthru0.deviceId = "
            "\"0x2335\"\npciPassthru0.vendorId = \"0x10de\"\n");
  const auto run = run_cli({"gantry", "vm", "check", tree.path("guest.vmx")});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("add: chipset.motherboardLayout = \"acpi\"\n"));
  EXPECT_THAT(run.out, HasSubstr("add: pciPassthru.64bitMMIOSizeGB = \"512\"\n"));
  const auto json = run_cli({"gantry", "vm", "check", "--json", tree.path("guest.vmx")});
  EXPECT_EQ(test::parsed(json.out)["findings"].size(), 5U);
}

TEST(VmCheck, AFileCannotCommandTheTerminal) {
  test::Tree tree;
  tree.file("guest.vmx", "pciPassthru0.present = \"TRUE\"\npciPassthru0.vgpu = \"\033[2Jevil\"\n");
  const auto run = run_cli({"gantry", "vm", "check", tree.path("guest.vmx")});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, Not(HasSubstr("\033")));
}

TEST(VmCheck, SaysWhichFileCannotBeRead) {
  test::Tree tree;
  tree.file("guest.xml", "<domain>");
  const auto run = run_cli({"gantry", "vm", "check", tree.path("guest.xml")});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("guest.xml: not XML that can be read: line 1"));
  EXPECT_EQ(run_cli({"gantry", "vm", "check", tree.path("absent")}).status, 1);
}

}  // namespace
}  // namespace gantry::cli
