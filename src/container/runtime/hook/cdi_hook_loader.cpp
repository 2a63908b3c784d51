// SPDX-License-Identifier: Apache-2.0
// update-ldcache and enable-cuda-compat. No ldconfig is run: the host's may not match the image's
// loader, and the image's is untrusted.
#include "base/core/text.hpp"
#include "container/rootfs/loader_config.hpp"
#include "container/runtime/hook/cdi_hook.hpp"
#include "gpu/procfs/version.hpp"

#include <fmt/format.h>

namespace gantry::runtime {
namespace {

constexpr std::string_view kConfDirectory = "/etc/ld.so.conf.d";
constexpr std::string_view kCompatConf = "/etc/ld.so.conf.d/00-compat-gantry.conf";
constexpr std::size_t kConfLimit = 64 << 10;
constexpr std::size_t kMaxDirectories = 16;

// A stored spec says "running", because the driver may have changed since it was written.
loader::HostVersions versions_of(const HookArguments& arguments, const sys::Host& host) {
  loader::HostVersions versions{.driver = arguments.last("host-driver-version"),
                                .cuda = arguments.last("host-cuda-version")};
  if (versions.driver == "running") {
    const auto running = procfs::read_version(host);
    versions.driver = running.ok() ? running->version : "";
  }
  return versions;
}

std::string compat_root(const HookArguments& arguments) {
  return arguments.last("cuda-compat-container-root", rootfs::kCompatDirectory);
}

// The decision of enable-cuda-compat, ours or another tool's, which runs just before this hook.
std::vector<std::string> compat_directories(const rootfs::Root& root) {
  std::vector<std::string> found;
  const auto names = root.list(kConfDirectory);
  if (!names.ok()) return found;
  for (const auto& name : *names) {
    if (!glob_match("00-compat-*.conf", name)) continue;
    const auto text = root.read(fmt::format("{}/{}", kConfDirectory, name), kConfLimit);
    if (!text.ok()) continue;
    for (const auto line : lines(*text)) {
      const auto directory = trim(line);
      if (directory.starts_with('/') && found.size() < kMaxDirectories)
        found.emplace_back(directory);
    }
  }
  return found;
}

}  // namespace

Status update_ldcache(const HookArguments& arguments, HookContext& place) {
  std::vector<model::LibraryEdit> libraries;
  for (const auto& folder : arguments.all("folder")) {
    const auto found = rootfs::list_libraries(place.container, folder);
    if (found.ok()) {
      libraries.insert(libraries.end(), found->begin(), found->end());
    } else {
      place.warnings.push_back(found.error().text());
    }
  }
  const auto outcome =
      rootfs::configure_loader(place.container, libraries,
                               {.host = versions_of(arguments, place.host),
                                .compat_directory = compat_root(arguments),
                                .preferred = compat_directories(place.container),
                                .directories = rootfs::DirectoryOwner::Shared,
                                .if_read_only = rootfs::ReadOnlyPolicy::MountOver,
                                .if_damaged = rootfs::DamagedCachePolicy::Replace});
  if (!outcome.ok()) {
    return Error(outcome.error()).in("the container's loader would not find the GPU driver");
  }
  place.warnings.insert(place.warnings.end(), outcome->notes.begin(), outcome->notes.end());
  return {};
}

Status enable_cuda_compat(const HookArguments& arguments, HookContext& place) {
  const auto host = versions_of(arguments, place.host);
  if (host.driver.empty() && host.cuda.empty()) return {};
  const auto choice = rootfs::choose_compat(place.container, host, compat_root(arguments));
  if (!choice.use) return place.container.remove(kCompatConf);
  auto written = place.container.put_file(kCompatConf, choice.directory + "\n");
  if (!written.ok()) {
    place.warnings.push_back(
        fmt::format("the image's newer libcuda is not used: {}", written.error().text()));
  }
  return {};
}

}  // namespace gantry::runtime
