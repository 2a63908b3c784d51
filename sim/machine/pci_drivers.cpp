// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/pci_drivers.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"
#include "gpu/model/pci_address.hpp"
#include "sim/machine/state_file.hpp"

#include <fcntl.h>
#include <stdio.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::sim {
namespace {

constexpr std::string_view kPciDevices = "/sys/bus/pci/devices";
constexpr std::string_view kPciDrivers = "/sys/bus/pci/drivers";

// The drivers that the simulated kernel knows, in the order in which they are tried.
struct KnownDriver {
  std::string_view name;
  std::string_view module;
  std::string_view class_prefix;  // of the functions that it takes by itself; "" takes none
  bool nvidia_only;
};
constexpr std::array kKnownDrivers{
    KnownDriver{"nvidia", "nvidia", "0x03", true},
    KnownDriver{"nvidia-nvswitch", "nvidia", "0x0680", true},
    KnownDriver{"snd_hda_intel", "snd_hda_intel", "0x0403", false},
    KnownDriver{"xhci_hcd", "xhci_pci", "0x0c03", false},
    KnownDriver{"vfio-pci", "vfio_pci", "", false},
    KnownDriver{"nvgrace_gpu_vfio_pci", "nvgrace_gpu_vfio_pci", "", true},
};

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

class FunctionFiles {
 public:
  FunctionFiles(const sys::Host& host, std::string_view name)
      : host_(host), name_(name), path_(fmt::format("{}/{}", kPciDevices, name)) {}

  bool exists() const {
    return model::PciAddress::parse(name_).has_value() && host_.exists(path_ + "/vendor");
  }
  std::string value(std::string_view file) const {
    return host_.read_value(fmt::format("{}/{}", path_, file)).value_or("");
  }
  std::string link(std::string_view file) const {
    const auto target = host_.link(fmt::format("{}/{}", path_, file));
    return target.ok() ? base_name(*target) : "";
  }
  std::string driver() const { return link("driver"); }
  std::string driver_override() const {
    const auto text = value("driver_override");
    return text == "(null)" ? "" : text;
  }
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }

 private:
  const sys::Host& host_;
  std::string name_;
  std::string path_;
};

std::string driver_path(std::string_view driver) {
  return fmt::format("{}/{}", kPciDrivers, driver);
}

std::string aside_path(const std::string& function) {
  return fmt::format("{}/unbound/{}", kBackupPath, function);
}

std::string gpu_path(const std::string& function) {
  return fmt::format("/proc/driver/nvidia/gpus/{}", function);
}

Status move_directory(const sys::Host& host, const std::string& from, const std::string& to) {
  const auto parent = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  GANTRY_CHECK(sys::real_kernel()->make_directory(host, parent(to)));
  GANTRY_TRY(const auto source, host.open(parent(from), O_PATH | O_DIRECTORY));
  GANTRY_TRY(const auto target, host.open(parent(to), O_PATH | O_DIRECTORY));
  if (::renameat(source.get(), base_name(from).c_str(), target.get(), base_name(to).c_str()) == 0)
    return {};
  return Error::sys(errno, fmt::format("move {} to {}", from, to));
}

// new_id holds the ids that were written to it, one "10de 15f8" a line.
bool has_dynamic_id(const sys::Host& host, std::string_view driver, const FunctionFiles& function) {
  const auto ids = host.read(driver_path(driver) + "/new_id", 65536).value_or("");
  for (const auto line : lines(ids)) {
    const auto words = split(trim(line), ' ');
    if (words.size() < 2) continue;
    if (parse_u64(words[0], 16) == parse_u64(function.value("vendor"), 0) &&
        parse_u64(words[1], 16) == parse_u64(function.value("device"), 0))
      return true;
  }
  return false;
}

bool knows(const sys::Host& host, std::string_view driver, const FunctionFiles& function) {
  for (const auto& known : kKnownDrivers) {
    if (known.name != driver || known.class_prefix.empty()) continue;
    if (known.nvidia_only && function.value("vendor") != "0x10de") continue;
    if (function.value("class").starts_with(known.class_prefix)) return true;
  }
  return has_dynamic_id(host, driver, function);
}

// With an override only the driver of exactly that name matches.
bool matches(const sys::Host& host, std::string_view driver, const FunctionFiles& function) {
  const auto wanted = function.driver_override();
  return wanted.empty() ? knows(host, driver, function) : wanted == driver;
}

std::string group_node(const FunctionFiles& function) {
  const auto group = function.link("iommu_group");
  return group.empty() ? "" : "/dev/vfio/" + group;
}

Status attach(const sys::Host& host, const FunctionFiles& function, const std::string& driver) {
  const auto kernel = sys::real_kernel();
  GANTRY_TRY(const auto real, host.resolve(function.path()));
  GANTRY_CHECK(kernel->make_symlink(host, real + "/driver", driver_path(driver)));
  GANTRY_CHECK(kernel->make_symlink(host, driver_path(driver) + "/" + function.name(), real));
  if (driver == "nvidia" && host.exists(aside_path(function.name())))
    return move_directory(host, aside_path(function.name()), gpu_path(function.name()));
  const auto node = group_node(function);
  if (contains(driver, "vfio") && !node.empty() && !host.exists(node))
    return kernel->write_file(host, node, "");
  return {};
}

