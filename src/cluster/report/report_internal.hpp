// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/report/report.hpp"

#include <cstdint>
#include <string>

namespace gantry::report {

inline constexpr std::uint32_t kMaxGpuColumns = 64;  // more than any machine has

std::string address_of(const placement::NodeView& node);  // "unknown" if there is none
std::uint64_t pending_in(const placement::NodeView& node, std::uint64_t unit_mib);
void add(UsageSum& sum, const UsageSum& more);

}  // namespace gantry::report
