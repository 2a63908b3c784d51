// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::fence {

// In the child of a fork.
void reset_vmm_after_fork();

}  // namespace gantry::fence
