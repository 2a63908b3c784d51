// SPDX-License-Identifier: Apache-2.0
#include "runtime/hand_on.hpp"
#include "runtime/personas.hpp"

namespace gantry::runtime {

int container_cli_main([[maybe_unused]] int argc, char** argv) {
  return hand_on_to_gantry(argv);
}

}  // namespace gantry::runtime
