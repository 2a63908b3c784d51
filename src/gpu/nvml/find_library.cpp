// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/find_library.hpp"

#include "gpu/driver/root.hpp"
#include "gpu/loader/ld_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <optional>

namespace gantry::nvml {
namespace {

constexpr std::string_view kNvmlName = "libnvidia-ml.so.1";

bool is_64bit_library(const sys::Host& host, std::string_view path) {
  const auto fd = host.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  std::array<char, 5> start{};  // 0x7f E L F, then the class: 2 is 64-bit
  return fd.ok() && ::pread(fd->get(), start.data(), start.size(), 0) == 5 && start[4] == 2;
}

// The file to load, as this process sees it. Resolved first: a link that is absolute inside the
// root would lead out of it.
std::optional<std::string> nvml_library(const sys::Host& host, const driver::DriverRoot& root) {
  const auto versioned = fmt::format("libnvidia-ml.so.{}", root.library_version);
  for (const auto name : {kNvmlName, std::string_view(versioned)}) {
    for (const auto& directory : root.directories) {
      const auto path = host.resolve(fmt::format("{}/{}", directory.path, name));
      if (path.ok() && is_64bit_library(host, *path)) return host.outside(*path);
    }
  }
  return std::nullopt;
}

// The library that the loader would choose. This finds nearly every driver and reads one file
// instead of searching all directories. The search is used only if the cache does not have it.
std::optional<std::string> cached_nvml_library(const sys::Host& host, const std::string& ld_cache) {
  const auto bytes = host.read(ld_cache);
  if (!bytes.ok()) return std::nullopt;
  const auto cache = loader::parse_ld_cache(*bytes);
  if (!cache.ok()) return std::nullopt;
  for (const auto& entry : cache->entries) {
    if (entry.name != kNvmlName || !entry.is_64bit()) continue;
    const auto path = host.resolve(entry.path);
    if (path.ok()) return host.outside(*path);
  }
  return std::nullopt;
}

}  // namespace

Result<Nvml> load_nvml(const sys::Host& host, const std::string& module_version,
                       const std::string& ld_cache, const driver::DriverLocation& named) {
  const bool is_named = !named.root.empty() || !named.libraries.empty();
  auto library = is_named ? std::nullopt : cached_nvml_library(host, ld_cache);
  if (!library)
    library = nvml_library(host, driver::find_root(host, module_version, ld_cache, named));
  if (library) return Nvml::load(*library);
  return Error(Errc::NotFound, fmt::format("{} was not found: install the driver's user space, or "
                                           "give the machine's root directory with --root",
                                           kNvmlName));
}

probe::NvmlView not_loaded(const Error& why) {
  probe::NvmlView view{.inventory = {}, .failure = NVML_ERROR_LIBRARY_NOT_FOUND};
  view.inventory.driver.nvml_error = why.text();
  return view;
}

}  // namespace gantry::nvml
