// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/vgpu_sysfs.hpp"

#include "base/core/text.hpp"
#include "sim/machine/vgpu_sysfs_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kFirstGroup = 200;  // above those of the machine's own functions

std::string device_directory(const model::PciAddress& address) {
  return "/sys/bus/pci/devices/" + address.sysfs();
}

bool group_open(const sys::Host& host, const std::string& device) {
  const auto group = host.link(device + "/iommu_group");
  if (!group.ok()) return false;
  const auto node = "/dev/vfio" + group->substr(group->rfind('/'));
  for (const auto& process : host.list("/proc").value_or({})) {
    if (!parse_u64(process)) continue;
    const auto directory = "/proc/" + process + "/fd";
    for (const auto& name : host.list(directory).value_or({})) {
      if (host.link(directory + "/" + name).value_or("") == node) return true;
    }
  }
  return false;
}

void add_group(TreeWriter& out, const sys::Host& host, const std::string& device) {
  auto number = kFirstGroup;
  while (host.exists(fmt::format("/sys/kernel/iommu_groups/{}", number))) ++number;
  const auto group = fmt::format("/sys/kernel/iommu_groups/{}", number);
  out.file(group + "/type", "DMA\n");
  out.relative_link(device + "/iommu_group", group);
  out.relative_link(group + "/devices/" + device.substr(device.rfind('/') + 1), device);
}

void remove_group(TreeWriter& out, const sys::Host& host, const std::string& device) {
  const auto group = host.resolve(device + "/iommu_group");
  if (group.ok()) out.remove(*group);
}

bool uuid_shape(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (text[i] == '-')) return false;
    if (!dash && !contains("0123456789abcdefABCDEF", text.substr(i, 1))) return false;
  }
  return true;
}

class VgpuKernel {
 public:
  VgpuKernel(const sys::Host& host, VgpuCard& card)
      : host_(host), card_(card), out_(host.root(), DeviceNodes::Table) {}

  Status set_functions(std::string_view text) {
    GANTRY_TRY(const auto gpu, host_.resolve(device_directory(card_.address)));
    const auto path = gpu + "/sriov_numvfs";
    const auto count = parse_u64(text);
    if (!count || *count > card_.vfs) return Error::sys(ERANGE, "write " + path);
    const auto now = vgpu_parents(host_, card_).size();
    if (now != 0 && *count != 0 && *count != now) return Error::sys(EBUSY, "write " + path);
    if (*count == 0) {
      remove_functions();
    } else if (now == 0) {
      for (std::uint32_t i = 0; i < *count; ++i) add_function(i);
    }
    out_.file(path, fmt::format("{}\n", *count), 0644);
    return finish();
  }

  Status create_mdev(const model::PciAddress& parent, std::string_view type_name,
                     std::string_view uuid) {
    const auto* type = type_by_id(type_name.substr(type_name.rfind('-') + 1));
    if (type == nullptr) return Error::sys(ENOENT, "open");
    if (!uuid_shape(uuid)) return Error::sys(EINVAL, "write create");
    const auto name = to_lower(uuid);
    if (host_.exists("/sys/bus/mdev/devices/" + name)) return Error::sys(EEXIST, "write create");
    if (vgpu_room(card_, live_vgpus(host_, card_), parent, *type) == 0)
      return Error::sys(ENOSPC, "write create");
    GANTRY_TRY(const auto real, host_.resolve(device_directory(parent)));
    const auto device = real + "/" + name;
    out_.file(device + "/remove", "", 0200);
    out_.file(device + "/nvidia/vgpu_params", "\n", 0644);
    out_.relative_link(device + "/mdev_type",
                       fmt::format("{}/mdev_supported_types/nvidia-{}", real, type->id));
    out_.relative_link("/sys/bus/mdev/devices/" + name, device);
    add_group(out_, host_, device);
    return finish();
  }

