// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/check.hpp"

#include "vm/hypervisor/gpus_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace gantry::hypervisor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<std::string> ids(const CheckedFile& checked) {
  std::vector<std::string> found;
  for (const auto& finding : checked.findings) found.push_back(finding.id);
  return found;
}

CheckedFile check(std::string_view text, const std::vector<GuestGpu>& machine = {}) {
  const auto checked = check_config(text, machine);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().text());
  return checked.ok() ? *checked : CheckedFile{};
}

Finding finding_of(const CheckedFile& checked, std::string_view id) {
  const auto found = std::find_if(checked.findings.begin(), checked.findings.end(),
                                  [&](const Finding& finding) { return finding.id == id; });
  EXPECT_NE(found, checked.findings.end()) << id;
  return found == checked.findings.end() ? Finding{} : *found;
}

// A .vmx as the vSphere client leaves it after a GPU was added: the notes' own problem.
constexpr std::string_view kPlainVmx =
    "virtualHW.version = \"19\"\n"
    "memSize = \"65536\"\n"
    "pciPassthru0.present = \"TRUE\"\n"
    "pciPassthru0.id = \"00000:059:00.0\"\n"
    "pciPassthru0.deviceId = \"0x20b2\"\n"
    "pciPassthru0.vendorId = \"0x10de\"\n"
    "pciPassthru1.present = \"TRUE\"\n"
    "pciPassthru1.id = \"00000:134:00.0\"\n"
    "pciPassthru1.deviceId = \"0x20b2\"\n"
    "pciPassthru1.vendorId = \"0x10de\"\n";

TEST(CheckVmx, SaysEveryLineThatIsMissing) {
  const auto checked = check(kPlainVmx);
  EXPECT_EQ(checked.kind, FileKind::Vmx);
  EXPECT_EQ(checked.gpus, 2);
  EXPECT_THAT(ids(checked), UnorderedElementsAre("firmware", "numa", "use64bitmmio", "mmio-window",
                                                 "memory-reservation"));
  EXPECT_EQ(finding_of(checked, "mmio-window").add, "pciPassthru.64bitMMIOSizeGB = \"512\"");
  EXPECT_EQ(finding_of(checked, "use64bitmmio").add, "pciPassthru.use64bitMMIO = \"TRUE\"");
  EXPECT_EQ(finding_of(checked, "numa").add, "chipset.motherboardLayout = \"acpi\"");
  EXPECT_THAT(finding_of(checked, "numa").why, HasSubstr("negative value (-1)"));
  EXPECT_THAT(finding_of(checked, "memory-reservation").add, HasSubstr("\"65536\""));
}

constexpr std::string_view kCompleteVmx =
    "firmware = \"efi\"\nchipset.motherboardLayout = \"acpi\"\n"
    "virtualHW.version = \"20\"\nsched.mem.min = \"65536\"\n"
    "pciPassthru.use64bitMMIO = \"TRUE\"\n"
    "pciPassthru.64bitMMIOSizeGB = \"512\"\n"
    "pciPassthru0.numaNode = \"0\"\n";

TEST(CheckVmx, IsContentOnceTheLinesAreThere) {
  const auto checked =
      check(std::string(kPlainVmx) + std::string(kCompleteVmx) + "pciPassthru1.numaNode = \"1\"\n");
  EXPECT_THAT(ids(checked), ElementsAre());
}

TEST(CheckVmx, TheAcpiLayoutGoesWithANodeForEachCard) {
  const auto complete = std::string(kPlainVmx) + std::string(kCompleteVmx);
  const auto missing = finding_of(check(complete), "numa-node");
  EXPECT_EQ(missing.severity, Severity::Advice);
  EXPECT_EQ(missing.what, "pciPassthru1.numaNode is not set");
  EXPECT_THAT(missing.why, HasSubstr("Not verified on ESXi"));
  EXPECT_EQ(missing.add, "pciPassthru1.numaNode = \"0\"");
  const auto wrong = check(complete + "pciPassthru1.numaNode = \"near\"\n");
  EXPECT_EQ(finding_of(wrong, "numa-node").what, "pciPassthru1.numaNode is `near`");
  EXPECT_THAT(ids(check(kPlainVmx)), Not(Contains("numa-node"))) << "the layout comes first";
}

