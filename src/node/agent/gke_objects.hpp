// SPDX-License-Identifier: Apache-2.0
// The objects that GKE's plugin sends to the API server, as JSON texts. Pure.
#pragma once

#include "base/json/document.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace gantry::agent {

inline constexpr std::string_view kGkeCondition = "XidCriticalError";

// The Event on the node for an XID. `number` makes its name unique within this process.
std::string gke_event(const std::string& node, unsigned xid, std::int64_t at_s, unsigned number);

// Whether an XID sets the condition. This does not decide whether the GPU becomes unhealthy.
bool is_gke_condition(unsigned xid);

// A patch of the node's status with the XIDs of this boot.
std::string gke_condition(const std::set<unsigned>& xids, const std::string& boot_id,
                          std::int64_t now_s, std::int64_t since_s);
std::string without_gke_condition();

// The XIDs in the node's condition, and the boot that they belong to. Empty if the node has no such
// condition.
struct GkeCondition {
  std::set<unsigned> xids;
  std::string boot_id;
};
GkeCondition parse_gke_condition(const json::Document& node);

// The annotations cloud.google.com/cuda.driver-version.major and so on, for server-side apply.
std::string driver_annotations(const std::string& node, std::string_view version);

}  // namespace gantry::agent
