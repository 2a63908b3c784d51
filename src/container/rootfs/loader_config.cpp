// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/loader_config.hpp"

#include "base/core/text.hpp"
#include "container/rootfs/mount.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "gpu/loader/ld_cache_merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

namespace gantry::rootfs {
namespace {

constexpr std::size_t kCacheLimit = std::size_t{32} << 20;  // a full desktop has 0.2 MiB
constexpr std::size_t kConfLimit = 64 << 10;
constexpr std::string_view kInclude = "include /etc/ld.so.conf.d/*.conf";
// The directories that musl searches without a configuration file.
constexpr std::string_view kMuslDefault = "/lib:/usr/local/lib:/usr/lib";

// One for each architecture; every layout has one of them, often as a symlink.
constexpr std::array<std::string_view, 5> kGlibcLoaders{
    "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/usr/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux.so.2"};

bool has_glibc_loader(const Root& root) {
  return std::any_of(kGlibcLoaders.begin(), kGlibcLoaders.end(), [&](std::string_view path) {
    const auto info = root.info(path);
    return info.ok() && info->kind == sys::FileKind::Regular;
  });
}

void add_unique(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::vector<std::string> directories_of(std::span<const model::LibraryEdit> libraries) {
  std::vector<std::string> found;
  for (const auto& library : libraries) {
    const auto directory = parent_directory(library.path);
    if (directory != "/") add_unique(found, std::string(directory));
  }
  return found;
}

Error cannot_change(const Error& cause) {
  return Error(Errc::Unsupported,
               fmt::format("the container's loader files cannot be changed: {}", cause.text()));
}

// Returns true if another method can still work: these errors mean "not here", not "broken".
bool can_use_other_way(const Error& error) {
  switch (error.sys_errno()) {
    case EROFS:
    case EACCES:
    case EPERM:
    case EBUSY:
    case EXDEV:
    case ENOTDIR:
    case ELOOP: return true;
    default: return error.code() == Errc::Exists || error.code() == Errc::Corrupt;
  }
}

Status explained(Status status) {
  if (!status.ok() && can_use_other_way(status.error())) return cannot_change(status.error());
  return status;
}

// "" if there is no cache that a loader would read: missing, a FIFO, a dangling link, other
// content.
Result<std::string> image_cache(const Root& root, LoaderResult& outcome) {
  auto bytes = root.read(kLoaderCache, kCacheLimit);
  if (bytes.ok()) {
    outcome.had_cache = loader::is_ld_cache(*bytes);
    if (outcome.had_cache || bytes->empty())
      return outcome.had_cache ? *std::move(bytes) : std::string();
    outcome.notes.push_back("/etc/ld.so.cache was not a loader cache and has been replaced");
    return std::string();
  }
  if (bytes.error().code() == Errc::Corrupt) return cannot_change(bytes.error());
  if (bytes.error().code() == Errc::NotFound) return std::string();
  const auto info = root.link_info(kLoaderCache);
  if (info.ok() && info->kind == sys::FileKind::Directory) return cannot_change(bytes.error());
  outcome.notes.push_back("/etc/ld.so.cache was not a readable file and has been replaced");
  return std::string();
}

// The directories in our own file from an earlier start.
std::vector<std::string> former_directories(const Root& root) {
  std::vector<std::string> found;
  const auto text = root.read(kGantryConf, kConfLimit);
  if (!text.ok()) return found;
  for (const auto line : lines(*text)) {
    if (const auto directory = trim(line); directory.starts_with('/'))
      add_unique(found, std::string(directory));
  }
  return found;
}

Status put_if_new(const Root& root, std::string_view path, std::string_view content) {
  const auto now = root.read(path, std::max(content.size(), std::size_t{1}));
  const auto info = root.link_info(path);
  if (now.ok() && *now == content && info.ok() && info->kind == sys::FileKind::Regular) return {};
  return root.put_file(path, content);
}

bool includes_conf_d(std::string_view text) {
  for (const auto line : lines(text)) {
    const auto words = trim(line);
    if (words.starts_with("include") && contains(words, "ld.so.conf.d/")) return true;
  }
  return false;
}

// So that an ldconfig in the container, which every package manager runs, keeps our libraries.
Status write_conf(const Root& root, const std::vector<std::string>& directories,
                  LoaderResult& outcome) {
  std::string ours =
      "# Written by Gantry when the container started: where the GPU driver's libraries are.\n";
  for (const auto& directory : directories) ours += directory + "\n";
  GANTRY_CHECK(put_if_new(root, kGantryConf, ours));
  const auto main = root.read(kLoaderConf, kConfLimit);
  if (main.ok() && includes_conf_d(*main)) return {};
  if (!main.ok() && main.error().code() != Errc::NotFound) {
    outcome.notes.push_back(fmt::format(
        "{}; an ldconfig in the container may lose the driver's libraries", main.error().text()));
    return {};
  }
  std::string text = main.ok() ? *main : std::string();
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return root.put_file(kLoaderConf, fmt::format("{}{}\n", text, kInclude));
}

// Default directories of loaders and ldconfig: naming them again would only change their order.
bool is_system_directory(std::string_view directory) {
  for (const std::string_view prefix : {"/usr", ""}) {
    for (const std::string_view name : {"/lib", "/lib64", "/lib32", "/lib/x86_64-linux-gnu",
                                        "/lib/aarch64-linux-gnu", "/lib/i386-linux-gnu"}) {
      if (directory.starts_with(prefix) && directory.substr(prefix.size()) == name) return true;
    }
  }
  return false;
}

// Libraries of a shared directory that are already in the image's cache belong to the image.
std::vector<model::LibraryEdit> unknown_to(const std::string& cache,
                                           std::span<const model::LibraryEdit> libraries,
                                           const std::vector<std::string>& owned) {
  std::vector<model::LibraryEdit> fresh(libraries.begin(), libraries.end());
  const auto parsed =
      cache.empty() ? Result<loader::LdCache>(loader::LdCache{}) : loader::parse_ld_cache(cache);
  if (!parsed.ok()) return fresh;  // the merge reports the error
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const auto& entry : parsed->entries) {
    const bool goes =
        std::find(owned.begin(), owned.end(), parent_directory(entry.path)) != owned.end();
    if (!goes) known.emplace(entry.name, entry.path);
  }
  std::erase_if(fresh, [&](const model::LibraryEdit& library) {
    return known.contains({library.name, library.path});
  });
  return fresh;
}

struct Plan {
  std::vector<model::LibraryEdit> libraries;  // in the loader's order of preference
  std::vector<std::string> conf;              // directories for ldconfig, in that order
  std::vector<std::string> owned;             // directories whose old entries are removed
};

void prefer_directories(const Root& root, const LoaderOptions& options, LoaderResult& outcome,
                        Plan& plan) {
  if (outcome.compat && outcome.compat->use) {
    plan.libraries = outcome.compat->libraries;
    plan.conf.push_back(outcome.compat->directory);
  }
  for (const auto& directory : options.preferred) {
    auto found = list_libraries(root, directory);
    if (!found.ok()) {
      outcome.notes.push_back(found.error().text());
      continue;
    }
    plan.libraries.insert(plan.libraries.end(), found->begin(), found->end());
    add_unique(plan.conf, directory);
  }
}

// Writes the files; on a read-only file system or a volume, mounts only a new cache over the
// existing one.
Status put_cache(const Root& root, const std::string& merged, const Plan& plan,
                 const LoaderOptions& options, LoaderResult& outcome) {
  auto written = put_if_new(root, kLoaderCache, merged);
  if (written.ok()) return explained(write_conf(root, plan.conf, outcome));
  const int err = written.error().sys_errno();
  if ((err != EROFS && err != EXDEV) || options.if_read_only == ReadOnlyPolicy::Fail)
    return explained(std::move(written));
  auto mounted = bind_content(root, merged, kLoaderCache);
  if (!mounted.ok()) return cannot_change(err == EXDEV ? written.error() : mounted.error());
  outcome.notes.push_back(
      fmt::format("/etc is {}: the merged loader cache is mounted over the image's",
                  err == EROFS ? "read-only" : "on a volume"));
  return {};
}

// The directories of ld.so.conf and of the files that it includes.
std::vector<std::string> configured_directories(const Root& root) {
  constexpr std::size_t kMaxDirectories = 64;
  constexpr std::string_view kDirectory = "/etc/ld.so.conf.d";
  std::vector<std::string> files{std::string(kLoaderConf)};
  if (const auto names = root.list(kDirectory, 4096); names.ok()) {
    for (const auto& name : *names) {
      if (name.ends_with(".conf")) files.push_back(fmt::format("{}/{}", kDirectory, name));
    }
  }
  std::vector<std::string> found;
  for (const auto& file : files) {
    const auto text = root.read(file, kConfLimit);
    if (!text.ok()) continue;
    for (const auto line : lines(*text)) {
      const auto directory = trim(line.substr(0, line.find('#')));
      if (directory.starts_with('/') && found.size() < kMaxDirectories)
        add_unique(found, std::string(directory));
    }
  }
  return found;
}

// The libraries that the image's ldconfig would add, without the loader's default directories.
void rebuild_damaged(const Root& root, std::string& cache, Plan& plan, LoaderResult& outcome) {
  const auto parsed = loader::parse_ld_cache(cache);
  if (cache.empty() || parsed.ok()) return;
  outcome.notes.push_back(fmt::format(
      "/etc/ld.so.cache of the image is damaged ({}) and was rebuilt; run ldconfig in the image",
      parsed.error().text()));
  cache.clear();
  for (const auto& directory : configured_directories(root)) {
    if (std::find(plan.conf.begin(), plan.conf.end(), directory) != plan.conf.end()) continue;
    const auto libraries = list_libraries(root, directory);
    if (!libraries.ok()) continue;
    plan.libraries.insert(plan.libraries.end(), libraries->begin(), libraries->end());
  }
}

Status configure_glibc(const Root& root, std::span<const model::LibraryEdit> libraries,
                       const LoaderOptions& options, LoaderResult& outcome) {
  Plan plan{.owned = former_directories(root)};
  std::erase_if(plan.owned, is_system_directory);
  prefer_directories(root, options, outcome, plan);
  const auto ours = directories_of(libraries);
  for (const auto& directory : ours) {
    if (!is_system_directory(directory)) add_unique(plan.conf, directory);
  }
  GANTRY_TRY(std::string old, image_cache(root, outcome));
  if (options.directories == DirectoryOwner::Ours) {
    plan.owned.insert(plan.owned.end(), ours.begin(), ours.end());
    plan.libraries.insert(plan.libraries.end(), libraries.begin(), libraries.end());
  } else {
    const auto fresh = unknown_to(old, libraries, plan.owned);
    plan.libraries.insert(plan.libraries.end(), fresh.begin(), fresh.end());
  }
  if (options.if_damaged == DamagedCachePolicy::Replace) rebuild_damaged(root, old, plan, outcome);
  auto merged = loader::merge_ld_cache(old, plan.libraries, plan.owned);
  if (!merged.ok()) return cannot_change(merged.error());
  return put_cache(root, *merged, plan, options, outcome);
}

// Appends the directories to musl's list, with the separator that the list uses.
std::string with_directories(std::string list, const std::vector<std::string>& directories) {
  while (list.ends_with('\n') || list.ends_with(':')) list.pop_back();
  const std::string separator = contains(list, "\n") ? "\n" : ":";
  std::vector<std::string_view> known;
  for (const auto line : lines(list)) {
    for (const auto part : split(line, ':')) known.push_back(part);
  }
  std::string added;
  for (const auto& directory : directories) {
    if (std::find(known.begin(), known.end(), directory) != known.end()) continue;
    added += separator + directory;
  }
  return list + added + "\n";
}

// The file replaces musl's built-in list, so a new file must contain that list.
Status configure_musl(const Root& root, std::span<const model::LibraryEdit> libraries,
                      LoaderResult& outcome) {
  for (const auto& architecture : outcome.loaders.musl_architectures) {
    const auto path = fmt::format("/etc/ld-musl-{}.path", architecture);
    auto text = root.read(path, kConfLimit);
    if (!text.ok() && text.error().code() != Errc::NotFound) {
      return explained(std::move(text).error());
    }
    // Debian's musl has another built-in list; next to glibc there is no need to guess it.
    if (!text.ok() && outcome.loaders.glibc) continue;
    auto list = text.ok() ? *std::move(text) : std::string(kMuslDefault);
    const auto all = with_directories(std::move(list), directories_of(libraries));
    GANTRY_CHECK(explained(put_if_new(root, path, all)));
  }
  return {};
}

}  // namespace

std::span<const std::string_view> glibc_loader_paths() {
  return kGlibcLoaders;
}

std::vector<std::string> musl_architectures(std::span<const std::string> names_in_lib) {
  std::vector<std::string> found;
  for (const std::string_view name : names_in_lib) {
    if (!glob_match("ld-musl-*.so.1", name)) continue;
    auto architecture = name.substr(std::string_view("ld-musl-").size());
    architecture.remove_suffix(std::string_view(".so.1").size());
    found.emplace_back(architecture);
    if (found.size() >= 8) break;  // an image may have any number of names
  }
  return found;
}

Loaders find_loaders(const Root& root) {
  Loaders found{.glibc = has_glibc_loader(root)};
  const auto names = root.list("/lib", 65536);
  if (names.ok()) found.musl_architectures = musl_architectures(*names);
  found.musl = !found.musl_architectures.empty();
  return found;
}

Result<LoaderResult> configure_loader(const Root& root,
                                      std::span<const model::LibraryEdit> libraries,
                                      const LoaderOptions& options) {
  LoaderResult outcome{.loaders = find_loaders(root)};
  if (libraries.empty() && options.preferred.empty()) return outcome;
  if (!options.host.driver.empty() || !options.host.cuda.empty()) {
    outcome.compat = choose_compat(root, options.host, options.compat_directory);
  }
  if (outcome.loaders.glibc) GANTRY_CHECK(configure_glibc(root, libraries, options, outcome));
  if (outcome.loaders.musl) GANTRY_CHECK(configure_musl(root, libraries, outcome));
  if (outcome.loaders.musl && !outcome.loaders.glibc) {
    outcome.notes.push_back(
        "the image uses musl; the driver's libraries are made for glibc and may not load");
  }
  if (!outcome.loaders.musl && !outcome.loaders.glibc) {
    outcome.notes.push_back(
        "the image has no dynamic loader that gantry knows; its files are unchanged");
  }
  return outcome;
}

}  // namespace gantry::rootfs
