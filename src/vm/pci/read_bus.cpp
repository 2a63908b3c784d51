// SPDX-License-Identifier: Apache-2.0
#include "vm/pci/read_bus.hpp"

#include "base/core/text.hpp"
#include "base/sys/deadline_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace gantry::pci {
namespace {

using model::PciAddress;

constexpr std::string_view kDevices = "/sys/bus/pci/devices";
constexpr std::string_view kGroups = "/sys/kernel/iommu_groups";
constexpr std::size_t kAttributeLimit = 4096;  // a sysfs attribute has one page
constexpr std::size_t kConfigLimit = 4096;
constexpr std::size_t kMaxFunctions = 65536;
constexpr std::size_t kMaxVfs = 65535;
constexpr std::size_t kBars = 6;
constexpr std::size_t kUuidLength = 36;
constexpr std::chrono::seconds kLockDeadline{2};  // the lock is held for milliseconds otherwise

// One attribute file of one device's directory.
class Directory {
 public:
  Directory(const sys::Host& host, std::string path) : host_(host), path_(std::move(path)) {}

  std::string text(std::string_view name) const {
    const auto content = host_.read(join(name), kAttributeLimit);
    return content.ok() ? std::string(trim(*content)) : "";
  }
  std::uint64_t number(std::string_view name, std::uint64_t max) const {
    const auto parsed = parse_u64(text(name), 0);
    return parsed && *parsed <= max ? *parsed : 0;
  }
  std::string link_name(std::string_view name) const {
    const auto target = host_.link(join(name));
    return target.ok() ? target->substr(target->rfind('/') + 1) : "";
  }
  bool has(std::string_view name) const { return host_.exists(join(name)); }
  std::vector<std::string> names(std::string_view folder = "") const {
    auto found = host_.list(folder.empty() ? path_ : join(folder));
    return found.ok() ? *std::move(found) : std::vector<std::string>{};
  }
  const std::string& path() const { return path_; }
  const sys::Host& host() const { return host_; }

 private:
  std::string join(std::string_view name) const { return fmt::format("{}/{}", path_, name); }
  const sys::Host& host_;
  std::string path_;
};

std::string without_null(std::string text) {
  return text == "(null)" ? "" : text;
}

std::vector<Bar> parse_resource(std::string_view text, std::optional<Bar>& rom) {
  std::vector<Bar> bars(kBars);
  std::size_t index = 0;
  for (const auto line : lines(text)) {
    const auto fields = split(trim(line), ' ');
    if (fields.size() != 3 || index > kBars) break;
    const auto start = parse_u64(fields[0], 0);
    const auto end = parse_u64(fields[1], 0);
    const auto flags = parse_u64(fields[2], 0);
    if (!start || !end || !flags) break;
    Bar bar;
    if (*flags != 0 && *end >= *start) {
      bar = {.start = *start, .size = *end - *start + 1, .flags = *flags};
    }
    if (index < kBars) {
      bars[index] = bar;
    } else if (bar.size != 0) {
      rom = bar;
    }
    ++index;
  }
  return bars;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at, int count) {
  std::uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  }
  return value;
}

std::string read_serial(const Directory& device) {
  const auto direct = device.text("serial_number");  // Linux 6.18 and later
  if (!direct.empty()) return to_lower(direct);
  const auto config = device.host().read(device.path() + "/config", kConfigLimit);
  return config.ok() ? find_serial(*config) : "";
}

bool answers(const Directory& device) {
  const auto config = device.host().read(device.path() + "/config", kConfigLimit);
  if (!config.ok() || config->size() < 4) return true;  // unknown
  return little_endian(*config, 0, 4) != 0xffffffffU;
}

CardId read_id(const Directory& device) {
  return {.vendor = static_cast<std::uint16_t>(device.number("vendor", 0xffff)),
          .device = static_cast<std::uint16_t>(device.number("device", 0xffff)),
          .subsystem_vendor = static_cast<std::uint16_t>(device.number("subsystem_vendor", 0xffff)),
          .subsystem_device = static_cast<std::uint16_t>(device.number("subsystem_device", 0xffff)),
          .revision = static_cast<std::uint8_t>(device.number("revision", 0xff)),
          .serial = ""};
}

