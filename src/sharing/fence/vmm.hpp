// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::fence {

// In the child of a fork.
void forget_vmm();

}  // namespace gantry::fence