TEST(CheckVmx, AWindowThatIsTooSmallIsAProblemWithItsLine) {
  const auto checked = check(std::string(kPlainVmx) + "pciPassthru.64bitMMIOSizeGB = \"256\"\n");
  const auto finding = finding_of(checked, "mmio-window");
  EXPECT_EQ(finding.severity, Severity::Problem);
  EXPECT_EQ(finding.line, 11);
  EXPECT_THAT(finding.what, HasSubstr("is 256; these GPUs need 512"));
}

TEST(CheckVmx, FindsAFileThatMixesPassthroughAndVgpu) {
  const auto checked =
      check(std::string(kPlainVmx) +
            "pciPassthru2.present = \"TRUE\"\npciPassthru2.virtualDev = \"vmiop\"\n"
            "pciPassthru2.vgpu = \"grid_a100-10c\"\n");
  EXPECT_EQ(finding_of(checked, "mixed").severity, Severity::Problem);
  EXPECT_EQ(finding_of(checked, "mixed").line, 11);
  EXPECT_EQ(checked.gpus, 2);
  EXPECT_EQ(checked.vgpus, 1);
}

TEST(CheckVmx, TheAcpiLayoutNeedsEfi) {
  const auto checked =
      check(std::string(kPlainVmx) + "chipset.motherboardLayout = \"acpi\"\nfirmware = \"bios\"\n");
  EXPECT_THAT(finding_of(checked, "firmware").why,
              HasSubstr("ACPI motherboard layout requires EFI"));
  EXPECT_EQ(finding_of(checked, "hardware-version").line, 1);
}

TEST(CheckVmx, ASmallCardNeedsNoWindow) {
  std::string text(kPlainVmx);
  for (auto at = text.find("0x20b2"); at != std::string::npos; at = text.find("0x20b2")) {
    text.replace(at, 6, "0x1eb8");
  }
  const auto checked = check(text);
  EXPECT_THAT(ids(checked), UnorderedElementsAre("firmware", "numa", "memory-reservation"));
  EXPECT_EQ(finding_of(checked, "firmware").severity, Severity::Advice);
  EXPECT_EQ(finding_of(check(kPlainVmx), "firmware").severity, Severity::Problem);
}

TEST(CheckVmx, AComputeVgpuNeedsAWindow) {
  const std::string line = "pciPassthru0.present = \"TRUE\"\npciPassthru0.vgpu = ";
  EXPECT_EQ(finding_of(check(line + "\"grid_t4-8c\"\n"), "mmio-window").add,
            "pciPassthru.64bitMMIOSizeGB = \"64\"");
  EXPECT_THAT(ids(check(line + "\"grid_a100-1-5cme\"\n")), Not(Contains("vgpu-profile")));
}

TEST(CheckVmx, AnUnknownCardGetsTheRule) {
  const auto checked = check(
      "memSize = \"1024\"\npciPassthru0.present = \"TRUE\"\npciPassthru0.deviceId = \"0x9999\"\n"
      "pciPassthru0.vendorId = \"0x10de\"\n");
  EXPECT_THAT(finding_of(checked, "unknown-device").why, HasSubstr("rounded up to a power of two"));
}

TEST(CheckVmx, AFileWithoutAGpuSaysSo) {
  EXPECT_THAT(ids(check("memSize = \"1024\"\n")), ElementsAre("no-gpu"));
  // A network card is not a GPU.
  EXPECT_THAT(ids(check("pciPassthru0.present = \"TRUE\"\npciPassthru0.vendorId = \"0x8086\"\n")),
              ElementsAre("no-gpu"));
}

TEST(CheckVmx, AVgpuNeedsItsProfile) {
  const auto checked =
      check("pciPassthru0.present = \"TRUE\"\npciPassthru0.virtualDev = \"vmiop\"\n");
  EXPECT_THAT(finding_of(checked, "vgpu-profile").what, HasSubstr("pciPassthru0.vgpu is missing"));
}

constexpr std::string_view kPlainQemu =
    "qemu-system-x86_64 -machine pc -m 16G -device vfio-pci,host=0000:3b:00.0\n";

