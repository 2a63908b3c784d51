// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/cpuinfo.hpp"

#include "base/core/text.hpp"

#include <algorithm>

namespace gantry::procfs {

bool has_hypervisor_flag(std::string_view cpuinfo) {
  for (const auto line : lines(cpuinfo)) {
    if (!line.starts_with("flags")) continue;
    const auto flags = split(trim(line), ' ');
    return std::find(flags.begin(), flags.end(), "hypervisor") != flags.end();
  }
  return false;
}

}  // namespace gantry::procfs
