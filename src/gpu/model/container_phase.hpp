// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gantry::model {

// When a container of a pod runs. Containers that never run at the same time use the same memory
// one after the other.
enum class ContainerPhase : std::uint8_t {
  Init,     // runs alone, before the others, and passes its devices on
  Sidecar,  // an init container with restartPolicy Always: keeps running
  Main
};

}  // namespace gantry::model
