// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "container/cdi/spec.hpp"

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::cdi {

struct Version {
  unsigned major = 0;
  unsigned minor = 3;
  auto operator<=>(const Version&) const = default;  // NOLINT(modernize-use-nullptr)
};

inline constexpr Version kV03{0, 3};
inline constexpr Version kV04{0, 4};
inline constexpr Version kV05{0, 5};
inline constexpr Version kV06{0, 6};
inline constexpr Version kV07{0, 7};
inline constexpr Version kV11{1, 1};

// Parses a CDI version, 0.3 to 1.1: "0.5.0", "v0.5.0" or "0.5". Invalid for any other version.
Result<Version> parse_version(std::string_view text);
std::string to_string(Version version);  // "0.5.0"

// Why a specification needs at least a version: "0.7.0: additionalGids".
struct VersionRequirement {
  Version version;
  std::string what;
};

// Every field of the specification that version 0.3.0 does not have, in order, without duplicates.
std::vector<VersionRequirement> version_requirements(const Spec& spec);
Version lowest_version(const Spec& spec);

}  // namespace gantry::cdi
