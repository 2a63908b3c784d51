// SPDX-License-Identifier: Apache-2.0
// Makes the dynamic loader inside a container find our libraries, by changing files of its root and
// nothing else: entries in front in /etc/ld.so.cache for the loader, a file in /etc/ld.so.conf.d
// for every later ldconfig in there; for musl, a directory in /etc/ld-musl-ARCH.path.
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

// Which loaders the image has; both where Debian's musl package is installed.
struct Loaders {
  bool glibc = false;
  bool musl = false;
  std::vector<std::string> musl_architectures;  // "x86_64" of /lib/ld-musl-x86_64.so.1
  bool operator==(const Loaders&) const = default;
};
Loaders find_loaders(const Root& root);

// Whose the libraries' directories are.
enum class DirectoryOwner : std::uint8_t {
  Ours,   // mounted as a whole: whatever an older cache says of them goes
  Shared  // the image's, with files of ours among its own: only what its cache does not know is
          // added
};

// What to do when the files cannot be written.
enum class ReadOnlyPolicy : std::uint8_t {
  Fail,
  MountOver  // a merged cache over the image's; for hooks, which are in the container's mount
             // namespace
};

// What to do with a cache of the image that is damaged. Its loader passes over it and looks in the
// usual places.
enum class DamagedCachePolicy : std::uint8_t {
  Fail,
  Replace  // by a new one, for hooks, which have no other way: ours, and what ld.so.conf names
};

struct LoaderOptions {
  // Forward compatibility is looked at when a version of the host is known.
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
  std::vector<std::string> notes;  // what was done otherwise than usual, one sentence each
};

// Idempotent. Unsupported when this root's files cannot be changed so (a read-only file system; a
// directory, a mount or something huge or damaged in the cache's place): nothing has changed then,
// and mounting at the loader's own places still works.
Result<LoaderResult> configure_loader(const Root& root,
                                      std::span<const model::LibraryEdit> libraries,
                                      const LoaderOptions& options = {});

}  // namespace gantry::rootfs
