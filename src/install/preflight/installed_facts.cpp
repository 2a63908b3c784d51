// SPDX-License-Identifier: Apache-2.0
// The driver that is installed: where its files are and who put them there.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "gpu/driver/root.hpp"
#include "install/preflight/facts_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

constexpr std::size_t kRecordLimit = std::size_t{1} << 20U;
constexpr std::size_t kDpkgStatusLimit = std::size_t{64} << 20U;

bool exists_any(const sys::Host& host, std::initializer_list<std::string_view> paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](std::string_view path) { return host.exists(path); });
}

// "libcuda1", "nvidia-driver-535", "linux-modules-nvidia-535-6.5.0-14-generic"; not the packages
// for containers, and not the firmware or settings that stay behind.
bool is_driver_package(std::string_view name) {
  constexpr std::array<std::string_view, 14> kPrefixes{
      "nvidia-driver",     "nvidia-kernel", "nvidia-dkms",   "nvidia-open",      "nvidia-headless",
      "nvidia-utils",      "nvidia-smi",    "nvidia-tesla",  "nvidia-legacy",    "nvidia-vgpu",
      "nvidia-linux-grid", "libcuda1",      "libnvidia-ml1", "libnvidia-compute"};
  if (name.starts_with("linux-modules-nvidia-") || name.starts_with("linux-objects-nvidia-"))
    return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// The driver's libraries that do not belong to a directory of their own.
bool is_in_system(const driver::DriverRoot& root) {
  return root.found() && root.root == "/" && !root.is_chroot &&
         !root.library_directory.starts_with("/usr/local/nvidia") &&
         !root.library_directory.starts_with("/var/lib/nvidia") &&
         !root.library_directory.starts_with("/home/");
}

class InstalledReader {
 public:
  InstalledReader(const sys::Host& host, MachineFacts& facts)
      : host_(host), facts_(facts), root_(driver::find_root(host)) {}

  void read_all() {
    read_directories();
    if (exists_any(host_, {"/usr/bin/nvidia-vgpu-mgr", "/usr/bin/nvidia-vgpud"}))
      add(InstalledKind::VgpuHost);
    read_system();
    const bool container = host_.exists("/run/nvidia/driver/usr/bin/nvidia-smi") ||
                           host_.exists("/run/nvidia/nvidia-driver.pid");
    if (container) add(InstalledKind::Container, "/run/nvidia/driver");
  }

 private:
  InstalledDriver& add(InstalledKind kind, std::string directory = "") {
    facts_.installed.push_back({.kind = kind,
                                .version = root_.library_version,
                                .directory = std::move(directory),
                                .dkms = host_.exists("/var/lib/dkms/nvidia")});
    if (facts_.installed.back().directory.empty())
      facts_.installed.back().directory = root_.library_directory;
    return facts_.installed.back();
  }

  // Directories that hold a whole driver.
  void read_directories() {
    if (host_.exists(std::string(kWorkDirectory) + "/installed.json")) add(InstalledKind::Gantry);
    for (const auto* directory :
         {"/usr/local/nvidia", "/var/lib/nvidia", "/home/kubernetes/bin/nvidia"}) {
      const auto cache = host_.read(fmt::format("{}/.cache", directory), kSmallFile);
      // Gantry writes this file, too, beside a link of its own.
      if (!cache.ok() || host_.link_info(fmt::format("{}/current", directory)).ok()) continue;
      const auto version = version_in_google_cache(*cache);
      if (version.empty()) continue;
      add(InstalledKind::Google, directory).version = version;
    }
  }

  // Files among those of the distribution.
  void read_system() {
    const auto status = host_.read("/var/lib/dpkg/status", kDpkgStatusLimit);
    auto packages = status.ok() ? find_driver_packages(*status) : std::vector<std::string>{};
    const bool deb = !packages.empty();
    if (deb) add(InstalledKind::Deb).packages = std::move(packages);
    const bool run = exists_any(host_, {"/usr/bin/nvidia-uninstall", "/usr/sbin/nvidia-uninstall"});
    if (run) add(InstalledKind::Run);
    if (deb || run || !facts_.installed.empty() || !is_in_system(root_)) return;
    const bool has_rpm = exists_any(host_, {"/var/lib/rpm", "/usr/lib/sysimage/rpm"});
    add(has_rpm ? InstalledKind::Rpm : InstalledKind::Unknown);
  }

  const sys::Host& host_;
  MachineFacts& facts_;
  driver::DriverRoot root_;
};

RecordedArchive read_recorded(const sys::Host& host) {
  const auto text = host.read(std::string(kWorkDirectory) + "/installed.json", kRecordLimit);
  if (!text.ok()) return {};
  const auto document = json::Document::parse(*text);
  if (!document.ok()) return {};
  const auto root = document->root();
  return {.version = root["version"].string_or_empty(),
          .url = root["url"].string_or_empty(),
          .digest = root["digest"].string_or_empty(),
          .name = root["name"].string_or_empty()};
}

}  // namespace

std::vector<std::string> find_driver_packages(std::string_view dpkg_status) {
  constexpr std::string_view kPackage = "Package: ";
  constexpr std::string_view kStatus = "Status: ";
  constexpr std::string_view kVersion = "Version: ";
  std::vector<std::string> found;
  std::string_view name;
  bool installed = false;
  for (const auto line : lines(dpkg_status)) {
    if (line.starts_with(kPackage)) {
      name = line.substr(kPackage.size());
      installed = false;
    } else if (line.starts_with(kStatus)) {
      // "install ok installed", "hold ok installed"; removed packages are "deinstall ok
      // config-files".
      installed = line.ends_with(" installed");
    } else if (line.starts_with(kVersion) && installed && is_driver_package(name)) {
      found.push_back(fmt::format("{} {}", name, line.substr(kVersion.size())));
    }
  }
  return found;
}

std::string version_in_google_cache(std::string_view text) {
  constexpr std::string_view kName = "CACHE_NVIDIA_DRIVER_VERSION=";
  for (const auto line : lines(text)) {
    if (!line.starts_with(kName)) continue;
    const auto version = trim(line.substr(kName.size()));
    return DriverVersion::parse(version) ? std::string(version) : "";
  }
  return "";
}

void read_installed(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  InstalledReader(host, facts).read_all();
  facts.recorded = read_recorded(host);
  if (sources.directory.empty()) return;
  for (auto& name : host.list(sources.directory + "/.versions").value_or({})) {
    // "580.159.04-0123456789ab"; others are being filled.
    const auto dash = name.find('-');
    if (DriverVersion::parse(std::string_view(name).substr(0, dash)) &&
        name.find('.', dash) == std::string::npos)
      facts.placed_versions.push_back(std::move(name));
  }
}

}  // namespace gantry::preflight
