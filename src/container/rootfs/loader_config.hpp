// SPDX-License-Identifier: Apache-2.0
// Makes the dynamic loader inside a container find our libraries. Changes only files of its root:
// adds entries at the front of /etc/ld.so.cache for the loader, and a file in /etc/ld.so.conf.d for
// every later ldconfig; for musl, adds a directory to /etc/ld-musl-ARCH.path.
#pragma once

#include "container/rootfs/compat.hpp"
#include "container/rootfs/root.hpp"
#include "gpu/model/container_edits.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gantry::rootfs {

inline constexpr std::string_view kLoaderCache = "/etc/ld.so.cache";
inline constexpr std::string_view kLoaderConf = "/etc/ld.so.conf";
inline constexpr std::string_view kGantryConf = "/etc/ld.so.conf.d/00-gantry.conf";

// The loaders of the image; both if Debian's musl package is installed.
struct Loaders {
  bool glibc = false;
  bool musl = false;
  std::vector<std::string> musl_architectures;  // "x86_64" of /lib/ld-musl-x86_64.so.1
  bool operator==(const Loaders&) const = default;
};
Loaders find_loaders(const Root& root);

// For files that are not in a directory: where glibc's loader may be, and the architectures of
// musl's loaders among the names in /lib.
std::span<const std::string_view> glibc_loader_paths();
std::vector<std::string> musl_architectures(std::span<const std::string> names_in_lib);

// Who owns the libraries' directories.
enum class DirectoryOwner : std::uint8_t {
  Ours,   // mounted as a whole: older cache entries for them are removed
  Shared  // the image's directories with our files in them: adds only entries that the cache lacks
};

// What to do when the files cannot be written.
enum class ReadOnlyPolicy : std::uint8_t {
  Fail,
  MountOver  // mount a merged cache over the image's; for hooks, which run in the container's mount
             // namespace
};

// What to do if the image's cache is damaged. The loader ignores such a cache and searches its
// default directories.
enum class DamagedCachePolicy : std::uint8_t {
  Fail,
  Replace  // write a new one with our libraries and those of ld.so.conf; for hooks, which have no
           // other way
};

struct LoaderOptions {
  // Forward compatibility is checked only if a version of the host is known.
  loader::HostVersions host{};
  std::string compat_directory = std::string(kCompatDirectory);
  std::vector<std::string> preferred{};  // directories of the image that come before ours
  DirectoryOwner directories = DirectoryOwner::Ours;
  ReadOnlyPolicy if_read_only = ReadOnlyPolicy::Fail;
  DamagedCachePolicy if_damaged = DamagedCachePolicy::Fail;
};

struct LoaderResult {
  Loaders loaders;
  bool had_cache = false;
  std::optional<CompatChoice> compat;
  std::vector<std::string> notes;  // what was done differently than usual, one sentence each
};

// Idempotent. Unsupported if the files of this root cannot be changed (a read-only file system; the
// cache is a directory, a mount, too large or damaged). Then nothing has changed, and mounting at
// the loader's default directories still works.
Result<LoaderResult> configure_loader(const Root& root,
                                      std::span<const model::LibraryEdit> libraries,
                                      const LoaderOptions& options = {});

}  // namespace gantry::rootfs
