// SPDX-License-Identifier: Apache-2.0
// Queries NVML about the whole machine.
#pragma once

#include "gpu/nvml/nvml.hpp"
#include "gpu/probe/nvml_view.hpp"

namespace gantry::nvml {

// Initialises NVML and queries it. Never fails: if NVML does not start, `failure` is set.
// Does not shut NVML down. The calls may hang or crash, so only gantry-nvml makes them.
probe::NvmlView read_view(const Nvml& nvml, const probe::NvmlParts& parts);

}  // namespace gantry::nvml
