// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/read_host.hpp"

#include "base/core/text.hpp"
#include "base/sys/deadline_read.hpp"
#include "gpu/model/pci_vendor.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/mig.hpp"
#include "vm/vgpu/holders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <tuple>

namespace gantry::vgpu {
namespace {

constexpr std::size_t kMaxMdevs = 4096;
constexpr std::chrono::seconds kLockDeadline{2};  // the lock is held for milliseconds otherwise

std::optional<std::uint64_t> number_in(const sys::Host& host, const std::string& path) {
  const auto text = host.read_value(path);
  return text ? parse_u64(*text, 0) : std::nullopt;
}

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string link_name(const sys::Host& host, const std::string& path) {
  const auto target = host.link(path);
  return target.ok() ? last_part(*target) : "";
}

std::optional<unsigned> group_of(const sys::Host& host, const std::string& directory) {
  const auto number = parse_u64(link_name(host, directory + "/iommu_group"));
  return number && *number <= UINT32_MAX ? std::optional(static_cast<unsigned>(*number))
                                         : std::nullopt;
}

bool is_gpu(const sys::Host& host, const std::string& directory) {
  const auto type = number_in(host, directory + "/class").value_or(0) >> 8U;
  return number_in(host, directory + "/vendor") == model::kNvidiaVendor &&
         (type == 0x0300 || type == 0x0302) && !host.link(directory + "/physfn").ok();
}

unsigned bounded(std::optional<std::uint64_t> number, std::size_t limit) {
  return static_cast<unsigned>(std::min<std::uint64_t>(number.value_or(0), limit));
}

// What the driver says about its GPUs. A GPU that another driver has, or of which the driver does
// not answer, has no UUID then, and its instances of MIG are unknown.
void add_driver_facts(const sys::Host& host, std::vector<VgpuGpu>& gpus) {
  const auto entries = procfs::read_gpus(host);
  if (!entries.ok()) return;
  for (const auto& entry : *entries) {
    const auto& known = entry.information.gpu;
    for (auto& gpu : gpus) {
      if (gpu.address != known.pci) continue;
      gpu.uuid = known.uuid;
      if (!known.minor) continue;
      const auto count = procfs::gpu_instances(host, *known.minor).size();
      if (count > 0) gpu.gpu_instances = static_cast<unsigned>(count);
    }
  }
}

// While an unbind of the GPU waits in the kernel, the readers of sriov_numvfs wait too.
void add_enabled_vfs(const sys::Host& host, std::vector<VgpuGpu>& gpus) {
  std::vector<std::string> paths;
  for (const auto& gpu : gpus) paths.push_back(pci_directory(gpu.address) + "/sriov_numvfs");
  const auto texts = sys::read_with_deadline(host, paths, kLockDeadline, sys::AfterTimeout::GoOn);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto count = texts[i].ok() ? parse_u64(trim(*texts[i])) : std::nullopt;
    gpus[i].enabled_vfs = bounded(count, kMaxVfs);
    if (!texts[i].ok() && texts[i].error().code() == Errc::Timeout)
      gpus[i].problem = texts[i].error().text();
  }
}

void add_type(VgpuGpu& gpu, VgpuType type) {
  if (gpu.find_type_id(type.id) != nullptr || gpu.types.size() >= kMaxTypes) return;
  if (type.framebuffer_mib == 0) {
    const auto name = parse_type_name(type.key);
    type.framebuffer_mib = name ? std::uint64_t{name->gigabytes} * 1024 : 0;
  }
  gpu.types.push_back(std::move(type));
}

std::string types_directory(const model::PciAddress& parent) {
  return fmt::format("/sys/class/mdev_bus/{}/mdev_supported_types", parent.sysfs());
}

void read_mdev_parent(const sys::Host& host, VgpuGpu& gpu, const model::PciAddress& address) {
  VgpuParent parent{.address = address};
  const auto directory = types_directory(address);
  const auto ids = host.list(directory).value_or({});
  for (const auto& id : ids) {
    if (parent.type_ids.size() == kMaxTypes) break;
    const auto at = directory + "/" + id;
    const auto name = host.read_value(at + "/name").value_or("");
    if (name.empty()) continue;
    parent.type_ids.push_back(id);
    const auto description = parse_description(host.read_value(at + "/description").value_or(""));
    add_type(gpu, {.id = id,
                   .name = name,
                   .key = type_key(name),
                   .framebuffer_mib = description.framebuffer_mib,
                   .max_instances = description.max_instances});
    auto found = std::find_if(gpu.types.begin(), gpu.types.end(),
                              [&](const VgpuType& type) { return type.id == id; });
    if (found != gpu.types.end())
      found->available += bounded(number_in(host, at + "/available_instances"), 1024);
  }
  gpu.parents.push_back(std::move(parent));
}

std::string vendor_file(const model::PciAddress& function, std::string_view name) {
  return fmt::format("{}/nvidia/{}", pci_directory(function), name);
}

Result<std::string> vendor_type(const Result<std::string>& text) {
  if (text.ok()) return std::string(trim(*text));
  if (text.error().code() == Errc::NotFound) return std::string("0");
  return text.error();
}

// What the driver says about one virtual function.
struct VendorFiles {
  Result<std::string> creatable, current, placement;
};

// The driver takes a lock for each of them, and its readers wait while an unbind or a virtual
// machine has it.
std::vector<VendorFiles> read_vendor_files(const sys::Host& host,
                                           const std::vector<model::PciAddress>& functions) {
  constexpr std::array<std::string_view, 3> kNames{"creatable_vgpu_types", "current_vgpu_type",
                                                   "placement_id"};
  std::vector<std::string> paths;
  for (const auto& function : functions) {
    for (const auto name : kNames) paths.push_back(vendor_file(function, name));
  }
  const auto texts = sys::read_with_deadline(host, paths, kLockDeadline, sys::AfterTimeout::GiveUp);
  std::vector<VendorFiles> files;
  for (std::size_t i = 0; i < texts.size(); i += kNames.size())
    files.push_back({texts[i], texts[i + 1], texts[i + 2]});
  return files;
}

void note_silence(VgpuGpu& gpu, const Error& error) {
  if (error.code() == Errc::NotFound || gpu.silent) return;
  gpu.silent = true;
  gpu.problem = fmt::format("the driver does not say which vGPUs it has: {}", error.cause());
}

void add_vendor_vgpu(const sys::Host& host, VgpuGpu& gpu, const model::PciAddress& address,
                     const VendorFiles& files) {
  const auto current = vendor_type(files.current);
  if (!current.ok()) return note_silence(gpu, current.error());
  if (*current == "0" || !parse_u64(*current)) return;
  Vgpu vgpu{.gpu = gpu.address, .parent = address, .type_id = *current};
  vgpu.iommu_group = group_of(host, pci_directory(address));
  const auto placement = files.placement.ok() ? parse_u64(trim(*files.placement), 0) : std::nullopt;
  if (placement && *placement < 4096) vgpu.placement = static_cast<unsigned>(*placement);
  gpu.vgpus.push_back(std::move(vgpu));
}

void add_vendor_parent(const sys::Host& host, VgpuGpu& gpu, const model::PciAddress& address,
                       const VendorFiles& files) {
  VgpuParent parent{.address = address};
  if (!files.creatable.ok()) note_silence(gpu, files.creatable.error());
  const auto text = files.creatable.ok() ? *files.creatable : std::string();
  for (const auto& type : parse_creatable_types(text)) {
    parent.type_ids.push_back(type.id);
    add_type(gpu, {.id = type.id, .name = type.name, .key = type_key(type.name)});
    for (auto& known : gpu.types) known.available += known.id == type.id ? 1 : 0;
  }
  add_vendor_vgpu(host, gpu, address, files);
  gpu.parents.push_back(std::move(parent));
}

void read_vendor_parents(const sys::Host& host, VgpuGpu& gpu,
                         const std::vector<model::PciAddress>& functions) {
  const auto files = read_vendor_files(host, functions);
  for (std::size_t i = 0; i < functions.size(); ++i)
    add_vendor_parent(host, gpu, functions[i], files[i]);
}

// The parent of a mediated device: the last PCI address of its path below /sys/devices.
std::optional<model::PciAddress> mdev_parent(const sys::Host& host, const std::string& uuid) {
  const auto real = host.resolve("/sys/bus/mdev/devices/" + uuid);
  if (!real.ok()) return std::nullopt;
  const auto above = real->substr(0, real->rfind('/'));
  return model::PciAddress::parse(last_part(above));
}

void read_mdevs(const sys::Host& host, std::vector<VgpuGpu>& gpus) {
  const auto names = host.list("/sys/bus/mdev/devices").value_or({});
  std::size_t seen = 0;
  for (const auto& uuid : names) {
    if (!is_uuid(uuid) || ++seen > kMaxMdevs) continue;
    const auto parent = mdev_parent(host, uuid);
    if (!parent) continue;
    const auto directory = "/sys/bus/mdev/devices/" + uuid;
    for (auto& gpu : gpus) {
      const bool here = std::any_of(gpu.parents.begin(), gpu.parents.end(),
                                    [&](const VgpuParent& one) { return one.address == *parent; });
      if (!here) continue;
      gpu.vgpus.push_back({.gpu = gpu.address,
                           .parent = *parent,
                           .uuid = uuid,
                           .type_id = link_name(host, directory + "/mdev_type"),
                           .iommu_group = group_of(host, directory)});
    }
  }
}

void add_known_types(VgpuGpu& gpu, const KnownTypes& known) {
  const auto found = known.find(known_types_key(gpu));
  if (found == known.end() || gpu.framework != Framework::VendorVfio) return;
  for (const auto& [id, name] : found->second)
    add_type(gpu, {.id = id, .name = name, .key = type_key(name)});
}

bool mig_backed_type(const VgpuType& type) {
  const auto name = parse_type_name(type.key);
  return name && name->mig_backed();
}

// Every virtual function says what would fit on it alone; together they share one framebuffer.
void limit_available(VgpuGpu& gpu) {
  std::uint64_t used = 0;
  for (const auto& vgpu : gpu.vgpus) {
    const auto* type = gpu.find_type_id(vgpu.type_id);
    used += type == nullptr ? 0 : type->framebuffer_mib;
  }
  for (auto& type : gpu.types) {
    if (gpu.framework == Framework::MdevOnPf || type.framebuffer_mib == 0) continue;
    if (mig_backed_type(type)) {
      const auto all = static_cast<std::size_t>(gpu.gpu_instances.value_or(type.available));
      const auto left = all - std::min(all, gpu.vgpus.size());
      type.available = std::min(type.available, static_cast<unsigned>(left));
      continue;
    }
    const auto left = gpu.framebuffer_mib - std::min(used, gpu.framebuffer_mib);
    type.available =
        static_cast<unsigned>(std::min<std::uint64_t>(type.available, left / type.framebuffer_mib));
  }
}

void finish(VgpuGpu& gpu) {
  for (auto& vgpu : gpu.vgpus) {
    const auto* type = gpu.find_type_id(vgpu.type_id);
    if (type != nullptr) vgpu.type = type->key;
  }
  for (auto& type : gpu.types) {
    const auto all = type.framebuffer_mib * std::max(1U, type.max_instances);
    if (!mig_backed_type(type)) gpu.framebuffer_mib = std::max(gpu.framebuffer_mib, all);
  }
  for (auto& type : gpu.types) {
    if (type.max_instances == 0 && type.framebuffer_mib != 0 && !mig_backed_type(type))
      type.max_instances = static_cast<unsigned>(gpu.framebuffer_mib / type.framebuffer_mib);
    if (gpu.framework == Framework::MdevOnVfs || gpu.framework == Framework::VendorVfio)
      type.max_instances = std::min(type.max_instances, static_cast<unsigned>(gpu.parents.size()));
  }
  limit_available(gpu);
  std::sort(gpu.types.begin(), gpu.types.end(), [](const VgpuType& a, const VgpuType& b) {
    return std::tie(a.framebuffer_mib, a.key, a.id) < std::tie(b.framebuffer_mib, b.key, b.id);
  });
  std::sort(gpu.vgpus.begin(), gpu.vgpus.end(), [](const Vgpu& a, const Vgpu& b) {
    return std::tie(a.parent, a.uuid) < std::tie(b.parent, b.uuid);
  });
}

std::string why_none(const sys::Host& host, const VgpuGpu& gpu) {
  const auto driver = link_name(host, pci_directory(gpu.address) + "/driver");
  if (driver.empty()) return "no driver is bound to it";
  if (driver != "nvidia") return fmt::format("it is bound to {}, not to nvidia", driver);
  if (!host.exists("/sys/module/nvidia_vgpu_vfio"))
    return "the vGPU host driver is not loaded: there is no module nvidia_vgpu_vfio";
  return "the vGPU host driver offers nothing on it: nvidia-vgpud has not run, or the GPU has no "
         "vGPUs";
}

// The order of detection: vendor-VFIO, mdev, virtual functions that are off, nothing.
void read_gpu(const sys::Host& host, VgpuGpu& gpu) {
  const auto directory = pci_directory(gpu.address);
  gpu.total_vfs = bounded(number_in(host, directory + "/sriov_totalvfs"), kMaxVfs);
  std::vector<model::PciAddress> vendor;
  for (const auto& vf : virtual_functions(host, gpu.address)) {
    if (host.exists(vendor_file(vf, "current_vgpu_type"))) {
      gpu.framework = Framework::VendorVfio;
      vendor.push_back(vf);
    } else if (host.exists(types_directory(vf))) {
      gpu.framework = Framework::MdevOnVfs;
      read_mdev_parent(host, gpu, vf);
    }
  }
  read_vendor_parents(host, gpu, vendor);
  if (gpu.framework == Framework::None && host.exists(types_directory(gpu.address))) {
    gpu.framework = Framework::MdevOnPf;
    read_mdev_parent(host, gpu, gpu.address);
  }
  if (gpu.framework != Framework::None || !gpu.problem.empty()) return;
  const bool bound = link_name(host, directory + "/driver") == "nvidia";
  if (bound && !gpu.is_turing() && gpu.total_vfs > 0 && gpu.enabled_vfs == 0 &&
      host.exists("/sys/module/nvidia_vgpu_vfio")) {
    gpu.framework = Framework::VfsOff;
    gpu.problem = "its virtual functions are not enabled";
    return;
  }
  gpu.problem = why_none(host, gpu);
}

void read_holders(const sys::Host& host, std::vector<VgpuGpu>& gpus) {
  bool any = false;
  for (const auto& gpu : gpus) any = any || !gpu.vgpus.empty();
  if (!any) return;
  const auto open = open_vfio_nodes(host);
  for (auto& gpu : gpus) {
    for (auto& vgpu : gpu.vgpus) vgpu.holders = holders_of(host, vgpu, open);
  }
}

}  // namespace

