// SPDX-License-Identifier: Apache-2.0
// The changes of an injection in the tree: config space, capability files, the loaded driver.
#include "base/core/text.hpp"
#include "sim/machine/inject_internal.hpp"
#include "sim/machine/kernel_log.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace gantry::sim {
namespace {

constexpr std::string_view kNodeTable = "/dev.table";

std::string kept(std::string_view path) {
  return fmt::format("{}/aside{}", kBackupPath, path);
}

std::string address_of(const gantry_sim_gpu& gpu) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", gpu.domain, gpu.bus, gpu.device, gpu.function);
}

std::string gpu_node(const gantry_sim_gpu& gpu) {
  return fmt::format("/dev/nvidia{}", gpu.minor);
}

// rename(2) between two directories of the tree, through descriptors that cannot lead out of it.
Status move(const sys::Host& host, const std::string& from, const std::string& to) {
  GANTRY_TRY(const sys::UniqueFd source, host.open(parent_directory(from), O_PATH | O_DIRECTORY));
  GANTRY_TRY(const sys::UniqueFd target, host.open(parent_directory(to), O_PATH | O_DIRECTORY));
  if (::renameat(source.get(), std::string(base_name(from)).c_str(), target.get(),
                 std::string(base_name(to)).c_str()) != 0) {
    return Error::sys(errno, fmt::format("move {} to {}", from, to));
  }
  return {};
}

std::string removed(std::uint32_t gpu, std::string_view path = "") {
  return fmt::format("{}/removed/{}{}", kBackupPath, gpu, path);
}

bool is_there(const sys::Host& host, const std::string& path) {
  return host.link_info(path).ok();
}

Status make_keep(const sys::Host& host, const std::string& path) {
  TreeWriter out(host.root(), DeviceNodes::Table);
  out.directory(parent_directory(kept(path)));
  return out.status();
}

Status put_aside(const sys::Host& host, const std::string& path) {
  if (!is_there(host, path) || is_there(host, kept(path))) return {};
  GANTRY_CHECK(make_keep(host, path));
  return move(host, path, kept(path));
}

// Replaces the content temporarily. The original gets a second name, to be restored later, and is
// then replaced; the file exists all the time.
Status stand_in(const sys::Host& host, const std::string& path, std::string_view content,
                unsigned mode) {
  if (!is_there(host, kept(path))) {
    GANTRY_CHECK(make_keep(host, path));
    GANTRY_TRY(const sys::UniqueFd from, host.open(parent_directory(path), O_PATH | O_DIRECTORY));
    GANTRY_TRY(const sys::UniqueFd to,
               host.open(parent_directory(kept(path)), O_PATH | O_DIRECTORY));
    const auto name = std::string(base_name(path));
    if (::linkat(from.get(), name.c_str(), to.get(), name.c_str(), 0) != 0)
      return Error::sys(errno, fmt::format("keep {}", path));
  }
  TreeWriter out(host.root(), DeviceNodes::Table);
  out.file(path, content, mode);
  return out.status();
}

Status take_back(const sys::Host& host, const std::string& path) {
  if (!is_there(host, kept(path))) return {};
  // A file may have a temporary replacement now; a directory was only moved away.
  const auto what = host.link_info(kept(path));
  if (is_there(host, path) && what->kind == sys::FileKind::Directory) return {};
  GANTRY_CHECK(move(host, kept(path), path));
  // rename(2) does nothing if both names are the same file: an injector was killed before it
  // replaced the file.
  GANTRY_TRY(const sys::UniqueFd keep,
             host.open(parent_directory(kept(path)), O_PATH | O_DIRECTORY));
  if (::unlinkat(keep.get(), std::string(base_name(path)).c_str(), 0) != 0 && errno != ENOENT)
    return Error::sys(errno, fmt::format("remove {}", kept(path)));
  return {};
}

// Removes the driver's lines from /proc/modules and /proc/devices; the whole file is saved.
Status hide_lines(const sys::Host& host, const std::string& path) {
  GANTRY_TRY(const std::string whole, host.read(path));
  std::string rest;
  for (const auto line : lines(whole)) {
    if (!contains(line, "nvidia")) rest += std::string(line) + "\n";
  }
  return stand_in(host, path, rest, 0444);
}

constexpr std::size_t kMostConfigSpace = 4096;  // PCI Express; 256 before

std::string gpu_log_name(const gantry_sim_gpu& gpu) {
  return log_name(gpu.domain, gpu.bus, gpu.device);
}

std::string kept_log() {
  return fmt::format("{}/dmesg", kBackupPath);
}

