// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gantry::abi {

// Counts and array sizes that grow with each release of a header are not part of the interface.
inline bool grows(const std::string& what) {
  return what.ends_with("_PROFILE_COUNT") || what.ends_with("_MAX_LINKS");
}

// The differences between the vendor's header and ours, one sentence each. Old NVML functions fill
// structs that the vendor's header no longer declares; ours are named gantry* and are skipped.
inline std::vector<std::string> disagreements(const std::map<std::string, std::string>& vendor,
                                              const std::map<std::string, std::string>& ours) {
  std::vector<std::string> found;
  for (const auto& [what, value] : vendor) {
    if (grows(what)) continue;
    const auto mine = ours.find(what);
    if (mine == ours.end()) {
      found.push_back(std::string(what).append(": ").append(value).append(" there, nothing here"));
    } else if (mine->second != value && mine->second.find("gantry") == std::string::npos) {
      found.push_back(std::string(what)
                          .append(": ")
                          .append(value)
                          .append(" there, ")
                          .append(mine->second)
                          .append(" here"));
    }
  }
  return found;
}

}  // namespace gantry::abi
