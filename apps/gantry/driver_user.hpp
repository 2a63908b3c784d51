// SPDX-License-Identifier: Apache-2.0
// The user that nvidia-container-cli's driver process runs as. If root calls it, the process
// becomes the user nobody, without capabilities, unless --user or the configuration names another
// user. Therefore root may be refused if the nodes belong to a group.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::cli {

struct DriverUser {
  std::uint32_t uid = 65534;
  std::uint32_t gid = 65534;
  std::vector<std::uint32_t> groups;  // supplementary; a caller keeps its own
  bool operator==(const DriverUser&) const = default;
};

// The default user: nobody if root calls, else the caller with its groups.
DriverUser default_driver_user();

// Parses "0:33", "root" or "root:video": numbers, or names from the machine's passwd and group
// files.
Result<DriverUser> parse_driver_user(const sys::Host& host, std::string_view text);

// Checks the permission bits only, because the driver process has no capabilities.
bool may_open(const DriverUser& user, const model::DeviceNode& node);

// `user = "root:video"` in section [nvidia-container-cli] of the toolkit's config.toml.
std::optional<std::string> configured_driver_user(const sys::Host& host);

}  // namespace gantry::cli
