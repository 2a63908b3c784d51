// SPDX-License-Identifier: Apache-2.0
// ContainerEdits written into config.json. Whatever they do not concern stays byte for byte.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>

namespace gantry::oci {

// The new text. Nodes come with an exact cgroup rule each; environment is replaced by name; mounts
// and nodes replace those at the same place; prestart hooks of the classic chain go, because what
// they would do is done. `edits.libraries` and `edits.files` are for whoever writes into the root.
// Invalid for a node without numbers.
Result<std::string> apply(const json::Document& config, const model::ContainerEdits& edits);

// Whether a prestart hook is NVIDIA's (or ours under its name).
bool is_classic_hook(std::string_view path);

// The text with one prestart hook more, unless there is one of that kind already.
Result<std::string> add_classic_hook(const json::Document& config, const std::string& path);

}  // namespace gantry::oci
