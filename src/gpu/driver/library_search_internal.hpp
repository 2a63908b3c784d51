// SPDX-License-Identifier: Apache-2.0
// Candidate directories below one root, each listed once, and the driver versions found in them.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/driver/root.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver {

// A libcuda or libnvidia-ml with a driver version in its name.
struct VersionedLibrary {
  std::size_t directory = 0;  // index into directories()
  std::string version;
  std::string real_directory;
  bool is_libcuda = false;
};

class LibrarySearch {
 public:
  explicit LibrarySearch(const sys::Host& host) : host_(host) {}

  void add_standard_directories();
  void add_self_contained_roots();
  void add_named_directory(std::string_view directory) {
    add(directory, "named by --library-search-path");
  }
  // Call it after adding the directories: it adds those from ld.so.cache and the targets of links.
  void finish(std::string_view ld_cache = kLoaderCache);

  const std::vector<LibraryDirectory>& directories() const { return directories_; }
  const std::vector<VersionedLibrary>& versioned_libraries() const { return versioned_libraries_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // The version that the loader would choose for libcuda.so.1 or libnvidia-ml.so.1; "" if none.
  const std::string& loader_version() const { return loader_version_; }
  // "/usr/local/nvidia" for paths below it, "/" for all others.
  std::string root_of(std::string_view path) const;

 private:
  void add(std::string_view path, std::string_view why);
  void add_numbered(std::string_view parent);  // nvidia-384 and the like
  void read_cache(std::string_view path);
  void follow_links(std::size_t directory);
  void find_versioned_libraries(std::size_t directory);
  void record_loader_choice(std::string_view name, std::string_view path);

  const sys::Host& host_;
  std::vector<LibraryDirectory> directories_;
  std::map<std::string, std::size_t, std::less<>>
      asked_;  // path as asked or resolved -> index, npos: none
  std::vector<VersionedLibrary> versioned_libraries_;
  std::vector<std::string> roots_;  // self-contained ones that exist, resolved
  std::vector<std::string> notes_;
  std::string loader_version_;
};

}  // namespace gantry::driver
