// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/device_nodes.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/file_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace gantry::driver {
namespace {

using procfs::MigMinors;

constexpr std::size_t kProcLimit = std::size_t{1} << 20;
constexpr std::size_t kMigLimit = std::size_t{8} << 20;

struct KnownNode {
  std::string_view name;
  std::string_view device;  // its name in /proc/devices
  std::uint32_t minor;
  std::string_view why;
};

constexpr std::array kKnownNodes{
    KnownNode{"nvidiactl", "nvidiactl", 255, "control"},
    KnownNode{"nvidia-uvm", "nvidia-uvm", 0, "unified memory"},
    KnownNode{"nvidia-uvm-tools", "nvidia-uvm", 1, "unified memory, for profilers"},
    KnownNode{"nvidia-modeset", "nvidia-modeset", 254, "mode setting, for displays"},
    KnownNode{"nvidia-nvswitchctl", "nvidia-nvswitch", 255, "NVSwitch control"},
    KnownNode{"nvidia-nvlink", "nvidia-nvlink", 0, "NVLink"},
};

// The expected properties of a node.
struct ExpectedNode {
  std::string device;
  std::uint32_t minor = 0;
  std::string why;
  int rank = 9;  // order in the list; known nodes come first, in the table's order
};

std::optional<std::uint32_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto value = parse_u64(name.substr(prefix.size()));
  if (!value || *value > 0xffffffffU) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

// The driver uses the same minors for these two on every machine.
constexpr std::uint32_t kMigConfigMinor = 1;
constexpr std::uint32_t kMigMonitorMinor = 2;

class NodeReader {
 public:
  explicit NodeReader(const sys::Host& host) : host_(host) {
    majors_ = procfs::parse_proc_devices(host.read("/proc/devices", kProcLimit).value_or(""));
    const auto fabric = host.read("/proc/driver/nvidia/capabilities/fabric-imex-mgmt", kProcLimit);
    if (fabric.ok()) fabric_minor_ = procfs::parse_capability_minor(*fabric);
  }

  DeviceNodes read(std::span<const std::uint32_t> gpu_minors) {
    for (const std::string_view directory :
         {"/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"}) {
      for (const auto& path : host_.device_paths(directory)) {
        if (const auto expected = expectation(path)) add(path, *expected);
      }
    }
    add_drm();
    add_others();
    report_missing_nodes(gpu_minors);
    const auto key = [](const RankedNode& n) {
      return std::tuple(n.rank, n.minor, std::string_view(n.node.path));
    };
    std::sort(ranked_.begin(), ranked_.end(),
              [&](const RankedNode& a, const RankedNode& b) { return key(a) < key(b); });
    for (auto& ranked : ranked_) out_.nodes.push_back(std::move(ranked.node));
    return std::move(out_);
  }

 private:
  struct RankedNode {
    int rank = 0;
    std::uint32_t minor = 0;
    model::DeviceNode node;
  };

  // Drivers before 515 have one entry "nvidia-frontend" for GPUs, control and mode setting.
  std::optional<std::uint32_t> major_of(std::string_view device) const {
    if (auto own = majors_.of(device)) return own;
    if (device != "nvidia" && device != "nvidiactl" && device != "nvidia-modeset")
      return std::nullopt;
    if (auto frontend = majors_.of("nvidia-frontend")) return frontend;
    return majors_.of("nvidia");
  }

  std::optional<ExpectedNode> expectation(std::string_view path) {
    const auto name = base_name(path);
    const auto directory = parent_directory(path);
    if (directory == "/dev/nvidia-caps") {
      const auto minor = number_after(name, "nvidia-cap");
      if (minor) return ExpectedNode{"nvidia-caps", *minor, capability_text(*minor), 3};
    } else if (directory == "/dev/nvidia-caps-imex-channels") {
      const auto minor = number_after(name, "channel");
      if (minor)
        return ExpectedNode{"nvidia-caps-imex-channels", *minor,
                            fmt::format("IMEX channel {}", *minor), 4};
    } else {
      return expectation_in_dev(name);
    }
    return std::nullopt;
  }

