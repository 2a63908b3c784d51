// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

constexpr std::string_view kSecureBoot =
    "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr std::string_view kModule = "lib/modules/6.18.2/updates/dkms/nvidia.ko";

void secure_boot(TestMachine& p) {
  p.unloaded().tree.file(kSecureBoot, std::string("\x06\0\0\0\1", 5)).file(kModule, "unsigned");
}

}  // namespace

std::vector<Case> module_cases() {
  return {
      {"module.loaded", Ok, unchanged},
      {"module.loaded", Fail, [](TestMachine& p) { p.unloaded(); }},
      {"module.loaded", Skip, [](TestMachine& p) { p.unloaded().function().driver = "vfio-pci"; }},
      {"module.refcnt", Info, unchanged},
      {"module.refcnt", Ok, [](TestMachine& p) { p.tree.file("sys/module/nvidia/refcnt", "3\n"); }},
      {"module.mismatch", Ok, unchanged},
      {"module.mismatch", Fail,
       [](TestMachine& p) { p.inventory.driver.library_version = "580.95.05"; }},
      {"module.uvm", Ok, unchanged},
      {"module.uvm", Fail,
       [](TestMachine& p) { p.tree.file("proc/devices", "Character devices:\n195 nvidia\n"); }},
      {"module.flavour", Ok, unchanged},
      {"module.flavour", Fail, [](TestMachine& p) { p.gpu().architecture = "Pascal"; }},
      {"module.flavour", Fail,
       [](TestMachine& p) {
         p.gpu().architecture = "Blackwell";
         p.inventory.driver.flavour = model::ModuleFlavour::Proprietary;
       }},
      {"module.flavour", Fail,
       [](TestMachine& p) {
         p.gpu().architecture.clear();
         p.function().device = 0x0ffe;  // K2000 by its id alone
       }},
      {"module.firmware", Ok, unchanged},
      {"module.firmware", Warn, [](TestMachine& p) { p.tree.remove("usr/local/nvidia/firmware"); }},
      {"module.firmware", Fail,
       [](TestMachine& p) {
         p.tree.remove("usr/local/nvidia/firmware");
         p.gpu().gsp_firmware.clear();
       }},
      {"module.kernel", Ok, unchanged},
      {"module.kernel", Fail, [](TestMachine& p) { p.unloaded(); }},
      {"module.kernel", Ok, [](TestMachine& p) { p.unloaded().tree.file(kModule); }},
      {"module.next-kernel", Warn,
       [](TestMachine& p) { p.tree.file(kModule).file("lib/modules/6.19.1/modules.dep"); }},
      {"module.next-kernel", Ok,
       [](TestMachine& p) {
         p.tree.file(kModule)
             .file("lib/modules/6.9.1/modules.dep")
             .file("lib/modules/6.19.1/modules.dep")
             .file("lib/modules/6.19.1/kernel/nvidia-580/nvidia.ko.zst");
       }},
      {"module.headers", Warn, [](TestMachine& p) { p.tree.directory("var/lib/dkms/nvidia"); }},
      {"module.headers", Ok,
       [](TestMachine& p) {
         p.tree.directory("var/lib/dkms/nvidia").directory("lib/modules/6.18.2/build");
       }},
      {"module.secure-boot", Ok, unchanged},
      {"module.secure-boot", Fail, secure_boot},
      {"module.secure-boot", Fail,
       [](TestMachine& p) {
         secure_boot(p);
         p.log("nvidia: Loading of module with unavailable key is rejected");
       }},
      {"module.secure-boot", Ok,
       [](TestMachine& p) {
         secure_boot(p);
         p.tree.file(kModule, "code~Module signature appended~\n");
       }},
      {"module.blacklist", Ok, unchanged},
      {"module.blacklist", Fail,
       [](TestMachine& p) {
         p.unloaded().tree.file("etc/modprobe.d/x.conf", "blacklist nvidia\n");
       }},
      {"module.blacklist", Warn,
       [](TestMachine& p) {
         p.tree.file("etc/modprobe.d/x.conf", "# old\ninstall nvidia /bin/false\n");
       }},
      {"module.options", Ok, unchanged},
      {"module.options", Info,
       [](TestMachine& p) {
         p.tree.file("etc/modprobe.d/x.conf", "options nvidia NVreg_DeviceFileMode=0660\n");
       }},
      {"module.options", Ok,
       [](TestMachine& p) {
         p.tree.file("etc/modprobe.d/x.conf", "options nvidia NVreg_DeviceFileMode=0666\n");
       }},
      {"log.xid", Ok, unchanged},
      {"log.xid", Fail,
       [](TestMachine& p) { p.log("NVRM: Xid (PCI:0000:00:06): 79, pid=1, GPU has fallen off"); }},
      {"log.xid", Warn, [](TestMachine& p) { p.log("NVRM: Xid (PCI:0000:00:06): 63, row remap"); }},
      {"log.xid", Info,
       [](TestMachine& p) {
         p.log("[ 3.1] NVRM: Xid (PCI:0000:00:06): 31, pid=7, name=a.out, MMU");
       }},
      {"log.xid", Fail,
       [](TestMachine& p) {
         p.log(
             "NVRM: Xid (PCI:0000:00:06): 154, GPU recovery action changed from 0x0 (None) to "
             "0x1 (GPU Reset Required)");
       }},
      {"log.start", Ok, unchanged},
      {"log.start", Fail,
       [](TestMachine& p) {
         p.log("NVRM: GPU 0000:00:06.0: RmInitAdapter failed! (0x22:0x56:751)");
       }},
      {"log.unsupported", Ok, unchanged},
      {"log.unsupported", Fail,
       [](TestMachine& p) {
         p.log("NVRM: supported through the NVIDIA 470.xx Legacy drivers. Please");
       }},
      {"log.api-mismatch", Ok, unchanged},
      {"log.api-mismatch", Warn,
       [](TestMachine& p) { p.log("NVRM: API mismatch: the client has the version 535.1, but"); }},
      {"log.unbind", Ok, unchanged},
      {"log.unbind", Warn,
       [](TestMachine& p) {
         p.log("NVRM: Attempting to remove device 0000:00:06.0 with non-zero usage count!");
       }},
      {"log.unbind", Fail,
       [](TestMachine& p) { p.process("tee", 'D').tree.file("proc/101/wchan", "nv_pci_remove"); }},
  };
}

}  // namespace gantry::doctor
