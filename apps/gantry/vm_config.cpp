// SPDX-License-Identifier: Apache-2.0
// gantry vm config: writes the configuration of a virtual machine for one hypervisor.
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/terminal.hpp"
#include "gantry/vm_commands.hpp"
#include "gantry/vm_gpus.hpp"
#include "gpu/probe/snapshot.hpp"
#include "sharing/policy/share.hpp"
#include "vm/hypervisor/known_cards.hpp"
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/write_config.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <map>

namespace gantry::cli {
namespace {

struct VmConfigFlags {
  std::string hypervisor;
  std::vector<std::string> gpus;
  std::string memory = "16GiB";
  std::string huge_pages = "none";
  std::string firmware = "efi";
  hypervisor::VmSpec vm;
  Deadline deadline;
};

Result<hypervisor::VmSpec> vm_of(const VmConfigFlags& flags) {
  auto vm = flags.vm;
  GANTRY_TRY(const auto memory, policy::parse_memory_limit(flags.memory).in("--memory"));
  if (memory.percent != 0) {
    return Error(Errc::Invalid, fmt::format("--memory {} is not a size; give one with a unit: "
                                            "--memory 16GiB",
                                            flags.memory));
  }
  vm.memory_bytes = memory.bytes;
  if (flags.huge_pages == "2M") vm.huge_pages = hypervisor::HugePages::Size2M;
  if (flags.huge_pages == "1G") vm.huge_pages = hypervisor::HugePages::Size1G;
  if (flags.firmware == "bios") vm.firmware = hypervisor::Firmware::Bios;
  return vm;
}

Result<std::vector<hypervisor::GuestGpu>> gpus_of(const VmConfigFlags& flags, Context& context) {
  if (names_cards_only(flags.gpus)) return select_guest_gpus({}, {}, flags.gpus);
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, while_waiting(context, [&] {
               return probe::snapshot(
                   host, {.deadline = flags.deadline.duration(), .files = probe::FindFiles::No});
             }));
  return select_guest_gpus(read_guest_gpus(host, machine), machine, flags.gpus);
}

std::string config_json(const VmConfigFlags& flags, const hypervisor::VmSpec& vm,
                        const hypervisor::WrittenConfig& config) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", 1);
    out.member("for", flags.hypervisor);
    out.member("text", config.text);
    out.array("notes", config.notes);
    out.array("gpus", vm.gpus, [&](const hypervisor::GuestGpu& gpu) {
      out.object([&] {
        out.member("address", gpu.address.sysfs());
        out.member("name", gpu.name);
        out.member("numa_node", gpu.numa_node);
        out.member("iommu_group", gpu.iommu_group);
        out.member("memory_bytes", gpu.memory_bytes);
        out.member("bar_bytes", hypervisor::bar_bytes(gpu));
      });
    });
    out.member("mmio_window_bytes", hypervisor::mmio_window(vm.gpus));
    out.member("locked_memory_bytes", hypervisor::locked_memory(vm.memory_bytes));
  });
  return out.text() + "\n";
}

Result<int> vm_config(const VmConfigFlags& flags, Context& context) {
  GANTRY_TRY(auto vm, vm_of(flags));
  GANTRY_TRY(vm.gpus, gpus_of(flags, context));
  const auto target = hypervisor::parse_hypervisor(flags.hypervisor);
  GANTRY_ASSERT(target.has_value());  // CLI11 has checked it
  GANTRY_TRY(auto config, hypervisor::write_config(*target, vm));
  for (auto& note : config.notes) note = sys::with_root(note, context.root);
  if (context.json) {
    fmt::print(context.out, "{}", config_json(flags, vm, config));
    return kOk;
  }
  fmt::print(context.out, "{}", config.text);
  for (const auto& note : config.notes) print_note(note, context);
  return kOk;
}

void add_vm_options(CLI::App& command, VmConfigFlags& flags) {
  command.add_option("--name", flags.vm.name, "Name of the virtual machine")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--uuid", flags.vm.uuid, "Its UUID (default: derived from name and GPUs)")
      ->type_name("UUID");
  command.add_option("--memory", flags.memory, "Memory of the virtual machine")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("--cpus", flags.vm.cpus, "Number of its processors")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""))
      ->capture_default_str();
  command.add_option("--hugepages", flags.huge_pages, "Huge pages for its memory: none, 2M or 1G")
      ->type_name("SIZE")
      ->check(CLI::IsMember({"none", "2M", "1G"}).description(""))
      ->capture_default_str();
  command.add_option("--firmware", flags.firmware, "Firmware: efi or bios")
      ->type_name("KIND")
      ->check(CLI::IsMember({"efi", "bios"}).description(""))
      ->capture_default_str();
  command.add_flag("--iommufd", flags.vm.iommufd,
                   "Use /dev/iommu instead of VFIO groups (QEMU 9.0 and later)");
  command
      .add_option("--vgpu", flags.vm.vgpu_profile,
                  "ESXi: a vGPU of this profile instead of a whole GPU")
      ->type_name("PROFILE");
}

}  // namespace

void add_vm_config(CLI::App& vm, Context& context, Action& chosen) {
  const auto flags = std::make_shared<VmConfigFlags>();
  auto* command = vm.add_subcommand(
      "config", "Write the command line, XML or settings that give GPUs to a virtual machine");
  command
      ->add_option("--for", flags->hypervisor,
                   "qemu, libvirt, cloud-hypervisor, esxi, proxmox or openstack")
      ->type_name("HYPERVISOR")
      ->required()
      ->check(CLI::IsMember({"qemu", "libvirt", "cloud-hypervisor", "esxi", "proxmox", "openstack"})
                  .description(""));
  command
      ->add_option("GPU", flags->gpus,
                   "Index, UUID or PCI address of a GPU; address of a virtual function or UUID of "
                   "a mediated device for a vGPU; CARD@ADDRESS for a card of another machine "
                   "(cards: " +
                       hypervisor::known_card_names() + ")")
      ->type_name("GPU");
  add_vm_options(*command, *flags);
  add_machine_options(*command, context);
  add_deadline(*command, flags->deadline);
  add_examples(*command,
               "  gantry vm config --for qemu 0 > start-guest && sh start-guest\n"
               "  gantry vm config --for libvirt --hugepages 1G --memory 64GiB 0 1 > guest.xml\n"
               "  gantry vm config --for esxi h200@0000:3b:00.0\n"
               "  gantry vm config --for esxi --vgpu grid_t4-8q\n"
               "  gantry vm config --for openstack 0 1 2 3\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return vm_config(*flags, c); }; });
}

}  // namespace gantry::cli
