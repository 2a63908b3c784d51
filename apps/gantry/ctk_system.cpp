// SPDX-License-Identifier: Apache-2.0
// nvidia-ctk system: creates the driver's device nodes and their links in /dev/char. Without the
// links, some versions of runc and systemd take the GPUs from running containers at a
// daemon-reload.
#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/kernel.hpp"
#include "gantry/nvidia_ctk.hpp"
#include "gpu/driver/device_nodes.hpp"
#include "gpu/probe/pci.hpp"
#include "gpu/procfs/device_numbers.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace gantry::cli {
namespace {

struct SystemOptions {
  std::string driver_root;  // "": the machine's own
  std::string dev_root;     // "": the driver root's /dev if it has one, else the machine's
  std::string char_path = "/dev/char";
  bool control_devices = false;
  bool load_modules = false;
  bool create_all = false;
  bool create_nodes = false;
  bool dry_run = false;
};

struct Node {
  std::string path;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

constexpr std::uint32_t kControlMinor = 255;
constexpr std::uint32_t kModesetMinor = 254;
constexpr std::array kModules{"nvidia", "nvidia-uvm", "nvidia-modeset"};
constexpr std::chrono::seconds kModprobeDeadline{60};

procfs::CharMajors majors_of(const sys::Host& machine) {
  return procfs::parse_proc_devices(machine.read("/proc/devices").value_or(""));
}

std::optional<std::uint32_t> gpu_major(const procfs::CharMajors& majors) {
  const auto major = majors.of("nvidia");
  return major ? major : majors.of("nvidia-frontend");  // its name before 550.40
}

std::vector<Node> control_nodes(const procfs::CharMajors& majors) {
  std::vector<Node> nodes;
  if (const auto major = gpu_major(majors)) {
    nodes.push_back({"/dev/nvidiactl", *major, kControlMinor});
    nodes.push_back({"/dev/nvidia-modeset", *major, kModesetMinor});
  }
  if (const auto major = majors.of("nvidia-uvm")) {
    nodes.push_back({"/dev/nvidia-uvm", *major, 0});
    nodes.push_back({"/dev/nvidia-uvm-tools", *major, 1});
  }
  return nodes;
}

// The file has the capabilities of 32 GPUs, however many there are.
bool is_of_gpu_beyond(const procfs::MigMinor& row, std::uint32_t gpus) {
  using enum procfs::MigMinorKind;
  return (row.node == GpuInstance || row.node == ComputeInstance) && row.gpu >= gpus;
}

// Every node that the driver could have, whether it exists or not.
Result<std::vector<Node>> all_nodes(const sys::Host& machine) {
  const auto majors = majors_of(machine);
  auto nodes = control_nodes(majors);
  GANTRY_TRY(const auto scan, probe::scan_pci(machine));
  std::uint32_t minor = 0;
  if (const auto major = gpu_major(majors)) {
    for (const auto& device : scan.devices) {
      if (!device.function.is_gpu()) continue;
      nodes.push_back({fmt::format("/dev/nvidia{}", minor), *major, minor});
      ++minor;
    }
  }
  if (const auto major = majors.of("nvidia-caps")) {
    GANTRY_TRY(const auto capabilities, driver::read_mig_minors(machine));
    for (const auto& row : capabilities.rows) {
      if (is_of_gpu_beyond(row, minor)) continue;
      nodes.push_back({driver::capability_node(row.minor), *major, row.minor});
    }
  }
  return nodes;
}

// The nodes that exist, without those of other drivers.
std::vector<Node> present_nodes(const sys::Host& devices) {
  std::vector<Node> nodes;
  for (const auto* directory : {"/dev", "/dev/nvidia-caps"}) {
    for (const auto& path : devices.device_paths(directory)) {
      const auto name = std::string_view(path).substr(path.rfind('/') + 1);
      if (!name.starts_with("nvidia") || name.starts_with("nvidia-fs") ||
          name.starts_with("nvidia-nvswitch") || name.starts_with("nvidia-nvlink")) {
        continue;
      }
      const auto info = devices.device(path);
      if (info.ok() && info->kind == sys::FileKind::CharDevice) {
        nodes.push_back({path, info->major, info->minor});
      }
    }
  }
  return nodes;
}

std::string joined(const std::string& root, std::string_view path) {
  return root == "/" || root.empty() ? std::string(path) : root + std::string(path);
}

// Runs the machine's modprobe, or the one in the driver root that the flag named.
Status load_named_modules(const SystemOptions& options, const sys::Host& machine,
                          sys::Kernel& kernel, const Context& context) {
  for (const auto* name : kModules) {
    if (options.dry_run) {
      fmt::print(context.out, "modprobe {}\n", name);
    } else if (options.driver_root.empty() || options.driver_root == "/") {
      GANTRY_CHECK(kernel.load_module(machine, name).in(name));
    } else {
      GANTRY_TRY(
          const auto result,
          sys::run_command({"chroot", options.driver_root, "modprobe", name}, kModprobeDeadline));
      if (result.status != 0) {
        return Error(Errc::Internal, fmt::format("modprobe {} in {}: {}", name, options.driver_root,
                                                 trim(result.output)));
      }
    }
  }
  return {};
}

// The directory of the nodes: a containerised driver often has no /dev.
Result<sys::Host> device_host(const SystemOptions& options, const Context& context) {
  if (!options.dev_root.empty()) return sys::Host::at(joined(context.root, options.dev_root));
  if (!options.driver_root.empty()) {
    GANTRY_TRY(auto host, sys::Host::at(joined(context.root, options.driver_root)));
    if (host.exists("/dev")) return host;
  }
  return sys::Host::at(context.root);
}

Status make_nodes(const std::vector<Node>& nodes, const SystemOptions& options,
                  const sys::Host& devices, sys::Kernel& kernel, const Context& context) {
  if (nodes.empty()) {
    return Error(Errc::NotFound,
                 "/proc/devices has no nvidia entry: is the driver loaded? (--load-kernel-modules "
                 "loads it)");
  }
  for (const auto& node : nodes) {
    if (devices.device(node.path).ok()) continue;
    if (options.dry_run) {
      fmt::print(context.out, "mknod -m 0666 {} c {} {}\n", devices.outside(node.path), node.major,
                 node.minor);
      continue;
    }
    GANTRY_CHECK(kernel.make_char_device(devices, node.path,
                                         {.kind = sys::FileKind::CharDevice,
                                          .mode = 0666,
                                          .major = node.major,
                                          .minor = node.minor}));
  }
  return {};
}

Result<int> create_device_nodes(const SystemOptions& options, const Context& context) {
  GANTRY_TRY(const auto machine, sys::Host::at(context.root));
  GANTRY_TRY(const auto devices, device_host(options, context));
  const auto kernel = sys::real_kernel();
  if (options.load_modules) GANTRY_CHECK(load_named_modules(options, machine, *kernel, context));
  if (options.control_devices) {
    GANTRY_CHECK(make_nodes(control_nodes(majors_of(machine)), options, devices, *kernel, context));
  }
  return kOk;
}

// Relative links, as udev writes them, so that they also work inside a container's /dev.
std::string link_target(const std::string& directory, const std::string& node) {
  return directory == "/dev/char" ? ".." + node.substr(4) : node;
}

Result<int> create_char_links(const SystemOptions& options, const Context& context) {
  GANTRY_TRY(const auto machine, sys::Host::at(context.root));
  GANTRY_TRY(const auto devices, device_host(options, context));
  const auto kernel = sys::real_kernel();
  if (options.load_modules) GANTRY_CHECK(load_named_modules(options, machine, *kernel, context));
  if (options.create_nodes) {
    GANTRY_CHECK(make_nodes(control_nodes(majors_of(machine)), options, devices, *kernel, context));
  }
  GANTRY_TRY(const auto nodes, options.create_all
                                   ? all_nodes(machine)
                                   : Result<std::vector<Node>>(present_nodes(devices)));
  if (!options.dry_run && !nodes.empty()) {
    GANTRY_CHECK(kernel->make_directory(machine, options.char_path));
  }
  for (const auto& node : nodes) {
    const auto link = fmt::format("{}/{}:{}", options.char_path, node.major, node.minor);
    const auto target = link_target(options.char_path, node.path);
    const auto there = machine.link(link);
    if (there.ok() && (*there == target || *there == node.path)) continue;
    if (options.dry_run) {
      fmt::print(context.out, "ln -s {} {}\n", target, machine.outside(link));
      continue;
    }
    GANTRY_CHECK(kernel->make_symlink(machine, link, target));
  }
  return kOk;
}

// Does not use CLI11's envname(): see Context.
std::shared_ptr<SystemOptions> options_of_process() {
  auto options = std::make_shared<SystemOptions>();
  const auto take = [](const char* name, std::string& value) {
    if (const char* text = std::getenv(name); text != nullptr && *text != '\0') value = text;
  };
  take("DRIVER_ROOT", options->driver_root);
  take("NVIDIA_DRIVER_ROOT", options->driver_root);
  take("NVIDIA_DEV_ROOT", options->dev_root);
  take("DEV_CHAR_PATH", options->char_path);
  return options;
}

void add_roots(CLI::App& command, SystemOptions& options) {
  command
      .add_option("--driver-root,--root", options.driver_root, "Directory of the driver's files")
      ->type_name("DIR");
  command.add_option("--dev-root", options.dev_root, "Directory of the driver's device nodes")
      ->type_name("DIR");
  command.add_flag("--load-kernel-modules", options.load_modules,
                   "Load the driver's modules first");
  command.add_flag("--dry-run", options.dry_run, "Print the commands without running them");
}

}  // namespace

void add_ctk_system(CLI::App& app, Context& /*context*/, Action& chosen) {
  auto* system = app.add_subcommand("system", "The driver's device nodes");
  system->require_subcommand(1);
  auto options = options_of_process();
  auto* nodes = system->add_subcommand("create-device-nodes", "Create the driver's control nodes");
  add_roots(*nodes, *options);
  nodes->add_flag("--control-devices", options->control_devices,
                  "nvidiactl, nvidia-modeset, nvidia-uvm, nvidia-uvm-tools");
  nodes->callback([options, &chosen] {
    chosen = [options](Context& ctx) { return create_device_nodes(*options, ctx); };
  });
  auto* links =
      system->add_subcommand("create-dev-char-symlinks", "Create links to the nodes in /dev/char");
  add_roots(*links, *options);
  links->add_option("--dev-char-path", options->char_path, "The directory of the links")
      ->type_name("DIR")
      ->capture_default_str();
  links->add_flag("--create-all", options->create_all,
                  "For every node that the driver could have, not only for existing ones");
  links->add_flag("--create-device-nodes", options->create_nodes, "Create the control nodes first");
  links->callback([options, &chosen] {
    chosen = [options](Context& ctx) { return create_char_links(*options, ctx); };
  });
}

}  // namespace gantry::cli