  Status remove_mdev(const std::string& uuid) {
    const auto device = host_.resolve("/sys/bus/mdev/devices/" + uuid);
    if (!device.ok()) return Error::sys(ENOENT, "open");
    if (group_open(host_, *device)) return Error::sys(EBUSY, "write remove");
    drop_mdev(uuid, *device);
    return finish();
  }

  Status set_type(const model::PciAddress& function, std::string_view text) {
    GANTRY_TRY(const auto real, host_.resolve(device_directory(function)));
    const auto path = real + "/nvidia/current_vgpu_type";
    const auto now = host_.read_value(path).value_or("0");
    if (text == "0") {
      if (now == "0") return {};
      if (group_open(host_, real)) return Error::sys(EPERM, "write current_vgpu_type");
      remove_group(out_, host_, real);
      out_.remove(real + "/iommu_group");
      out_.file(path, "0\n", 0644);
      return finish();
    }
    const auto* type = type_by_id(text);
    if (type == nullptr) return Error::sys(EINVAL, "write current_vgpu_type");
    if (now != "0") return Error::sys(EBUSY, "write current_vgpu_type");
    if (vgpu_room(card_, live_vgpus(host_, card_), function, *type) == 0)
      return Error::sys(ENOSPC, "write current_vgpu_type");
    out_.file(path, fmt::format("{}\n", type->id), 0644);
    add_group(out_, host_, real);
    return finish();
  }

 private:
  const VgpuType* type_by_id(std::string_view text) const {
    const auto id = parse_u64(text);
    for (const auto& type : card_.types) {
      if (type.id == id) return &type;
    }
    return nullptr;
  }

  void drop_mdev(const std::string& uuid, const std::string& device) {
    remove_group(out_, host_, device);
    out_.remove("/sys/bus/mdev/devices/" + uuid);
    out_.remove(device);
  }

  void add_function(std::uint32_t index) {
    const auto address = vf_address(card_.address, index);
    const auto gpu = host_.resolve(device_directory(card_.address));
    if (!gpu.ok()) return out_.fail(Error(gpu.error()));
    const auto device = gpu->substr(0, gpu->rfind('/') + 1) + address.sysfs();
    for (const auto* name : {"vendor", "device", "class", "subsystem_vendor", "subsystem_device"}) {
      const auto value = host_.read_value(*gpu + "/" + name).value_or("0x0");
      out_.file(device + "/" + name, value + "\n");
    }
    out_.file(device + "/numa_node", host_.read_value(*gpu + "/numa_node").value_or("-1") + "\n");
    out_.relative_link(device + "/physfn", *gpu);
    out_.relative_link(device + "/driver", "/sys/bus/pci/drivers/nvidia");
    out_.relative_link(fmt::format("{}/virtfn{}", *gpu, index), device);
    out_.relative_link(device_directory(address), device);
  }

  void remove_functions() {
    for (const auto& vgpu : live_vgpus(host_, card_)) {
      if (vgpu.uuid.empty()) {
        remove_group(out_, host_, device_directory(vgpu.parent));
      } else {
        const auto device = host_.resolve("/sys/bus/mdev/devices/" + vgpu.uuid);
        if (device.ok()) drop_mdev(vgpu.uuid, *device);
      }
    }
    std::uint32_t index = 0;
    for (const auto& parent : vgpu_parents(host_, card_)) {
      const auto device = host_.resolve(device_directory(parent));
      if (host_.link_info("/sys/class/mdev_bus/" + parent.sysfs()).ok())
        out_.remove("/sys/class/mdev_bus/" + parent.sysfs());
      const auto gpu = host_.resolve(device_directory(card_.address));
      if (gpu.ok()) out_.remove(fmt::format("{}/virtfn{}", *gpu, index++));
      out_.remove(device_directory(parent));
      if (device.ok()) out_.remove(*device);
    }
  }

  Status finish() {
    GANTRY_CHECK(out_.status());
    write_parent_files(out_, host_, card_);
    return out_.status();
  }

