// SPDX-License-Identifier: Apache-2.0
// Disks, memory, clock, C library.
#include "base/core/text.hpp"
#include "install/preflight/facts_internal.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

constexpr std::size_t kLibcLimit = std::size_t{16} << 20U;

bool covers(std::string_view mount, std::string_view path) {
  return mount == "/" || path == mount ||
         (path.starts_with(mount) && path.size() > mount.size() && path[mount.size()] == '/');
}

bool has_option(std::string_view options, std::string_view wanted) {
  const auto all = split(options, ',');
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

// The path, or the directory above it that exists.
std::string existing_part(const sys::Host& host, std::string path) {
  while (path.size() > 1 && !host.exists(path)) path = std::string(parent_directory(path));
  return path;
}

// The mounts of the host's first process: /proc/mounts would be those of this process, which in a
// pod has others.
std::string read_mounts(const sys::Host& host) {
  const auto first = host.read("/proc/1/mounts", kMountsLimit);
  if (first.ok() && !first->empty()) return *first;
  return host.read("/proc/mounts", kMountsLimit).value_or("");
}

void read_disks(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  const auto mounts = read_mounts(host);
  for (const auto& path : sources.paths) {
    auto place = existing_part(host, path);
    if (const auto resolved = host.resolve(place); resolved.ok()) place = *resolved;
    auto disk = find_mount(mounts, place);
    if (sources.disk) {
      if (const auto live = sources.disk(host, place)) {
        disk.free_bytes = live->free_bytes;
        disk.read_only = live->read_only;
        disk.no_exec = live->no_exec;
      }
    }
    disk.path = path;
    facts.disks.push_back(std::move(disk));
  }
}

void read_files(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  for (const auto& path : sources.files) {
    const auto info = host.info(path);
    facts.files.push_back({.path = path,
                           .exists = info.ok(),
                           .bytes = info.ok() ? info->size : 0,
                           .is_here = !info.ok() && is_only_here(host, path)});
  }
}

void read_memory(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  constexpr std::string_view kName = "MemAvailable:";
  const auto text = host.read("/proc/meminfo", kSmallFile).value_or("");
  for (const auto line : lines(text)) {
    if (!line.starts_with(kName)) continue;
    const auto words = split(trim(line.substr(kName.size())), ' ');
    const auto kib = words.empty() ? std::nullopt : parse_u64(words[0]);
    if (kib && *kib < UINT64_MAX / 1024) facts.memory_available = *kib * 1024;
  }
  const auto limit = sources.memory_limit;
  if (limit && (!facts.memory_available || *limit < *facts.memory_available))
    facts.memory_available = limit;
}

std::optional<std::int64_t> changed_at(const sys::Host& host, const std::string& path) {
  const auto fd = host.open(path, O_PATH);
  struct stat info {};
  if (!fd.ok() || ::fstat(fd->get(), &info) != 0) return std::nullopt;
  return static_cast<std::int64_t>(info.st_mtime);
}

void add_newest(const sys::Host& host, const std::vector<std::string>& paths,
                std::vector<ClockFact::Evidence>& past) {
  ClockFact::Evidence newest;
  for (const auto& path : paths) {
    const auto time = changed_at(host, path);
    if (time && *time > newest.time) newest = {.what = path, .time = *time};
  }
  if (newest.time > 0) past.push_back(std::move(newest));
}

constexpr std::array kLibcPaths{"/lib/x86_64-linux-gnu/libc.so.6",
                                "/lib/aarch64-linux-gnu/libc.so.6",
                                "/lib64/libc.so.6",
                                "/usr/lib64/libc.so.6",
                                "/usr/lib/libc.so.6",
                                "/lib/libc.so.6"};

// "/lib/x86_64-linux-gnu/libc-2.31.so" -> "2.31"
std::string version_in_libc_name(std::string_view path) {
  auto name = base_name(path);
  if (!name.starts_with("libc-") || !name.ends_with(".so")) return "";
  name.remove_prefix(5);
  name.remove_suffix(3);
  return std::string(name);
}

}  // namespace

DiskFact find_mount(std::string_view mounts, std::string_view path) {
  DiskFact best{.path = std::string(path)};
  for (const auto line : lines(mounts)) {
    const auto fields = split(line, ' ');
    // Where two are mounted at one place, the later one hides the earlier one.
    if (fields.size() < 4 || !covers(fields[1], path) || fields[1].size() < best.mount.size())
      continue;
    best.mount = std::string(fields[1]);
    best.read_only = has_option(fields[3], "ro");
    best.no_exec = has_option(fields[3], "noexec");
  }
  return best;
}

std::string find_glibc_version(std::string_view bytes) {
  constexpr std::string_view kName = "GNU C Library (";
  constexpr std::string_view kVersion = "release version ";
  const auto begin = bytes.find(kName);
  if (begin == std::string_view::npos) return "";
  auto text = bytes.substr(begin, 256);
  const auto at = text.find(kVersion);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + kVersion.size());
  std::size_t length = 0;
  while (length < text.size() && (is_digit(text[length]) || text[length] == '.')) ++length;
  while (length > 0 && text[length - 1] == '.') --length;
  return std::string(text.substr(0, length));
}

bool is_only_here(const sys::Host& host, const std::string& path) {
  return !host.is_live() && !host.exists(path) && ::access(path.c_str(), F_OK) == 0;
}

void read_storage(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  read_disks(host, sources, facts);
  read_files(host, sources, facts);
  read_memory(host, sources, facts);
}

void read_clock(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  facts.clock.now = sources.now;
  add_newest(host,
             {"/var/lib/dpkg", "/var/lib/dpkg/status", "/var/lib/rpm", "/usr/lib/sysimage/rpm",
              "/usr/lib/sysimage/rpm/rpmdb.sqlite"},
             facts.clock.past);
  const auto& release = facts.kernel.release;
  if (!release.empty()) {
    add_newest(host,
               {"/boot/vmlinuz-" + release, fmt::format("/lib/modules/{}/vmlinuz", release),
                fmt::format("/lib/modules/{}/modules.dep", release)},
               facts.clock.past);
  }
  if (sources.program_built > 0)
    facts.clock.past.push_back({.what = "the build of this gantry", .time = sources.program_built});
}

void read_libc(const sys::Host& host, MachineFacts& facts) {
  for (const auto* name : {"/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"})
    facts.musl = facts.musl || host.exists(name);
  for (const auto* path : kLibcPaths) {
    const auto resolved = host.resolve(path);
    if (!resolved.ok()) continue;
    facts.glibc = version_in_libc_name(*resolved);
    if (facts.glibc.empty()) {
      const auto bytes = host.read(*resolved, kLibcLimit);
      if (bytes.ok()) facts.glibc = find_glibc_version(*bytes);
    }
    if (!facts.glibc.empty()) return;
  }
}

}  // namespace gantry::preflight