// The node of a group goes when the last of its members leaves vfio.
Status remove_group_node(const sys::Host& host, const FunctionFiles& function) {
  const auto node = group_node(function);
  if (node.empty() || !host.exists(node)) return {};
  const auto members =
      host.list(fmt::format("/sys/kernel/iommu_groups/{}/devices", function.link("iommu_group")));
  for (const auto& name : members.ok() ? *members : std::vector<std::string>{}) {
    if (contains(FunctionFiles(host, name).driver(), "vfio")) return {};
  }
  return sys::real_kernel()->remove_file(host, node);
}

Status detach(const sys::Host& host, const FunctionFiles& function) {
  const auto kernel = sys::real_kernel();
  const auto driver = function.driver();
  GANTRY_TRY(const auto real, host.resolve(function.path()));
  GANTRY_CHECK(kernel->remove_file(host, real + "/driver"));
  GANTRY_CHECK(kernel->remove_file(host, driver_path(driver) + "/" + function.name()));
  if (contains(driver, "vfio")) return remove_group_node(host, function);
  if (driver == "nvidia" && host.exists(gpu_path(function.name())))
    return move_directory(host, gpu_path(function.name()), aside_path(function.name()));
  return {};
}

Status probe(const sys::Host& host, const FunctionFiles& function) {
  if (!function.driver().empty()) return {};
  const auto wanted = function.driver_override();
  if (!wanted.empty()) {
    return host.exists(driver_path(wanted)) ? attach(host, function, wanted) : Status{};
  }
  for (const auto& known : kKnownDrivers) {
    const std::string name(known.name);
    if (host.exists(driver_path(name)) && matches(host, name, function))
      return attach(host, function, name);
  }
  return {};
}

Status add_id(const sys::Host& host, const std::string& path, std::string_view text) {
  auto ids = host.read(path, 65536).value_or("");
  ids += fmt::format("{}\n", trim(text));
  GANTRY_CHECK(sys::real_kernel()->write_value(host, path, ids));
  const auto driver = base_name(path.substr(0, path.rfind('/')));
  const auto names = host.list(kPciDevices);
  for (const auto& name : names.ok() ? *names : std::vector<std::string>{}) {
    const FunctionFiles function(host, name);
    const bool free = function.driver().empty() && function.driver_override().empty();
    if (free && has_dynamic_id(host, driver, function))
      GANTRY_CHECK(attach(host, function, driver));
  }
  return {};
}

}  // namespace

Status write_sysfs(const sys::Host& host, const std::string& path, std::string_view text) {
  const auto file = base_name(path);
  const auto kernel = sys::real_kernel();
  if (file == "driver_override") {
    const auto value = trim(text);
    return kernel->write_value(host, path, fmt::format("{}\n", value.empty() ? "(null)" : value));
  }
  if (file == "new_id") return add_id(host, path, text);
  if (file == "remove_id")
    return kernel->write_value(host, path.substr(0, path.rfind('/')) + "/new_id", "");
  if (file != "unbind" && file != "bind" && file != "drivers_probe")
    return kernel->write_value(host, path, std::string(text));
  if (!host.exists(path)) return Error::sys(ENOENT, fmt::format("open {}", host.outside(path)));
  const FunctionFiles function(host, trim(text));
  const auto refuse = [&](int error) {
    return Error::sys(error, fmt::format("write {}", host.outside(path)));
  };
  if (!function.exists()) return refuse(ENODEV);
  if (file == "drivers_probe") return probe(host, function);
  GANTRY_TRY(const auto real, host.resolve(path.substr(0, path.rfind('/'))));
  const auto driver = base_name(real);
  if (file == "unbind")
    return function.driver() == driver ? detach(host, function) : refuse(ENODEV);
  if (!function.driver().empty()) return refuse(EBUSY);
  return matches(host, driver, function) ? attach(host, function, driver) : refuse(ENODEV);
}

Status load_pci_driver(const sys::Host& host, const std::string& module) {
  bool found = false;
  for (const auto& known : kKnownDrivers) {
    if (known.module != module) continue;
    found = true;
    const auto directory = driver_path(known.name);
    const auto kernel = sys::real_kernel();
    GANTRY_CHECK(kernel->make_directory(host, directory));
    GANTRY_CHECK(
        kernel->write_file(host, fmt::format("/sys/module/{}/initstate", module), "live\n"));
    for (const auto* file : {"bind", "unbind", "new_id", "remove_id"})
      GANTRY_CHECK(kernel->write_file(host, fmt::format("{}/{}", directory, file), ""));
  }
  if (found) return {};
  return Error(Errc::NotFound, fmt::format("modprobe: FATAL: Module {} not found in directory "
                                           "/lib/modules",
                                           module));
}

}  // namespace gantry::sim
