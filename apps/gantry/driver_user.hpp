// SPDX-License-Identifier: Apache-2.0
// Who nvidia-container-cli runs its driver process as. Called by root it drops to nobody, without
// capabilities, unless --user or the configuration names somebody: that is why root may be refused
// where nodes belong to a group.
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
  std::vector<std::uint32_t> groups;  // supplementary; an ordinary caller keeps its own
  bool operator==(const DriverUser&) const = default;
};

// The one who calls: nobody for root, himself with his groups for everybody else.
DriverUser default_driver_user();

// "0:33", "root", "root:video": numbers, or names from the machine's passwd and group files.
Result<DriverUser> parse_driver_user(const sys::Host& host, std::string_view text);

// Permission bits alone decide; the driver process has no capabilities.
bool may_open(const DriverUser& user, const model::DeviceNode& node);

// `user = "root:video"` in section [nvidia-container-cli] of the toolkit's config.toml.
std::optional<std::string> configured_driver_user(const sys::Host& host);

}  // namespace gantry::cli
