// SPDX-License-Identifier: Apache-2.0
// Writes ContainerEdits into config.json. All other bytes stay as they are.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>

namespace gantry::oci {

// Returns the new text. Each node gets an exact cgroup rule; environment variables replace those of
// the same name; mounts and nodes replace those at the same path; classic prestart hooks are
// removed, because their work is already done. Does not use `edits.libraries` and `edits.files`:
// they are for the code that writes into the container's root. Invalid for a node without numbers.
Result<std::string> apply(const json::Document& config, const model::ContainerEdits& edits);

// Returns true if a prestart hook is NVIDIA's (or ours under the same name).
bool is_classic_hook(std::string_view path);

// Adds the classic prestart hook to the text, unless there is one already.
Result<std::string> add_classic_hook(const json::Document& config, const std::string& path);

}  // namespace gantry::oci
