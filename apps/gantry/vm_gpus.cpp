// SPDX-License-Identifier: Apache-2.0
#include "gantry/vm_gpus.hpp"

#include "base/core/text.hpp"
#include "vm/hypervisor/known_cards.hpp"
#include "vm/vgpu/read_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace gantry::cli {
namespace {

using hypervisor::Attachment;
using hypervisor::GuestGpu;

constexpr std::uint64_t kMemoryResource = 0x200;    // IORESOURCE_MEM
constexpr std::uint64_t kWideResource = 0x10'0000;  // IORESOURCE_MEM_64
constexpr std::size_t kMediatedDeviceLimit = 4096;

std::string device_directory(const model::PciAddress& address) {
  return "/sys/bus/pci/devices/" + address.sysfs();
}

std::vector<hypervisor::MemoryBar> read_memory_bars(const sys::Host& host,
                                                    const std::string& directory) {
  std::vector<hypervisor::MemoryBar> bars;
  const auto text = host.read(directory + "/resource", 65536).value_or("");
  int index = 0;
  for (const auto line : lines(text)) {
    if (index == 6) break;  // after the six BARs: the ROM and the BARs of virtual functions
    const auto words = split(trim(line), ' ');
    if (words.size() != 3) break;
    const auto start = parse_u64(words[0], 0);
    const auto end = parse_u64(words[1], 0);
    const auto flags = parse_u64(words[2], 0);
    const bool memory = start && end && flags && (*flags & kMemoryResource) != 0 && *end > *start;
    if (memory) {
      bars.push_back(
          {.index = index, .bytes = *end - *start + 1, .is_64bit = (*flags & kWideResource) != 0});
    }
    ++index;
  }
  return bars;
}

bool is_virtual_function(const sys::Host& host, const model::PciAddress& address) {
  return host.link(device_directory(address) + "/physfn").ok();
}

bool same_slot(const model::PciAddress& a, const model::PciAddress& b) {
  return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

std::vector<model::PciAddress> companions_of(const sys::Host& host, const model::Inventory& machine,
                                             const model::PciAddress& address) {
  std::vector<model::PciAddress> found;
  for (const auto& other : machine.functions) {
    if (other.address != address && same_slot(other.address, address) && !other.is_gpu() &&
        !is_virtual_function(host, other.address)) {
      found.push_back(other.address);
    }
  }
  return found;
}

// Name and memory: from the driver if it has the card, else from the list of known cards.
void add_product(const model::Inventory& machine, GuestGpu& gpu) {
  for (const auto& known : machine.gpus) {
    if (known.pci != gpu.address) continue;
    gpu.name = known.name;
    gpu.memory_bytes = known.memory_bytes;
  }
  const auto card = hypervisor::card_by_device_id(gpu.device);
  if (!card) return;
  if (gpu.name.empty()) gpu.name = card->name;
  if (!gpu.memory_bytes) gpu.memory_bytes = card->memory_bytes;
  gpu.sriov = gpu.sriov || card->sriov;
}

GuestGpu read_function(const sys::Host& host, const model::Inventory& machine,
                       const model::PciFunction& function) {
  const auto directory = device_directory(function.address);
  GuestGpu gpu;
  gpu.address = function.address;
  gpu.vendor = function.vendor;
  gpu.device = function.device;
  gpu.class_code = function.class_code;
  gpu.bars = read_memory_bars(host, directory);
  gpu.iommu_group = function.iommu_group;
  gpu.numa_node = function.numa_node;
  gpu.cpu_list = host.read_value(directory + "/local_cpulist").value_or("");
  gpu.driver = function.driver;
  gpu.sriov =
      parse_u64(host.read_value(directory + "/sriov_totalvfs").value_or("0")).value_or(0) > 0;
  if (is_virtual_function(host, function.address)) {
    if (host.exists(directory + "/nvidia/current_vgpu_type")) {
      gpu.attachment = Attachment::VendorVfio;
      gpu.vgpu_type = vgpu::read_vendor_type(host, function.address).value_or("");
    }
    return gpu;
  }
  gpu.companions = companions_of(host, machine, function.address);
  add_product(machine, gpu);
  return gpu;
}

std::string last_part(const Result<std::string>& path) {
  return path.ok() ? path->substr(path->rfind('/') + 1) : "";
}

// /sys/bus/mdev/devices/UUID leads to a directory below its parent, the card or a virtual function.
void add_mediated(const sys::Host& host, std::vector<GuestGpu>& gpus) {
  const auto names = host.list("/sys/bus/mdev/devices");
  if (!names.ok()) return;
  for (const auto& uuid : *names) {
    if (gpus.size() > kMediatedDeviceLimit) return;
    const auto real = host.resolve("/sys/bus/mdev/devices/" + uuid);
    if (!real.ok()) continue;
    const auto above = real->substr(0, real->rfind('/'));
    const auto parent = model::PciAddress::parse(above.substr(above.rfind('/') + 1));
    const auto owner = std::find_if(gpus.begin(), gpus.end(), [&](const GuestGpu& gpu) {
      return parent && gpu.address == *parent;
    });
    if (owner == gpus.end()) continue;  // another vendor's
    GuestGpu vgpu = *owner;
    vgpu.attachment = Attachment::Mdev;
    vgpu.mdev_uuid = to_lower(uuid);
    vgpu.vgpu_type = last_part(host.resolve("/sys/bus/mdev/devices/" + uuid + "/mdev_type"));
    vgpu.companions.clear();
    gpus.push_back(std::move(vgpu));
  }
}

Result<GuestGpu> other_machines_card(const std::string& word) {
  const auto at = word.find('@');
  GANTRY_TRY(auto gpu, hypervisor::card_by_name(word.substr(0, at)));
  const auto address = model::PciAddress::parse(word.substr(at + 1));
  if (!address) {
    return Error(Errc::Invalid,
                 fmt::format("`{}` is not a PCI address; write it as in h200@0000:3b:00.0",
                             word.substr(at + 1)));
  }
  gpu.address = *address;
  gpu.elsewhere = true;
  return gpu;
}

std::optional<model::PciAddress> address_of(const model::Inventory& machine,
                                            const std::string& word) {
  const auto index = parse_u64(word);
  for (const auto& gpu : machine.gpus) {
    if (index ? static_cast<std::uint64_t>(gpu.index) == *index : gpu.uuid.text == word)
      return gpu.pci;
  }
  return model::PciAddress::parse(word);
}

std::string known_addresses(std::span<const GuestGpu> gpus) {
  std::string text;
  for (const auto& gpu : gpus) {
    if (text.size() > 400) return text + ", ...";
    const auto name = gpu.attachment == Attachment::Mdev ? gpu.mdev_uuid : gpu.address.sysfs();
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text.empty() ? "none" : text;
}

Result<GuestGpu> select_guest_gpu(std::span<const GuestGpu> gpus, const model::Inventory& machine,
                                  const std::string& word) {
  if (word.find('@') != std::string::npos) return other_machines_card(word);
  const auto address = address_of(machine, word);
  for (const auto& gpu : gpus) {
    const bool mdev = gpu.attachment == Attachment::Mdev;
    if (mdev ? gpu.mdev_uuid == to_lower(word) : address && gpu.address == *address) return gpu;
  }
  return Error(Errc::NotFound, fmt::format("there is no GPU `{}`; the machine has: {}", word,
                                           known_addresses(gpus)));
}

}  // namespace

std::vector<GuestGpu> read_guest_gpus(const sys::Host& host, const model::Inventory& machine) {
  std::vector<GuestGpu> gpus;
  for (const auto& function : machine.functions) {
    if (function.is_gpu()) gpus.push_back(read_function(host, machine, function));
  }
  add_mediated(host, gpus);
  return gpus;
}

Result<std::vector<GuestGpu>> select_guest_gpus(std::span<const GuestGpu> gpus,
                                                const model::Inventory& machine,
                                                std::span<const std::string> words) {
  std::vector<GuestGpu> selected;
  for (const auto& word : words) {
    GANTRY_TRY(auto gpu, select_guest_gpu(gpus, machine, word));
    selected.push_back(std::move(gpu));
  }
  return selected;
}

bool names_cards_only(std::span<const std::string> words) {
  return std::all_of(words.begin(), words.end(),
                     [](const std::string& word) { return word.find('@') != std::string::npos; });
}

}  // namespace gantry::cli
