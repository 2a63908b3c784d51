// SPDX-License-Identifier: Apache-2.0
// A manifest before anybody applied it: what the API server refuses never becomes a pod that one
// could ask about.
#pragma once

#include "base/core/result.hpp"
#include "node/why/explanation.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

// The links of the spec for every pod in the text: Pods, and the templates of Deployments, Jobs,
// CronJobs and their kin. YAML, several documents, or JSON. NotFound when there is no pod in it.
Result<std::vector<Explanation>> why_manifest(std::string_view text, const std::string& file);

}  // namespace gantry::why
