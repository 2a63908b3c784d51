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
  for (const auto& type : card.types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

// "2g.10gb" of "NVIDIA A100-2-10C", which is one GPU instance of MIG; "" for a time-sliced type.
std::string instance_profile(const VgpuType& type) {
  const auto words = split(type.name, '-');
  if (words.size() != 3) return "";
  const auto gigabytes = words[2].substr(0, words[2].find_first_not_of("0123456789"));
  return fmt::format("{}g.{}gb", words[1], gigabytes);
}

// How many of the instances with this profile have no vGPU.
std::uint32_t free_instances(const VgpuCard& card, const std::vector<LiveVgpu>& live,
                             const std::string& profile) {
  const auto all = std::count(card.instances.begin(), card.instances.end(), profile);
  const auto used = std::count_if(live.begin(), live.end(), [&](const LiveVgpu& vgpu) {
    const auto* type = find_type(card, vgpu.type);
    return type != nullptr && instance_profile(*type) == profile;
  });
  return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(all - used, 0));
}

std::uint32_t free_places(const VgpuCard& card, const std::vector<LiveVgpu>& live,
                          const VgpuType& type) {
  if (const auto profile = instance_profile(type); !profile.empty())
    return free_instances(card, live, profile);
  if (!card.instances.empty()) return 0;
  std::uint32_t left = card.memory_mib;
  for (const auto& vgpu : live) {
    const auto* other = find_type(card, vgpu.type);
    if (other == nullptr) continue;
    if (!card.mixed && other->memory_mib != type.memory_mib) return 0;
    left -= std::min(left, other->memory_mib);
  }
  return left / type.memory_mib;
}

void write_mdev_types(TreeWriter& out, const VgpuCard& card, const std::vector<LiveVgpu>& live,
                      const model::PciAddress& parent, const std::string& directory) {
  for (const auto& type : card.types) {
    const auto at = fmt::format("{}/mdev_supported_types/nvidia-{}", directory, type.id);
    out.file(at + "/name", type.name + "\n");
    out.file(at + "/description",
             fmt::format("num_heads=4, frl_config=60, framebuffer={}M, max_resolution=7680x4320, "
                         "max_instance={}\n",
                         type.memory_mib, card.memory_mib / type.memory_mib));
    out.file(at + "/device_api", "vfio-pci\n");
    out.file(at + "/available_instances", fmt::format("{}\n", vgpu_room(card, live, parent, type)));
    out.file(at + "/create", "", 0200);
  }
  out.relative_link("/sys/class/mdev_bus/" + parent.sysfs(), directory);
}

void write_function_files(TreeWriter& out, const VgpuCard& card, const std::vector<LiveVgpu>& live,
                          const model::PciAddress& parent, const std::string& directory) {
  std::string creatable = "ID    : vGPU Name\n";
  for (const auto& type : card.types) {
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
    text += fmt::format("gpu {} {} {} {} {}\n", card.address.sysfs(), card.framework, card.vfs,
                        card.memory_mib, card.mixed ? 1 : 0);
    for (const auto& type : card.types)
      text += fmt::format("type {} {} {}\n", type.id, type.memory_mib, type.name);
    for (const auto& profile : card.instances) text += fmt::format("instance {}\n", profile);
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
      card.framework = words[2];
      card.vfs = static_cast<std::uint32_t>(parse_u64(words[3]).value_or(0) & 0xffU);
      card.memory_mib = static_cast<std::uint32_t>(parse_u64(words[4]).value_or(0) & 0xffffffU);
      card.mixed = words[5] == "1";
      cards.push_back(std::move(card));
    } else if (words.size() == 2 && words[0] == "instance" && !cards.empty()) {
      cards.back().instances.emplace_back(words[1]);
    } else if (words.size() >= 4 && words[0] == "type" && !cards.empty()) {
      const auto name = line.find(words[3], words[0].size() + words[1].size() + words[2].size());
      cards.back().types.push_back(
          {.id = static_cast<std::uint32_t>(parse_u64(words[1]).value_or(0) & 0xffffffU),
           .name = std::string(line.substr(name)),
           .memory_mib = static_cast<std::uint32_t>(
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
  if (card.vfs == 0) return {card.address};
  std::vector<model::PciAddress> parents;
  const auto enabled =
      parse_u64(host.read_value(device_path(card.address) + "/sriov_numvfs").value_or("0"));
  for (std::uint32_t i = 0; i < std::min<std::uint64_t>(enabled.value_or(0), card.vfs); ++i)
    parents.push_back(vf_address(card.address, i));
  return parents;
}

std::vector<LiveVgpu> live_vgpus(const sys::Host& host, const VgpuCard& card) {
  std::vector<LiveVgpu> live;
  for (const auto& parent : vgpu_parents(host, card)) {
    if (card.framework == "vendor") {
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
  const auto fit = free_places(card, live, type);
  if (card.vfs == 0) return fit;
  const bool taken = std::any_of(live.begin(), live.end(),
                                 [&](const LiveVgpu& vgpu) { return vgpu.parent == parent; });
  return taken ? 0 : std::min(fit, 1U);
}

void write_parent_files(TreeWriter& out, const sys::Host& host, const VgpuCard& card) {
  const auto live = live_vgpus(host, card);
  for (const auto& parent : vgpu_parents(host, card)) {
    const auto directory = host.resolve(device_path(parent));
    if (!directory.ok()) return out.fail(Error(directory.error()));
    if (card.framework == "vendor") {
      write_function_files(out, card, live, parent, *directory);
    } else {
      write_mdev_types(out, card, live, parent, *directory);
    }
  }
}

void write_vgpu_hosts(TreeWriter& out, const Machine& m) {
  std::vector<VgpuCard> cards;
  for (const auto& gpu : m.gpus) {
    if (gpu.vgpu_types.empty() || gpu.pci.driver != "nvidia" || !driver_loaded(m)) continue;
    VgpuCard card{.address = gpu.pci.address,
                  .framework = m.driver.vgpu_framework,
                  .vfs = gpu.pci.vfs,
                  .memory_mib = gpu.memory_total_mib,
                  .types = gpu.vgpu_types,
                  .instances = {}};
    if (gpu.mig_enabled) {
      for (const auto& request : gpu.mig) card.instances.push_back(request.profile);
    }
    cards.push_back(std::move(card));
  }
  if (cards.empty() || m.driver.vgpu_framework.empty()) return;
  out.file(kVgpuHostPath, to_text(cards), 0644);
  out.directory("/sys/class/mdev_bus");
  out.directory("/sys/bus/mdev/devices");
  for (const auto& card : cards) {
    // The link of the device is the writer's own, so the path leads to the real directory.
    if (card.vfs == 0) write_mdev_types(out, card, {}, card.address, device_path(card.address));
  }
}

}  // namespace gantry::sim