std::optional<Sriov> read_sriov(const Directory& device) {
  if (!device.has("sriov_totalvfs")) return std::nullopt;
  Sriov found;
  found.total_vfs = static_cast<std::uint32_t>(device.number("sriov_totalvfs", kMaxVfs));
  // sysfs writes this id in hexadecimal without 0x.
  const auto id = parse_u64(device.text("sriov_vf_device"), 16);
  if (id && *id <= 0xffff) found.vf_device = static_cast<std::uint16_t>(*id);
  found.drivers_autoprobe = device.text("sriov_drivers_autoprobe") != "0";
  for (std::uint32_t i = 0; i < found.total_vfs; ++i) {
    const auto vf = PciAddress::parse(device.link_name(fmt::format("virtfn{}", i)));
    if (!vf) break;
    found.vfs.push_back(*vf);
  }
  found.num_vfs = static_cast<std::uint32_t>(found.vfs.size());
  return found;
}

// A file of some functions whose readers wait for the lock of the device. Calls `take` for each
// function with its text, if the function is not locked.
template <class Take>
void read_locked_file(const sys::Host& host, std::span<Function* const> functions,
                      std::string_view name, Take take) {
  std::vector<std::string> paths;
  for (const auto* function : functions)
    paths.push_back(fmt::format("{}/{}", device_path(function->address), name));
  const auto texts = sys::read_with_deadline(host, paths, kLockDeadline, sys::AfterTimeout::GoOn);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    functions[i]->locked = !texts[i].ok() && texts[i].error().code() == Errc::Timeout;
    if (texts[i].ok()) take(*functions[i], trim(*texts[i]));
  }
}

void read_locked_files(const sys::Host& host, std::span<Function> functions) {
  std::vector<Function*> some;
  for (auto& function : functions) {
    if (function.is_nvidia() && function.has_driver_override) some.push_back(&function);
  }
  read_locked_file(host, some, "driver_override", [](Function& function, std::string_view text) {
    function.driver_override = without_null(std::string(text));
  });
  std::erase_if(some,
                [](const Function* function) { return !function->sriov || function->locked; });
  read_locked_file(host, some, "sriov_numvfs", [](Function& function, std::string_view text) {
    const auto number = parse_u64(text);
    if (number && *number <= kMaxVfs) function.sriov->num_vfs = static_cast<std::uint32_t>(*number);
  });
}

// "controlC1" and "pcmC1D3p" below sound/card1.
std::vector<std::string> read_sound_nodes(const Directory& device) {
  std::vector<std::string> nodes;
  for (const auto& card : device.names("sound")) {
    for (auto& name : device.names("sound/" + card)) {
      if (device.has(fmt::format("sound/{}/{}/dev", card, name))) nodes.push_back(std::move(name));
    }
  }
  return nodes;
}

// The names "consumer:pci:0000:3b:00.1" and "supplier:pci:...", "card1" below drm, "vfio0" below
// vfio-dev, and directories with the UUIDs of mediated devices.
void read_names(const Directory& device, Function& function) {
  constexpr std::string_view kConsumer = "consumer:pci:";
  constexpr std::string_view kSupplier = "supplier:pci:";
  for (const std::string_view name : device.names()) {
    if (name.size() == kUuidLength && device.has(fmt::format("{}/mdev_type", name)))
      ++function.mdevs;
    const bool consumer = name.starts_with(kConsumer);
    if (!consumer && !name.starts_with(kSupplier)) continue;
    const auto other = PciAddress::parse(name.substr(kConsumer.size()));
    if (other) (consumer ? function.consumers : function.suppliers).push_back(*other);
  }
  function.drm_nodes = device.names("drm");
  std::erase_if(function.drm_nodes, [](const std::string& name) {
    return !name.starts_with("card") && !name.starts_with("renderD");
  });
  if (function.is_nvidia()) function.sound_nodes = read_sound_nodes(device);
  for (auto& name : device.names("vfio-dev")) {
    if (name.starts_with("vfio")) function.vfio_device = std::move(name);
  }
}

void read_display_and_reset(const Directory& device, Function& function) {
  function.boot_vga = device.text("boot_vga") == "1";
  function.can_reset = device.has("reset");
  const auto methods = device.text("reset_method");
  for (const auto method : split(methods, ' ')) {
    if (!method.empty()) function.reset_methods.emplace_back(method);
  }
  function.power_state = device.text("power_state");
  if (!function.is_nvidia()) return;
  function.answers = answers(device);
  function.id.serial = read_serial(device);
}

Function read_device(const Directory& device, const PciAddress& address) {
  Function f;
  f.address = address;
  f.path = device.host().resolve(device.path()).value_or(device.path());
  f.id = read_id(device);
  f.class_code = static_cast<std::uint32_t>(device.number("class", 0xffffff));
  f.modalias = device.text("modalias");
  f.driver = device.link_name("driver");
  f.has_driver_override = device.has("driver_override");
  if (const auto group = parse_u64(device.link_name("iommu_group")); group && *group < 1U << 30U) {
    f.iommu_group = static_cast<int>(*group);
  }
  const auto node = parse_i64(device.text("numa_node"));
  if (node && *node >= 0 && *node < 1 << 20) f.numa_node = static_cast<int>(*node);
  f.cpu_list = device.text("local_cpulist");
  f.bars = parse_resource(device.text("resource"), f.rom);
  read_names(device, f);
  read_display_and_reset(device, f);
  f.sriov = read_sriov(device);
  f.physfn = PciAddress::parse(device.link_name("physfn"));
  f.vendor_vfio = f.physfn && device.has("nvidia/current_vgpu_type");
  return f;
}

