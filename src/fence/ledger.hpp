// SPDX-License-Identifier: Apache-2.0
// How much of each GPU this process holds, kept here and shown in its rows (abi.h).
#pragma once

namespace gantry::fence {

// After attaching: what this process holds, into rows that are new.
void rewrite_rows();
// In the child of a fork: it holds nothing.
void forget_ledger();

}  // namespace gantry::fence