std::string pci_directory(const model::PciAddress& address) {
  return "/sys/bus/pci/devices/" + address.sysfs();
}

std::string known_types_key(const VgpuGpu& gpu) {
  return fmt::format("{:04x}:{:04x}", gpu.vendor, gpu.device);
}

std::vector<model::PciAddress> virtual_functions(const sys::Host& host,
                                                 const model::PciAddress& gpu) {
  std::vector<model::PciAddress> found;
  for (std::size_t i = 0; i < kMaxVfs; ++i) {
    const auto link = host.link(fmt::format("{}/virtfn{}", pci_directory(gpu), i));
    if (!link.ok()) break;
    if (const auto address = model::PciAddress::parse(last_part(*link))) found.push_back(*address);
  }
  return found;
}

Result<std::string> read_vendor_type(const sys::Host& host, const model::PciAddress& function) {
  return vendor_type(
      sys::read_with_deadline(host, vendor_file(function, "current_vgpu_type"), kLockDeadline));
}

Result<std::uint64_t> read_enabled_vfs(const sys::Host& host, const model::PciAddress& gpu) {
  const auto path = pci_directory(gpu) + "/sriov_numvfs";
  const auto text = sys::read_with_deadline(host, path, kLockDeadline);
  if (text.ok()) return parse_u64(trim(*text)).value_or(0);
  if (text.error().code() == Errc::NotFound) return std::uint64_t{0};
  return text.error();
}