Status write_log(const sys::Host& host, std::string_view text) {
  TreeWriter out(host.root(), DeviceNodes::Table);
  out.file(kKernelLog, text, 0644);
  return out.status();
}

std::vector<std::string> gpu_places(const gantry_sim_gpu& gpu) {
  const auto address = address_of(gpu);
  return {"/proc/driver/nvidia/gpus/" + address, "/sys/bus/pci/drivers/nvidia/" + address,
          "/sys/bus/pci/devices/" + address,
          fmt::format("/proc/driver/nvidia/capabilities/gpu{}", gpu.minor), gpu_node(gpu)};
}

Status need_driver(const StateFile& file) {
  if (file.state().driver_unloaded == 0) return {};
  return Error(Errc::Busy,
               "the driver is not loaded, so there is no GPU to lose or to find; `gantry sim "
               "inject load` loads it");
}

// If nodes are lines of dev.table: removes the node's line and saves it.
Status hide_line_of_node(const sys::Host& host, std::uint32_t gpu, const std::string& node) {
  if (!host.exists(kNodeTable)) return {};
  GANTRY_TRY(const std::string table, host.read(kNodeTable));
  std::string rest, mine;
  for (const auto line : lines(table))
    (line.starts_with(node + " ") ? mine : rest) += std::string(line) + "\n";
  TreeWriter out(host.root(), DeviceNodes::Table);
  if (!mine.empty()) out.file(removed(gpu, kNodeTable), mine, 0644);
  out.file(kNodeTable, rest, 0644);
  return out.status();
}

Status bring_line_of_node_back(const sys::Host& host, std::uint32_t gpu) {
  const auto line = host.read(removed(gpu, kNodeTable));
  if (!line.ok()) return {};
  GANTRY_TRY(const std::string table, host.read(kNodeTable));
  std::vector<std::string> all;
  for (const auto each : lines(table)) all.emplace_back(each);
  for (const auto each : lines(*line)) all.emplace_back(each);
  std::sort(all.begin(), all.end());  // as TreeWriter writes it
  TreeWriter out(host.root(), DeviceNodes::Table);
  out.file(kNodeTable, fmt::format("{}\n", fmt::join(all, "\n")), 0644);
  return out.status();
}

std::vector<std::string> driver_places(const sys::Host& host) {
  std::vector<std::string> places = {"/proc/driver/nvidia", "/proc/driver/nvidia-caps",
                                     "/proc/driver/nvidia-nvswitch"};
  const auto modules = host.list("/sys/module");
  const auto kept_modules = host.list(kept("/sys/module"));
  for (const auto* names : {&modules, &kept_modules}) {
    if (!names->ok()) continue;
    for (const auto& name : **names) {
      if (name == "nvidia" || name.starts_with("nvidia_")) places.push_back("/sys/module/" + name);
    }
  }
  const auto functions = host.list("/sys/bus/pci/devices");
  if (functions.ok()) {
    for (const auto& name : *functions) {
      const auto device = host.resolve("/sys/bus/pci/devices/" + name);
      if (!device.ok()) continue;
      const auto driver = host.link(*device + "/driver");
      const bool driven = driver.ok() && base_name(*driver).starts_with("nvidia");
      if (driven || is_there(host, kept(*device + "/driver")))
        places.push_back(*device + "/driver");
    }
  }
  places.emplace_back("/sys/bus/pci/drivers/nvidia");
  places.emplace_back("/sys/bus/pci/drivers/nvidia-nvswitch");
  return places;
}

}  // namespace

Status set_config_space(const StateFile& file, std::uint32_t gpu, ConfigSpace how) {
  const auto& host = file.host();
  const auto link = "/sys/bus/pci/devices/" + address_of(file.machine().gpu[gpu]);
  const auto device = host.resolve(link);
  if (!device.ok()) return {};  // a machine without this function in sysfs
  const auto path = *device + "/config";
  if (how == ConfigSpace::Readable) return take_back(host, path);
  const auto config = host.info(path);
  if (!config.ok()) return {};
  // The size comes from the tree, so it is not trusted: a sparse file can claim terabytes.
  if (config->kind != sys::FileKind::Regular || config->size > kMostConfigSpace) {
    return Error(Errc::Corrupt,
                 fmt::format("{} is not a PCI configuration space of at most {} bytes; create the "
                             "tree again with `gantry sim create --force`",
                             path, kMostConfigSpace));
  }
  return stand_in(host, path, std::string(config->size, '\xff'), 0644);
}

