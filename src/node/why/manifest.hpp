// SPDX-License-Identifier: Apache-2.0
// Explains a manifest before it is applied: a manifest that the API server rejects never becomes a
// pod that `gantry why pod` could explain.
#pragma once

#include "base/core/result.hpp"
#include "node/why/explanation.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

// The steps of the spec for every pod in the text: Pods, and the templates of Deployments, Jobs,
// CronJobs and similar objects. YAML, with several documents, or JSON. NotFound if the text has no
// pod.
Result<std::vector<Explanation>> why_manifest(std::string_view text, const std::string& file);

}  // namespace gantry::why
