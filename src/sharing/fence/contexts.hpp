// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::fence {

// Call this in the child of a fork.
void reset_contexts_after_fork();

}  // namespace gantry::fence