TEST(CheckQemu, SaysEveryOptionThatIsMissing) {
  const auto checked = check(kPlainQemu, {card_at("h200", "0000:3b:00.0", 0)});
  EXPECT_EQ(checked.kind, FileKind::Qemu);
  EXPECT_THAT(ids(checked), UnorderedElementsAre("machine", "firmware", "address-bits",
                                                 "mmio-window", "numa", "root-port"));
  EXPECT_EQ(finding_of(checked, "mmio-window").add,
            "-fw_cfg name=opt/ovmf/X-PciMmio64Mb,string=524288");
}

TEST(CheckQemu, ReadsLibvirtsJsonForm) {
  const auto checked = check(
      "qemu-system-x86_64 -machine pc-q35-7.2,pflash0=x -cpu host,host-phys-bits=on -m "
      "size=4194304k "
      "-device '{\"driver\":\"pxb-pcie\",\"id\":\"pci.1\",\"numa_node\":0,\"bus\":\"pcie.0\"}' "
      "-device '{\"driver\":\"pcie-root-port\",\"id\":\"pci.2\",\"bus\":\"pci.1\"}' "
      "-device '{\"driver\":\"vfio-pci\",\"host\":\"0000:3b:00.0\",\"bus\":\"pci.2\"}'",
      {card_at("t4", "0000:3b:00.0", 0)});
  EXPECT_THAT(ids(checked), ElementsAre());
  EXPECT_EQ(checked.gpus, 1);
}

TEST(CheckQemu, TheHostsProcessModelHasTheHostsAddressBits) {
  const std::string command = "qemu-system-x86_64 -device vfio-pci,host=3b:00.0 -cpu ";
  const auto found = [&](std::string_view cpu) {
    return ids(check(command + std::string(cpu), {card_at("h200", "0000:3b:00.0", 0)}));
  };
  EXPECT_THAT(found("host,migratable=off"), Not(Contains("address-bits")));
  EXPECT_THAT(found("max"), Not(Contains("address-bits")));
  EXPECT_THAT(found("host,host-phys-bits=off"), Contains("address-bits"));
  EXPECT_THAT(found("EPYC"), Contains("address-bits"));
}

TEST(CheckQemu, ALockLimitBelowTheMemoryIsAProblem) {
  const auto checked =
      check("ulimit -l 65536\n" + std::string(kPlainQemu), {card_at("t4", "0000:3b:00.0", 0)});
  EXPECT_EQ(finding_of(checked, "locked-memory").add, "ulimit -l 17825792");
}

TEST(CheckQemu, FindsAMixAndAVgpuWithoutUuid) {
  const auto mdev = mdev_at("0000:86:00.0", "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001");
  const auto checked = check(
      "qemu-system-x86_64 -machine q35 -device vfio-pci,host=3b:00.0 -device "
      "vfio-pci,sysfsdev=/sys/bus/mdev/devices/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
      {card_at("t4", "0000:3b:00.0", 0), mdev});
  EXPECT_EQ(checked.gpus, 1);
  EXPECT_EQ(checked.vgpus, 1);
  finding_of(checked, "mixed");
  finding_of(checked, "uuid");
}

TEST(CheckQemu, ACardOfADriverOfTheHostCannotBeOpened) {
  auto gpu = with_audio(card_at("t4", "0000:3b:00.0", 0));
  gpu.driver = "nvidia";
  const auto checked = check(kPlainQemu, {gpu});
  EXPECT_EQ(finding_of(checked, "driver").add, "gantry vfio bind 0000:3b:00.0");
  EXPECT_THAT(finding_of(checked, "companion").what, HasSubstr("0000:3b:00.1"));
}

TEST(CheckQemu, AFileOfAnotherMachineIsSaidToBeUnknown) {
  const auto checked = check(kPlainQemu);
  EXPECT_EQ(checked.unknown, 1);
  EXPECT_EQ(finding_of(checked, "unknown-device").severity, Severity::Advice);
}

