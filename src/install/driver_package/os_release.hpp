// SPDX-License-Identifier: Apache-2.0
// os-release(5): which distribution a machine has.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_package {

struct OsRelease {
  std::string id;                    // "ubuntu"; "linux" if the file does not say
  std::string version_id;            // "22.04"; "" for distributions without versions
  std::vector<std::string> id_like;  // "rhel", "centos", "fedora"
  std::string codename;              // "bookworm"
  std::string pretty_name;           // for people
  bool operator==(const OsRelease&) const = default;
};

// True if the distribution is `id` or says that it is like it.
bool is_like(const OsRelease& release, std::string_view id);

inline constexpr std::size_t kOsReleaseLimit = std::size_t{64} << 10;

// Invalid for a line that is neither empty, a comment, nor NAME=VALUE.
Result<OsRelease> parse_os_release(std::string_view text);

// /etc/os-release, or /usr/lib/os-release.
Result<OsRelease> read_os_release(const sys::Host& host);

}  // namespace gantry::driver_package
