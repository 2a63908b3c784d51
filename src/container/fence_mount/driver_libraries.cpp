// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/driver_libraries.hpp"

#include "base/core/text.hpp"
#include "container/plan/driver_paths.hpp"
#include "gpu/loader/ld_cache.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::fence_mount {
namespace {

constexpr std::string_view kCuda = "libcuda.so";
constexpr std::string_view kNvml = "libnvidia-ml.so";
constexpr std::size_t kMaxLibraryDirectories = 4096;

// Directories that drivers and distributions use; the loader searches some of them by default.
constexpr std::string_view kLibraryDirectories[] = {
    "/lib",
    "/lib32",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/i386-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/i386-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/wsl/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/lib/x86_64-linux-gnu",
    "/usr/local/nvidia/lib",
    "/usr/local/nvidia/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/run/opengl-driver/lib",
    "/run/nvidia/driver/usr/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
};

bool is_name_of(std::string_view name, std::string_view library) {
  return name.starts_with(library) &&
         (name.size() == library.size() || name[library.size()] == '.');
}

class Search {
 public:
  explicit Search(const sys::Host& host) : host_(host) {}

  void directory(const std::string& path) {
    if (weary() || ++looks_ > kMaxSearchedDirectories) return;
    const auto real = host_.resolve(path);
    if (!real.ok() || seen_.size() >= kMaxLibraryDirectories || !seen_.insert(*real).second) return;
    if (real->ends_with("/stubs")) return;
    const auto names = host_.list(*real);
    if (!names.ok()) return;
    for (const auto& name : *names) {
      if (is_name_of(name, kCuda)) file(fmt::format("{}/{}", *real, name), cuda_);
      if (is_name_of(name, kNvml)) file(fmt::format("{}/{}", *real, name), nvml_);
    }
  }

  // `path` and its direct subdirectories.
  void with_children(const std::string& path) {
    directory(path);
    if (weary()) return;
    const auto names = host_.list(path);
    if (!names.ok()) return;
    for (const auto& name : *names) directory(fmt::format("{}/{}", path, name));
  }

  Result<DriverLibraries> found() const {
    if (weary()) {
      return Error(Errc::Invalid,
                   fmt::format("there are more than {} directories below {} to search for libcuda; "
                               "LD_LIBRARY_PATH names too many",
                               kMaxSearchedDirectories, host_.root()));
    }
    if (full()) {
      return Error(Errc::Invalid,
                   fmt::format("there are more than {} files with the name libcuda or "
                               "libnvidia-ml below {}",
                               kMaxDriverLibraries, host_.root()));
    }
    return DriverLibraries{.cuda = {cuda_.begin(), cuda_.end()},
                           .nvml = {nvml_.begin(), nvml_.end()}};
  }

 private:
  void file(const std::string& path, std::set<std::string>& files) {
    if (full()) return;
    const auto real = host_.resolve(path);
    if (!real.ok()) return;
    const auto info = host_.info(*real);
    if (info.ok() && info->kind == sys::FileKind::Regular) files.insert(*real);
  }

  bool weary() const { return looks_ > kMaxSearchedDirectories; }
  bool full() const { return cuda_.size() + nvml_.size() > kMaxDriverLibraries; }

  const sys::Host& host_;
  std::size_t looks_ = 0;
  std::set<std::string> seen_;
  std::set<std::string> cuda_;
  std::set<std::string> nvml_;
};

void add_cached(const sys::Host& host, Search& search) {
  const auto bytes = host.read("/etc/ld.so.cache");
  if (!bytes.ok()) return;
  const auto cache = loader::parse_ld_cache(*bytes);
  if (!cache.ok()) return;
  for (const auto& entry : cache->entries) {
    if (!is_name_of(entry.name, kCuda) && !is_name_of(entry.name, kNvml)) continue;
    search.directory(entry.path.substr(0, entry.path.rfind('/')));
  }
}

void add_toolkits(const sys::Host& host, Search& search) {
  for (const std::string parent : {"/usr/local", "/opt"}) {
    const auto names = host.list(parent);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      if (name.starts_with("cuda")) search.with_children(fmt::format("{}/{}/compat", parent, name));
    }
  }
}

void add_prepared(const sys::Host& host, Search& search) {
  const auto drivers = host.list(plan::kDriverDirectories);
  if (!drivers.ok()) return;
  for (const auto& driver : *drivers) {
    const auto base = fmt::format("{}/{}", plan::kDriverDirectories, driver);
    search.directory(base + "/lib64");
    search.directory(base + "/lib");
    const auto sets = host.list(base + "/sets");
    if (!sets.ok()) continue;
    for (const auto& set : *sets) {
      search.directory(fmt::format("{}/sets/{}/lib64", base, set));
      search.directory(fmt::format("{}/sets/{}/lib", base, set));
    }
  }
}

}  // namespace

Result<DriverLibraries> find_driver_libraries(const sys::Host& host,
                                              const std::vector<std::string>& more) {
  Search search(host);
  const auto add = [&](const std::string& directory) {
    search.directory(directory);
    search.with_children(directory + "/glibc-hwcaps");
    search.directory(directory + "/tls");
    search.with_children(directory + "/nvidia");
  };
  for (const auto directory : kLibraryDirectories) add(std::string(directory));
  for (const auto& directory : more) add(directory);
  add_cached(host, search);
  add_toolkits(host, search);
  add_prepared(host, search);
  return search.found();
}

std::vector<std::string> split_search_path(std::string_view value, std::string_view here) {
  std::vector<std::string> directories;
  if (value.empty()) return directories;
  std::size_t from = 0;
  for (;;) {
    const auto end = value.find_first_of(":;", from);
    const auto part = value.substr(from, end == value.npos ? end : end - from);
    if (part.empty()) {
      directories.emplace_back(here);
    } else if (part.front() == '/') {
      directories.emplace_back(part);
    } else {
      directories.push_back(fmt::format("{}/{}", here, part));
    }
    if (end == value.npos || directories.size() > kMaxSearchedDirectories) return directories;
    from = end + 1;
  }
}

}  // namespace gantry::fence_mount