std::vector<IommuGroup> read_groups(const sys::Host& host) {
  std::vector<IommuGroup> groups;
  const auto names = host.list(kGroups);
  if (!names.ok()) return groups;
  for (const auto& name : *names) {
    const auto number = parse_u64(name);
    if (!number || *number >= 1U << 30U) continue;
    const Directory group(host, fmt::format("{}/{}", kGroups, name));
    IommuGroup found{
        .number = static_cast<int>(*number), .type = group.text("type"), .members = {}};
    for (const auto& member : group.names("devices")) {
      if (const auto address = PciAddress::parse(member)) found.members.push_back(*address);
    }
    std::sort(found.members.begin(), found.members.end());
    groups.push_back(std::move(found));
  }
  std::sort(groups.begin(), groups.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return groups;
}

}  // namespace

std::string device_path(const PciAddress& address) {
  return fmt::format("{}/{}", kDevices, address.sysfs());
}

Result<Bus> read_bus(const sys::Host& host) {
  GANTRY_TRY(const auto names, host.list(kDevices).in("finding PCI functions"));
  if (names.size() > kMaxFunctions)
    return Error(Errc::TooLarge, fmt::format("{} has {} entries", kDevices, names.size()));
  Bus bus;
  for (const auto& name : names) {
    const auto address = PciAddress::parse(name);
    if (!address) continue;
    auto function = read_device(Directory(host, fmt::format("{}/{}", kDevices, name)), *address);
    if (function.id.vendor == 0 || function.class_code == 0) {
      bus.notes.push_back(fmt::format("PCI function {}: vendor or class cannot be read", name));
      continue;
    }
    bus.functions.push_back(std::move(function));
  }
  read_locked_files(host, bus.functions);
  std::sort(bus.functions.begin(), bus.functions.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  bus.groups = read_groups(host);
  return bus;
}

Result<Function> read_function(const sys::Host& host, const PciAddress& address) {
  const Directory device(host, device_path(address));
  if (!device.has("vendor")) {
    return Error(Errc::NotFound, fmt::format("{} is not on the PCI bus", address.sysfs()));
  }
  auto function = read_device(device, address);
  read_locked_files(host, std::span(&function, 1));
  return function;
}

Result<CardId> read_card_id(const sys::Host& host, const PciAddress& address) {
  const Directory device(host, device_path(address));
  if (!device.has("vendor")) {
    return Error(Errc::NotFound, fmt::format("{} is not on the PCI bus", address.sysfs()));
  }
  auto id = read_id(device);
  if (id.vendor == model::kNvidiaVendor) id.serial = read_serial(device);
  return id;
}

std::string read_driver(const sys::Host& host, const PciAddress& address) {
  return Directory(host, device_path(address)).link_name("driver");
}

Result<std::string> read_driver_override(const sys::Host& host, const PciAddress& address) {
  const auto path = device_path(address) + "/driver_override";
  GANTRY_TRY(const auto text, sys::read_with_deadline(host, path, kLockDeadline));
  return without_null(std::string(trim(text)));
}

std::string find_serial(std::string_view config_space) {
  std::size_t at = 0x100;
  // The list has at most (4096 - 256) / 4 entries; a loop in a broken card must end too.
  for (int steps = 0; steps < 960 && at >= 0x100 && at + 12 <= config_space.size(); ++steps) {
    const auto header = little_endian(config_space, at, 4);
    if (header == 0 || header == 0xffffffffU) return "";
    if ((header & 0xffffU) == 0x0003U) {
      const auto low = little_endian(config_space, at + 4, 4);
      const auto high = little_endian(config_space, at + 8, 4);
      const auto byte = [](std::uint32_t word, unsigned shift) { return word >> shift & 0xffU; };
      return fmt::format("{:02x}-{:02x}-{:02x}-{:02x}-{:02x}-{:02x}-{:02x}-{:02x}", byte(high, 24),
                         byte(high, 16), byte(high, 8), byte(high, 0), byte(low, 24), byte(low, 16),
                         byte(low, 8), byte(low, 0));
    }
    at = header >> 20U & 0xffcU;
  }
  return "";
}

}  // namespace gantry::pci