  static std::optional<ExpectedNode> expectation_in_dev(std::string_view name) {
    for (int order = 0; order < static_cast<int>(kKnownNodes.size()); ++order) {
      const auto& known = kKnownNodes[static_cast<std::size_t>(order)];
      if (name == known.name)
        return ExpectedNode{std::string(known.device), known.minor, std::string(known.why),
                            order - 16};
    }
    if (const auto minor = number_after(name, "nvidia")) {
      return ExpectedNode{"nvidia", *minor, fmt::format("GPU with minor {}", *minor), 1};
    }
    if (const auto minor = number_after(name, "nvidia-nvswitch")) {
      return ExpectedNode{"nvidia-nvswitch", *minor, fmt::format("NVSwitch {}", *minor), 2};
    }
    if (const auto minor = number_after(name, "nvidia-fs")) {
      return ExpectedNode{"nvidia-fs", *minor, "GPUDirect Storage", 6};
    }
    return std::nullopt;
  }

  // The file has 4300 lines and takes at least 0.1 ms, so it is read only if there is an instance
  // to look up.
  const MigMinors& mig_minors() {
    if (mig_) return *mig_;
    auto minors = read_mig_minors(host_);
    if (!minors.ok()) out_.notes.push_back(minors.error().text());
    return mig_.emplace(minors.ok() ? *std::move(minors) : MigMinors{});
  }

  std::string capability_text(std::uint32_t minor) {
    if (fabric_minor_ == minor) return "fabric management (IMEX)";
    if (minor == kMigConfigMinor) return "MIG configuration";
    if (minor == kMigMonitorMinor) return "MIG monitoring";
    const auto* row = mig_minors().find_by_minor(minor);
    if (row == nullptr) return fmt::format("capability {}", minor);
    return fmt::format("MIG capability {}", row->name());
  }

  void problem(std::string_view path, DeviceNodeFault fault, std::string text) {
    out_.problems.push_back({std::string(path), fault, std::move(text)});
  }

  void add(const std::string& path, const ExpectedNode& expected) {
    const auto info = host_.device(path);
    if (!info.ok()) return problem(path, DeviceNodeFault::NotADevice, info.error().text());
    ranked_.push_back({expected.rank,
                       expected.minor,
                       {.path = path,
                        .major = info->major,
                        .minor = info->minor,
                        .mode = info->mode,
                        .uid = info->uid,
                        .gid = info->gid,
                        .why = expected.why}});
    const auto major = major_of(expected.device);
    if (!major) {
      problem(path, DeviceNodeFault::Unregistered,
              fmt::format("{} is left over: /proc/devices has no {}; load its module, or "
                          "remove the node (`gantry doctor`)",
                          path, expected.device));
    } else if (info->kind != sys::FileKind::CharDevice || *major != info->major ||
               expected.minor != info->minor) {
      problem(
          path, DeviceNodeFault::WrongNumbers,
          fmt::format("{} is {}:{} but the kernel assigned {}:{}; `gantry doctor --fix` creates it "
                      "again",
                      path, info->major, info->minor, *major, expected.minor));
    }
  }

  // /dev/dri/card1 and renderD128 of each GPU of the driver, where nvidia-drm is loaded.
  void add_drm() {
    const auto gpus = host_.list("/proc/driver/nvidia/gpus");
    if (!gpus.ok()) return;
    for (const auto& gpu : *gpus) {
      const auto names = host_.list(fmt::format("/sys/bus/pci/devices/{}/drm", to_lower(gpu)));
      if (!names.ok()) continue;
      for (const auto& name : *names) {
        if (!number_after(name, "card") && !number_after(name, "renderD")) continue;
        const auto path = fmt::format("/dev/dri/{}", name);
        if (!add_as_it_is(7, path, fmt::format("DRM of {}", gpu))) continue;
        out_.drm.push_back({gpu, path});
        add_drm_link(gpu, name);
      }
    }
  }

