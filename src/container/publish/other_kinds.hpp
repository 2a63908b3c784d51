// SPDX-License-Identifier: Apache-2.0
// CDI specifications of other kinds than GPUs (storage, network, memory between nodes), each in a
// separate file.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/publish/generate_spec.hpp"

#include <string>

namespace gantry::publish {

std::string spec_path(SpecKind kind);  // "/var/run/cdi/nvidia-gds.yaml"

// Returns true if the specification changed. NotFound if the machine has no device of the kind. In
// that case, and if another tool's file defines the kind, writes nothing.
Result<bool> refresh_kind(const sys::Host& host, const model::Inventory& machine,
                          const SpecOptions& options);

}  // namespace gantry::publish
