// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

struct LdCacheLibrary {
  std::string name;  // "libcuda.so.1"
  std::string path;  // "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
  bool is_32bit = false;
};

// /etc/ld.so.cache in the format that glibc has written since 2.2 and reads alone since 2.32:
// header "glibc-ld.so.cache1.1", entries in the descending order the loader's binary search
// expects. Of equal names the one given first stays first: the order of the directories in
// ld.so.conf.
std::string ld_cache(std::vector<LdCacheLibrary> libraries);

// glibc's order of library names: runs of digits compare as numbers. <0, 0, >0.
int compare_library_names(std::string_view a, std::string_view b);

}  // namespace gantry::sim