  // udev's link to the node: /dev/dri/by-path/pci-0000:3b:00.0-card.
  void add_drm_link(const std::string& gpu, std::string_view name) {
    auto path = fmt::format("/dev/dri/by-path/pci-{}-{}", to_lower(gpu),
                            name.starts_with("card") ? "card" : "render");
    const auto target = host_.link(path);
    if (target.ok() && base_name(*target) == name) out_.drm.push_back({gpu, std::move(path)});
  }

  // Nodes of other modules that work with NVIDIA's driver; their numbers are not checked.
  void add_others() {
    add_as_it_is(8, "/dev/gdrdrv", "GDRCopy");
    if (!host_.exists("/dev/infiniband")) return;
    for (const auto& path : host_.device_paths("/dev/infiniband")) {
      const auto name = base_name(path);
      if (name == "rdma_cm" || number_after(name, "uverbs")) add_as_it_is(8, path, "InfiniBand");
    }
  }

  // Adds a node without checking its numbers; false if it does not exist.
  bool add_as_it_is(int rank, const std::string& path, std::string why) {
    const auto info = host_.device(path);
    if (!info.ok()) return false;
    ranked_.push_back({rank,
                       info->minor,
                       {.path = path,
                        .major = info->major,
                        .minor = info->minor,
                        .mode = info->mode,
                        .uid = info->uid,
                        .gid = info->gid,
                        .why = std::move(why)}});
    return true;
  }

  bool has(std::string_view path) const {
    return std::any_of(ranked_.begin(), ranked_.end(),
                       [&](const RankedNode& n) { return n.node.path == path; });
  }

  // Reports a node that the kernel supports but that is missing in /dev.
  void report_missing_node(const std::string& path, std::string_view device, std::uint32_t minor) {
    const auto major = major_of(device);
    if (!major || has(path)) return;
    if (host_.exists(path)) {
      return problem(
          path, DeviceNodeFault::NotADevice,
          fmt::format("{} is not a device node; `gantry doctor --fix` replaces it", path));
    }
    problem(path, DeviceNodeFault::Missing,
            fmt::format("{} ({}:{}) is missing; `gantry doctor --fix` creates it", path, *major,
                        minor));
  }

  void report_missing_nodes(std::span<const std::uint32_t> gpu_minors) {
    if (!gpu_minors.empty()) report_missing_node("/dev/nvidiactl", "nvidiactl", 255);
    for (const auto minor : gpu_minors) {
      report_missing_node(fmt::format("/dev/nvidia{}", minor), "nvidia", minor);
    }
    report_missing_node("/dev/nvidia-uvm", "nvidia-uvm", 0);
    report_missing_node("/dev/nvidia-uvm-tools", "nvidia-uvm", 1);
  }

  const sys::Host& host_;
  procfs::CharMajors majors_;
  std::optional<MigMinors> mig_;
  std::optional<std::uint32_t> fabric_minor_;
  std::vector<RankedNode> ranked_;
  DeviceNodes out_;
};

}  // namespace

std::string capability_node(std::uint32_t minor) {
  return fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor);
}

Result<procfs::MigMinors> read_mig_minors(const sys::Host& host) {
  const auto text = host.read("/proc/driver/nvidia-caps/mig-minors", kMigLimit);
  if (text.ok()) return procfs::parse_mig_minors(*text);
  if (text.error().code() == Errc::NotFound) return procfs::MigMinors{};
  return text.error();
}

DeviceNodes find_device_nodes(const sys::Host& host, std::span<const std::uint32_t> gpu_minors) {
  return NodeReader(host).read(gpu_minors);
}

}  // namespace gantry::driver
