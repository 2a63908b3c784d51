// SPDX-License-Identifier: Apache-2.0
// Specifications of the kinds beside GPUs (storage, network, memory between nodes), each in a file
// of its own beside that of the GPUs.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/publish/generate_spec.hpp"

#include <string>

namespace gantry::publish {

std::string spec_path(SpecKind kind);  // "/var/run/cdi/nvidia-gds.yaml"

// True: it is another one than before. NotFound where the machine has nothing of the kind; then,
// and where another tool's file has it already, nothing is written.
Result<bool> refresh_kind(const sys::Host& host, const model::Inventory& machine,
                          const SpecOptions& options);

}  // namespace gantry::publish
