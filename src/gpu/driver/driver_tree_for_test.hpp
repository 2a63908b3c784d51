// SPDX-License-Identifier: Apache-2.0
// Drivers as trees: libraries that have a SONAME and the links an installer makes.
#pragma once

#include "gpu/loader/ld_cache.hpp"
#include "support/elf_image.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver {

enum class Bits { B32, B64 };

// libcuda.so -> libcuda.so.1 -> libcuda.so.VERSION
inline void put_library(test::Tree& tree, std::string_view directory, std::string_view stem,
                        std::string_view version, std::string_view major = "1",
                        Bits bits = Bits::B64) {
  const auto soname = fmt::format("{}.so.{}", stem, major);
  const auto file = fmt::format("{}.so.{}", stem, version);
  tree.file(fmt::format("{}/{}", directory, file),
            test::elf_image({.soname = soname, .is_32bit = bits == Bits::B32}));
  tree.link(fmt::format("{}/{}", directory, soname), file);
  tree.link(fmt::format("{}/{}.so", directory, stem), soname);
}

inline void put_driver(test::Tree& tree, std::string_view directory, std::string_view version,
                       Bits bits = Bits::B64) {
  for (const auto* stem :
       {"libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-encode", "libnvcuvid"}) {
    put_library(tree, directory, stem, version, "1", bits);
  }
  // Without a number of its own: SONAME and file name are one.
  const auto name = fmt::format("libnvidia-glcore.so.{}", version);
  tree.file(fmt::format("{}/{}", directory, name),
            test::elf_image({.soname = name, .is_32bit = bits == Bits::B32}));
}

inline void put_module(test::Tree& tree, std::string_view version) {
  tree.file("proc/driver/nvidia/version",
            fmt::format(
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Tue Jan  1 00:00:00 UTC 2030\n"
                "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
                version));
}

inline void put_cache(test::Tree& tree, std::vector<loader::LdCacheEntry> entries,
                      std::string_view root = "") {
  tree.file(fmt::format("{}/etc/ld.so.cache", root),
            *loader::serialize_ld_cache({.entries = std::move(entries)}));
}

}  // namespace gantry::driver
