// SPDX-License-Identifier: Apache-2.0
// The list of digests that a directory of modules comes with, as sha256sum writes it: SHA256SUMS.
// What the kernel loads from it is what was built, and not what somebody put there since.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <map>
#include <string>
#include <string_view>

namespace gantry::driver_package {

inline constexpr std::string_view kChecksumFile = "SHA256SUMS";

struct ModuleChecksums {
  std::string path;                            // of the list
  std::map<std::string, std::string> digests;  // by the names of the files, without directories
  bool operator==(const ModuleChecksums&) const = default;
};

// Digests by names. Corrupt for a line that is not of sha256sum. Bounded; accepts any bytes.
Result<std::map<std::string, std::string>> parse_checksums(std::string_view text);

// The list for the modules in `directory`, which is `top` or a directory below it: the one beside
// them, or that of `top`. NotFound if there is none; Denied if `pinned` is another digest than the
// list's own ("" = not pinned).
Result<ModuleChecksums> read_module_checksums(const sys::Host& host, const std::string& top,
                                              const std::string& directory,
                                              const std::string& pinned);

// Denied if the file has another digest than the one that the list has for `name`, or if it has
// none.
Status check_module_digest(const sys::Host& host, const ModuleChecksums& checksums,
                           const std::string& name, const std::string& path);

}  // namespace gantry::driver_package
