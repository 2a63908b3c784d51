// SPDX-License-Identifier: Apache-2.0
// The steps for a notebook whose page shows no results: does its kernel answer in the pod, and does
// the browser's connection let the answers through? Pure: answers in, steps out.
#pragma once

#include "cluster/explain/explanation.hpp"
#include "node/why/notebook.hpp"

#include <cstdint>
#include <vector>

namespace gantry::why {

enum class GpuState : std::uint8_t { Works, Unhealthy, Unknown };

std::vector<explain::Step> notebook_steps(const NotebookView& view, GpuState gpu);

}  // namespace gantry::why