  const sys::Host& host_;
  VgpuCard& card_;
  TreeWriter out_;
};

// The words of a path below /sys, and the card that it belongs to.
VgpuCard* card_of(std::vector<VgpuCard>& cards, const sys::Host& host,
                  const model::PciAddress& function) {
  for (auto& card : cards) {
    if (card.address == function) return &card;
    const auto parents = vgpu_parents(host, card);
    if (std::find(parents.begin(), parents.end(), function) != parents.end()) return &card;
  }
  return nullptr;
}

std::optional<model::PciAddress> parent_of_mdev(const sys::Host& host, const std::string& uuid) {
  const auto real = host.resolve("/sys/bus/mdev/devices/" + uuid);
  if (!real.ok()) return std::nullopt;
  const auto above = real->substr(0, real->rfind('/'));
  return model::PciAddress::parse(above.substr(above.rfind('/') + 1));
}

Status act(const sys::Host& host, std::vector<VgpuCard>& cards, std::string_view path,
           std::string_view text) {
  const auto words = split(path, '/');  // "", sys, bus|class, pci|mdev|mdev_bus, ...
  const auto missing = [&] { return Error::sys(ENOENT, fmt::format("open {}", path)); };
  if (words.size() < 6) return missing();
  const bool mdev = words[3] == "mdev";
  const auto name = std::string(words[3] == "mdev_bus" ? words[4] : words[5]);
  const auto function = mdev ? parent_of_mdev(host, name) : model::PciAddress::parse(name);
  auto* card = function ? card_of(cards, host, *function) : nullptr;
  if (card == nullptr || !host.exists(path)) return missing();
  VgpuKernel kernel(host, *card);
  if (mdev && words.back() == "remove") return kernel.remove_mdev(name);
  if (words.back() == "sriov_numvfs") return kernel.set_functions(text);
  if (words.back() == "current_vgpu_type") return kernel.set_type(*function, text);
  if (words.back() == "create") return kernel.create_mdev(*function, words[words.size() - 2], text);
  return Error::sys(EACCES, fmt::format("write {}", path));
}

}  // namespace

bool has_vgpu_host(const std::string& root) {
  const auto host = sys::Host::at(root);
  return host.ok() && !host->is_live() && host->exists(kVgpuHostPath);
}

Status write_vgpu_sysfs(const std::string& root, std::string_view path, std::string_view text) {
  GANTRY_TRY(const auto host, sys::Host::at(root));
  GANTRY_TRY(auto cards, read_cards(host));
  return act(host, cards, path, trim(text));
}

Status allow_mixed_vgpus(const std::string& root, const model::PciAddress& gpu) {
  GANTRY_TRY(const auto host, sys::Host::at(root));
  GANTRY_TRY(auto cards, read_cards(host));
  TreeWriter out(root, DeviceNodes::Table);
  for (auto& card : cards) {
    if (card.address != gpu) continue;
    if (!live_vgpus(host, card).empty()) return Error::sys(EBUSY, "nvidia-smi vgpu -shm 1");
    card.mixed = true;
    out.file(kVgpuHostPath, to_text(cards), 0644);
    write_parent_files(out, host, card);
  }
  return out.status();
}

Status reboot_vgpu_host(const std::string& root) {
  GANTRY_TRY(const auto host, sys::Host::at(root));
  GANTRY_TRY(auto cards, read_cards(host));
  for (auto& card : cards) {
    if (card.vfs != 0) {
      GANTRY_CHECK(VgpuKernel(host, card).set_functions("0"));
      continue;
    }
    for (const auto& vgpu : live_vgpus(host, card))
      GANTRY_CHECK(VgpuKernel(host, card).remove_mdev(vgpu.uuid));
  }
  for (auto& card : cards) card.mixed = false;
  TreeWriter out(root, DeviceNodes::Table);
  out.file(kVgpuHostPath, to_text(cards), 0644);
  return out.status();
}

}  // namespace gantry::sim