std::string domain_with(std::string_view hostdev, std::string_view more = "") {
  return fmt::format(
      "<domain type='kvm'>\n<name>a</name>\n<memory unit='GiB'>16</memory>\n{}\n"
      "<os firmware='efi'><type machine='pc-q35-7.2'>hvm</type></os>\n<devices>\n{}\n</devices>\n"
      "</domain>",
      more, hostdev);
}

std::string pci_hostdev_of(std::string_view managed, int bus) {
  return fmt::format(
      "<hostdev mode='subsystem' type='pci' managed='{}'><source><address domain='0x0000' "
      "bus='0x{:02x}' slot='0x00' function='0x0'/></source></hostdev>",
      managed, bus);
}

TEST(CheckDomain, SaysWhatALargeCardNeeds) {
  const auto checked =
      check(domain_with(pci_hostdev_of("yes", 0x3b)), {card_at("h200", "0000:3b:00.0", 0)});
  EXPECT_EQ(checked.kind, FileKind::Libvirt);
  EXPECT_THAT(ids(checked), UnorderedElementsAre("address-bits", "mmio-window", "numa"));
  EXPECT_THAT(finding_of(checked, "mmio-window").add, HasSubstr("string=524288"));
  EXPECT_EQ(finding_of(checked, "numa").line, 7);
}

TEST(CheckDomain, AVendorVfioFunctionMustNotBeManaged) {
  auto vf = vendor_vf_at("0000:3b:00.0");
  const auto checked = check(domain_with(pci_hostdev_of("yes", 0x3b)), {vf});
  EXPECT_EQ(finding_of(checked, "managed").severity, Severity::Problem);
  EXPECT_EQ(checked.vgpus, 1);
}

TEST(CheckDomain, TheHostsProcessModelHasTheHostsAddressBits) {
  const auto domain =
      check(domain_with(pci_hostdev_of("yes", 0x3b), "<cpu mode='host-passthrough' check='none'/>"),
            {card_at("h200", "0000:3b:00.0", 0)});
  EXPECT_THAT(ids(domain), Not(Contains("address-bits")));
}

TEST(CheckDomain, AVendorVfioFunctionNeedsAVgpu) {
  auto vf = vendor_vf_at("0000:3b:00.0");
  const auto text = domain_with(pci_hostdev_of("no", 0x3b));
  EXPECT_THAT(ids(check(text, {vf})), Not(Contains("no-such-vgpu")));
  vf.vgpu_type = "0";
  EXPECT_THAT(finding_of(check(text, {vf}), "no-such-vgpu").what, HasSubstr("has no vGPU"));
}

TEST(CheckDomain, AHardLimitBelowTheMemoryIsAProblem) {
  const auto checked =
      check(domain_with(pci_hostdev_of("yes", 0x3b),
                        "<memtune><hard_limit unit='GiB'>8</hard_limit></memtune>"),
            {card_at("t4", "0000:3b:00.0", 0)});
  EXPECT_THAT(finding_of(checked, "locked-memory").what, HasSubstr("the guest has 16"));
}

TEST(CheckDomain, FindsAMixAndAMissingMediatedDevice) {
  const auto checked =
      check(domain_with(pci_hostdev_of("yes", 0x3b) +
                        "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address "
                        "uuid='83b8f4f2-509f-382f-3c1e-e6bfe0fa1001'/></source></hostdev>"),
            {card_at("t4", "0000:3b:00.0", 0)});
  finding_of(checked, "mixed");
  finding_of(checked, "no-such-vgpu");
}

TEST(CheckConfig, KnowsTheCommandOfProxmox) {
  EXPECT_EQ(file_kind("/usr/bin/kvm -id 100 -m 4096\n"), FileKind::Qemu);
  EXPECT_EQ(file_kind(std::string_view("/usr/bin/kvm\0-m\0", 16)), FileKind::Qemu);
}

TEST(CheckConfig, RefusesAFileOfAnotherKind) {
  EXPECT_EQ(check_config("hello world\n", {}).error().code(), Errc::Invalid);
  EXPECT_EQ(check_config("", {}).error().code(), Errc::Invalid);
  EXPECT_THAT(check_config("<network/>", {}).error().text(), HasSubstr("is not a libvirt domain"));
}

}  // namespace
}  // namespace gantry::hypervisor
