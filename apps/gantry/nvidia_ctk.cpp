// SPDX-License-Identifier: Apache-2.0
#include "gantry/nvidia_ctk.hpp"

#include <CLI/CLI.hpp>

namespace gantry::cli {
namespace {

constexpr AddCommand kCtkCommands[] = {
    add_ctk_cdi,
    add_ctk_config,
    add_ctk_runtime,
    add_ctk_system,
};

// The NVIDIA release whose commands and flags this program has.
constexpr const char* kVersion =
    "NVIDIA Container Toolkit CLI version 1.20.0 (answered by gantry " GANTRY_VERSION ")";

}  // namespace

int nvidia_ctk(int argc, char** argv, std::FILE* out, std::FILE* err) {
  Context context = context_of_process(out, err);
  CLI::App app("The NVIDIA Container Toolkit's commands, answered by gantry.", "nvidia-ctk");
  app.fallthrough();   // as NVIDIA's: the global flags may also stand after the command
  bool debug = false;  // nothing is logged; accepted because units and scripts pass it
  app.add_flag("-d,--debug", debug, "Accepted; nothing is logged")->envname("NVIDIA_CTK_DEBUG");
  app.add_flag("--quiet", context.quiet, "Print errors only")->envname("NVIDIA_CTK_QUIET");
  app.add_option("--config", context.config_file, "nvidia-container-runtime's config.toml")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->envname("NVIDIA_CTK_CONFIG");
  app.set_version_flag("-v,--version", kVersion);
  Action chosen;
  for (const auto add : kCtkCommands) add(app, context, chosen);
  // A static program (src/container/runtime/hook/ctk.cpp) handles `hook` before this one starts. It
  // is listed here only for the help.
  app.add_subcommand("hook", "Run by CDI specifications inside a container; see hook --help")
      ->prefix_command()
      ->callback([&chosen] {
        chosen = [](Context&) -> Result<int> {
          return Error(Errc::Unsupported, "hooks are a separate program: run nvidia-cdi-hook");
        };
      });
  return run_program(app, argc, argv, context, chosen);
}

}  // namespace gantry::cli