bool offers_vgpus(const sys::Host& host, const model::PciAddress& function) {
  return host.exists(vendor_file(function, "current_vgpu_type")) ||
         host.exists(types_directory(function));
}

std::vector<VgpuGpu> read_host(const sys::Host& host, const KnownTypes& known) {
  std::vector<VgpuGpu> gpus;
  for (const auto& name : host.list("/sys/bus/pci/devices").value_or({})) {
    const auto address = model::PciAddress::parse(name);
    if (!address || gpus.size() == kMaxGpus || !is_gpu(host, pci_directory(*address))) continue;
    VgpuGpu gpu{.address = *address};
    gpu.vendor = model::kNvidiaVendor;
    gpu.device = bounded(number_in(host, pci_directory(*address) + "/device"), 0xffff);
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const VgpuGpu& a, const VgpuGpu& b) { return a.address < b.address; });
  add_driver_facts(host, gpus);
  add_enabled_vfs(host, gpus);
  unsigned index = 0;
  for (auto& gpu : gpus) {
    gpu.index = index++;
    read_gpu(host, gpu);
    add_known_types(gpu, known);
  }
  read_mdevs(host, gpus);
  for (auto& gpu : gpus) finish(gpu);
  read_holders(host, gpus);
  return gpus;
}

bool remember_types(const std::vector<VgpuGpu>& gpus, KnownTypes& known) {
  bool changed = false;
  for (const auto& gpu : gpus) {
    if (gpu.framework != Framework::VendorVfio) continue;
    auto& names = known[known_types_key(gpu)];
    for (const auto& type : gpu.types) {
      auto& name = names[type.id];
      changed = changed || name != type.name;
      name = type.name;
    }
  }
  return changed;
}

}  // namespace gantry::vgpu