Status log_xid(const StateFile& file, std::uint32_t gpu, std::uint32_t xid) {
  auto log = file.host().read(kKernelLog);
  if (!log.ok() && log.error().code() != Errc::NotFound) return std::move(log).error();
  auto text = std::move(log).value_or("");
  const auto& card = file.machine().gpu[gpu];
  const auto where = gpu_log_name(card);
  const auto add = [&](std::string_view line) {
    text += fmt::format("[ {:>4}.000000] {}\n", 900 + lines(text).size(), line);
  };
  // The driver logs once which GPU is at this address.
  const auto introduction = fmt::format("NVRM: GPU at {}: {}", where, card.uuid);
  if (!contains(text, introduction)) add(introduction);
  add(xid_line(where, xid, driver_major(file.machine().kernel_version)));
  return write_log(file.host(), text);
}

// Lines from the creation of the machine stay.
Status remove_xid_lines(const StateFile& file, std::uint32_t gpu) {
  const auto log = file.host().read(kKernelLog);
  const auto mark = gpu_log_name(file.machine().gpu[gpu]);
  if (!log.ok() || !contains(*log, mark)) return {};
  const auto first = file.host().read(kept_log()).value_or("");
  const auto old = lines(first);
  std::string rest;
  for (const auto line : lines(*log)) {
    const bool injected = contains(line, "NVRM: ") && contains(line, mark) &&
                          std::find(old.begin(), old.end(), line) == old.end();
    if (!injected) rest += std::string(line) + "\n";
  }
  return write_log(file.host(), rest);
}

Status set_mig_capabilities(StateFile& file, std::uint32_t gpu) {
  const auto& machine = file.machine();
  const auto& card = machine.gpu[gpu];
  if (machine.caps_major == 0 || card.mig_capable == 0 || file.state().driver_unloaded != 0 ||
      is_there(file.host(), removed(gpu)))
    return {};
  TreeWriter out(file.host().root(), DeviceNodes::Auto);
  GANTRY_CHECK(out.open_existing());
  remove_mig_capabilities(out, card);
  write_mig_capabilities(out, card, file.state().gpu[gpu], {.caps_major = machine.caps_major});
  out.finish();
  return out.status();
}

Status hide_gpu(const StateFile& file, std::uint32_t gpu) {
  GANTRY_CHECK(need_driver(file));
  const auto& host = file.host();
  const auto& card = file.machine().gpu[gpu];
  for (const auto& place : gpu_places(card)) {
    const auto keep = removed(gpu, place);
    if (!is_there(host, place) || is_there(host, keep)) continue;
    TreeWriter out(host.root(), DeviceNodes::Table);
    out.directory(parent_directory(keep));
    GANTRY_CHECK(out.status());
    GANTRY_CHECK(move(host, place, keep));
  }
  return hide_line_of_node(host, gpu, gpu_node(card));
}

Status restore_gpu(const StateFile& file, std::uint32_t gpu) {
  const auto& host = file.host();
  if (!is_there(host, removed(gpu))) return {};
  GANTRY_CHECK(need_driver(file));
  GANTRY_CHECK(bring_line_of_node_back(host, gpu));
  const auto places = gpu_places(file.machine().gpu[gpu]);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (is_there(host, removed(gpu, *place)))
      GANTRY_CHECK(move(host, removed(gpu, *place), *place));
  }
  TreeWriter out(host.root(), DeviceNodes::Table);
  out.remove(removed(gpu));
  return out.status();
}

Status renew_boot_id(const sys::Host& host) {
  constexpr std::string_view kBootId = "/proc/sys/kernel/random/boot_id";
  GANTRY_TRY(std::string id, host.read(kBootId));
  for (auto& digit : id) {  // counts up its first digits
    if (digit == '-') continue;
    digit = digit == '9' ? 'a' : digit == 'f' ? '0' : static_cast<char>(digit + 1);
    if (digit != '0') break;
  }
  TreeWriter out(host.root(), DeviceNodes::Table);
  out.file(std::string(kBootId), id);
  return out.status();
}

Status hide_driver(const sys::Host& host) {
  GANTRY_CHECK(hide_lines(host, "/proc/modules"));
  GANTRY_CHECK(hide_lines(host, "/proc/devices"));
  for (const auto& place : driver_places(host)) GANTRY_CHECK(put_aside(host, place));
  return {};
}

Status restore_driver(const sys::Host& host) {
  for (const auto& place : driver_places(host)) GANTRY_CHECK(take_back(host, place));
  GANTRY_CHECK(take_back(host, "/proc/devices"));
  return take_back(host, "/proc/modules");
}

}  // namespace gantry::sim
