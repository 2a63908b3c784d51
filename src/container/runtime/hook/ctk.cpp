// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/hook/cdi_hook.hpp"
#include "container/runtime/persona/entry_points.hpp"
#include "container/runtime/persona/exec_gantry.hpp"
#include "container/runtime/persona/harden.hpp"

#include <string_view>

namespace gantry::runtime {

int ctk_main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "hook") {
      harden();
      return run_cdi_hook({argv + i + 1, argv + argc});
    }
    // Of the flags before the command, only this one has its value in the next word.
    if (word == "--config" || word == "-config") {
      ++i;
    } else if (!word.starts_with('-')) {
      break;
    }
  }
  return exec_gantry(argv);
}

}  // namespace gantry::runtime
