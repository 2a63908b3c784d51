// SPDX-License-Identifier: Apache-2.0
// Explains a manifest before it is applied: a manifest that the API server rejects never becomes a
// pod that `gantry why pod` could explain.
#pragma once

#include "base/core/result.hpp"
#include "cluster/explain/explanation.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::explain {

inline constexpr std::size_t kMaxManifestBytes = std::size_t{4} << 20;

// The steps of the spec for every pod in the text: Pods, and the templates of Deployments, Jobs,
// TFJobs, RayClusters and every other object. Takes what kubectl takes: YAML with several
// documents, anchors and merge keys; JSON; lists. NotFound if the text has no pod.
Result<std::vector<Explanation>> explain_manifest(std::string_view text, const std::string& file);

}  // namespace gantry::explain
