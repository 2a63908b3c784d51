// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/entry_points.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace {

using gantry::runtime::EntryPoint;

// One line per name. Any unknown name runs the shim, because engines may call a runtime by any
// path.
constexpr std::array kEntryPoints{
    std::pair<std::string_view, EntryPoint>{"nvidia-container-cli",
                                            gantry::runtime::container_cli_main},
    std::pair<std::string_view, EntryPoint>{"nvidia-cdi-hook", gantry::runtime::cdi_hook_main},
    std::pair<std::string_view, EntryPoint>{"nvidia-ctk", gantry::runtime::ctk_main},
    std::pair<std::string_view, EntryPoint>{"nvidia-container-runtime-hook",
                                            gantry::runtime::runtime_hook_main},
    std::pair<std::string_view, EntryPoint>{"nvidia-container-toolkit",
                                            gantry::runtime::runtime_hook_main},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 1) return 1;  // execve() allows it
  std::string_view name = argv[0];
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  for (const auto& [known, entry_point] : kEntryPoints) {
    if (name == known) return entry_point(argc, argv);
  }
  return gantry::runtime::shim_main(argc, argv);
}
