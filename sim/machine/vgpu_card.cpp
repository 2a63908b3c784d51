// SPDX-License-Identifier: Apache-2.0
// Reads what a simulated vGPU host has, and writes the files that show it.
#include "base/core/text.hpp"
#include "sim/machine/tree_internal.hpp"
#include "sim/machine/vgpu_sysfs.hpp"
#include "sim/machine/vgpu_sysfs_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kVfOffset = 4;  // the first virtual function of 3b:00.0 is 3b:00.4

std::string device_path(const model::PciAddress& address) {
  return "/sys/bus/pci/devices/" + address.sysfs();
}

const VgpuType* find_type(const VgpuCard& card, std::uint64_t id) {
  for (const auto& type : card.host.types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

void write_mdev_types(TreeWriter& out, const VgpuCard& card, const std::vector<LiveVgpu>& live,
                      const model::PciAddress& parent, const std::string& directory) {
  for (const auto& type : card.host.types) {
    const auto at = fmt::format("{}/mdev_supported_types/nvidia-{}", directory, type.id);
    out.file(at + "/name", type.name + "\n");
    out.file(at + "/description",
             fmt::format("num_heads=4, frl_config=60, framebuffer={}M, max_resolution=7680x4320, "
                         "max_instance={}\n",
                         type.framebuffer_mib, card.host.framebuffer_mib / type.framebuffer_mib));
    out.file(at + "/device_api", "vfio-pci\n");
    out.file(at + "/available_instances", fmt::format("{}\n", vgpu_room(card, live, parent, type)));
    out.file(at + "/create", "", 0200);
  }
  out.relative_link("/sys/class/mdev_bus/" + parent.sysfs(), directory);
}

void write_vendor_files(TreeWriter& out, const VgpuCard& card, const std::vector<LiveVgpu>& live,
                        const model::PciAddress& parent, const std::string& directory) {
  std::string creatable = "ID    : vGPU Name\n";
  for (const auto& type : card.host.types) {
    if (vgpu_room(card, live, parent, type) > 0)
      creatable += fmt::format("{:<6}: {}\n", type.id, type.name);
  }
  std::uint32_t current = 0;
  for (const auto& vgpu : live) current = vgpu.parent == parent ? vgpu.type : current;
  out.file(directory + "/nvidia/creatable_vgpu_types", creatable);
  out.file(directory + "/nvidia/current_vgpu_type", fmt::format("{}\n", current), 0644);
  out.file(directory + "/nvidia/vgpu_params", "\n", 0644);
}

}  // namespace

std::string to_text(const std::vector<VgpuCard>& cards) {
  std::string text = "gantry-vgpu 1\n";
  for (const auto& card : cards) {
    text += fmt::format("gpu {} {} {} {} {}\n", card.address.sysfs(), card.host.framework,
                        card.host.vfs, card.host.framebuffer_mib, card.mixed ? 1 : 0);
    for (const auto& type : card.host.types)
      text += fmt::format("type {} {} {}\n", type.id, type.framebuffer_mib, type.name);
  }
  return text;
}

Result<std::vector<VgpuCard>> read_cards(const sys::Host& host) {
  GANTRY_TRY(const auto text, host.read(kVgpuHostPath, 1U << 20U));
  std::vector<VgpuCard> cards;
  for (const auto line : lines(text)) {
    const auto words = split(line, ' ');
    if (words.size() == 6 && words[0] == "gpu") {
      VgpuCard card;
      card.address = model::PciAddress::parse(words[1]).value_or(model::PciAddress{});
      card.host.framework = words[2];
      card.host.vfs = static_cast<std::uint32_t>(parse_u64(words[3]).value_or(0) & 0xffU);
      card.host.framebuffer_mib =
          static_cast<std::uint32_t>(parse_u64(words[4]).value_or(0) & 0xffffffU);
      card.mixed = words[5] == "1";
      cards.push_back(std::move(card));
    } else if (words.size() >= 4 && words[0] == "type" && !cards.empty()) {
      const auto name = line.find(words[3], words[0].size() + words[1].size() + words[2].size());
      cards.back().host.types.push_back(
          {.id = static_cast<std::uint32_t>(parse_u64(words[1]).value_or(0) & 0xffffffU),
           .name = std::string(line.substr(name)),
           .framebuffer_mib = static_cast<std::uint32_t>(
               std::max<std::uint64_t>(1, parse_u64(words[2]).value_or(0) & 0xffffffU))});
    }
  }
  return cards;
}

model::PciAddress vf_address(const model::PciAddress& gpu, std::uint32_t index) {
  const std::uint32_t at = gpu.bus * 256U + gpu.device * 8U + gpu.function + kVfOffset + index;
  auto address = gpu;
  address.bus = static_cast<std::uint8_t>(at / 256U);
  address.device = static_cast<std::uint8_t>(at / 8U % 32U);
  address.function = static_cast<std::uint8_t>(at % 8U);
  return address;
}

std::vector<model::PciAddress> vgpu_parents(const sys::Host& host, const VgpuCard& card) {
  if (card.host.vfs == 0) return {card.address};
  std::vector<model::PciAddress> parents;
  const auto enabled =
      parse_u64(host.read_value(device_path(card.address) + "/sriov_numvfs").value_or("0"));
  for (std::uint32_t i = 0; i < std::min<std::uint64_t>(enabled.value_or(0), card.host.vfs); ++i)
    parents.push_back(vf_address(card.address, i));
  return parents;
}

std::vector<LiveVgpu> live_vgpus(const sys::Host& host, const VgpuCard& card) {
  std::vector<LiveVgpu> live;
  for (const auto& parent : vgpu_parents(host, card)) {
    if (card.host.framework == "vfio") {
      const auto current = parse_u64(
          host.read_value(device_path(parent) + "/nvidia/current_vgpu_type").value_or("0"));
      if (current.value_or(0) != 0)
        live.push_back({parent, "", static_cast<std::uint32_t>(*current)});
      continue;
    }
    for (const auto& name : host.list(device_path(parent)).value_or({})) {
      const auto type = host.link(device_path(parent) + "/" + name + "/mdev_type");
      if (!type.ok()) continue;
      const auto id = parse_u64(type->substr(type->rfind('-') + 1)).value_or(0);
      live.push_back({parent, name, static_cast<std::uint32_t>(id)});
    }
  }
  return live;
}

std::uint32_t vgpu_room(const VgpuCard& card, const std::vector<LiveVgpu>& live,
                        const model::PciAddress& parent, const VgpuType& type) {
  std::uint32_t left = card.host.framebuffer_mib;
  for (const auto& vgpu : live) {
    const auto* other = find_type(card, vgpu.type);
    if (other == nullptr) continue;
    if (!card.mixed && other->framebuffer_mib != type.framebuffer_mib) return 0;
    if (card.host.vfs != 0 && vgpu.parent == parent) return 0;
    left -= std::min(left, other->framebuffer_mib);
  }
  const auto fit = left / type.framebuffer_mib;
  return card.host.vfs == 0 ? fit : std::min(fit, 1U);
}

void write_parent_files(TreeWriter& out, const sys::Host& host, const VgpuCard& card) {
  const auto live = live_vgpus(host, card);
  for (const auto& parent : vgpu_parents(host, card)) {
    const auto directory = host.resolve(device_path(parent));
    if (!directory.ok()) return out.fail(Error(directory.error()));
    if (card.host.framework == "vfio") {
      write_vendor_files(out, card, live, parent, *directory);
    } else {
      write_mdev_types(out, card, live, parent, *directory);
    }
  }
}

void write_vgpu_hosts(TreeWriter& out, const Machine& m) {
  std::vector<VgpuCard> cards;
  for (const auto& gpu : m.gpus) {
    if (gpu.vgpu.framework.empty()) continue;
    auto& card = cards.emplace_back(VgpuCard{gpu.pci.address, gpu.vgpu});
    if (card.host.framebuffer_mib == 0) card.host.framebuffer_mib = gpu.memory_total_mib;
  }
  if (cards.empty()) return;
  out.file(kVgpuHostPath, to_text(cards), 0644);
  out.directory("/sys/class/mdev_bus");
  out.directory("/sys/bus/mdev/devices");
  for (const auto& card : cards) {
    const auto directory = device_path(card.address);
    if (card.host.vfs == 0) {
      for (const auto& gpu : m.gpus) {
        // The link of the device is the writer's own, so the path resolves to the real directory.
        if (gpu.pci.address == card.address && gpu.pci.driver == "nvidia")
          write_mdev_types(out, card, {}, card.address, directory);
      }
      continue;
    }
    out.file(directory + "/sriov_totalvfs", fmt::format("{}\n", card.host.vfs));
    out.file(directory + "/sriov_numvfs", "0\n", 0644);
    out.file(directory + "/sriov_drivers_autoprobe", "1\n", 0644);
  }
}

}  // namespace gantry::sim
