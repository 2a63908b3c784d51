// SPDX-License-Identifier: Apache-2.0
// The low-level runtime that we execute: runc, crun, or the one that the configuration names.
#pragma once

#include "base/core/result.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

// CRI-O's own packages keep runc and crun in the last one.
inline constexpr std::array<std::string_view, 7> kUsualPlaces{
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",        "/usr/bin",
    "/sbin",           "/bin",           "/usr/libexec/crio"};

// The first candidate that is an executable file and not this program. A name with a slash is a
// path; other names are looked up in `search_path` (PATH) and then in the usual directories.
// NotFound with the searched directories.
Result<std::string> find_low_level(const std::vector<std::string>& candidates,
                                   std::string_view search_path,
                                   std::span<const std::string_view> usual_places = kUsualPlaces);

// The path of this program under another of its names ("nvidia-cdi-hook"), in the same directory;
// "" if it does not exist.
std::string own_program_path(std::string_view name);

// The path of another program of ours ("gantry") in the same directory; "" if it does not exist.
std::string sibling_program_path(std::string_view name);

}  // namespace gantry::runtime
