// SPDX-License-Identifier: Apache-2.0
// The parts of read_facts. Each fills its own fields.
#pragma once

#include "install/preflight/facts.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

inline constexpr std::size_t kSmallFile = std::size_t{64} << 10U;
inline constexpr std::size_t kMountsLimit = std::size_t{4} << 20U;

Status read_gpus(const sys::Host& host, MachineFacts& facts);
void read_kernel(const sys::Host& host, const FactSources& sources, MachineFacts& facts);
void read_toolchain(const sys::Host& host, const FactSources& sources, MachineFacts& facts);
void read_precompiled(const sys::Host& host, const FactSources& sources, MachineFacts& facts);
void read_installed(const sys::Host& host, const FactSources& sources, MachineFacts& facts);
void read_users(const sys::Host& host, MachineFacts& facts);
void read_storage(const sys::Host& host, const FactSources& sources, MachineFacts& facts);
void read_clock(const sys::Host& host, const FactSources& sources, MachineFacts& facts);
void read_libc(const sys::Host& host, MachineFacts& facts);

// Installed packages of dpkg's status file whose names a driver's packages have.
std::vector<std::string> find_driver_packages(std::string_view dpkg_status);

// "2.36" in the text that glibc prints about itself; "" if it is not there.
std::string find_glibc_version(std::string_view bytes);

// The line of /proc/mounts, /proc/1/mounts that a path belongs to.
DiskFact find_mount(std::string_view mounts, std::string_view path);

std::string version_in_google_cache(std::string_view text);  // "" if it has none

}  // namespace gantry::preflight
