// SPDX-License-Identifier: Apache-2.0
#include "gantry/nvidia_vgpu_dm.hpp"

#include "gantry/vgpu_commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

// The original exits with 1 and this sentence; both flags are needed, there is no default set.
Status check_flags(const VgpuFlags& flags) {
  std::vector<std::string_view> missing;
  if (flags.file.empty()) missing.emplace_back("config-file");
  if (flags.set.empty()) missing.emplace_back("selected-config");
  if (missing.empty()) return {};
  return Error(Errc::Invalid, fmt::format("missing required flags '{}'", fmt::join(missing, ", ")));
}

void add_dm_command(CLI::App& app, const char* name, const char* what, Action& chosen,
                    Result<int> (*work)(const VgpuFlags&, Context&)) {
  auto flags = std::make_shared<VgpuFlags>();
  flags->set.clear();
  auto* command = app.add_subcommand(name, what);
  command->add_option("-f,--config-file", flags->file, "Path to the configuration file")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->envname("VGPU_DM_CONFIG_FILE");
  command->add_option("-c,--selected-config", flags->set, "The name of the set in the file")
      ->type_name("NAME")
      ->envname("VGPU_DM_SELECTED_CONFIG");
  if (work == assert_vgpus) {
    command
        ->add_flag("-a,--valid-config", flags->valid_only,
                   "Check only that the file is valid and has the set")
        ->envname("VGPU_DM_VALID_CONFIG");
  }
  command->callback([=, &chosen] {
    chosen = [=](Context& context) -> Result<int> {
      GANTRY_CHECK(check_flags(*flags));
      return work(*flags, context);
    };
  });
}

}  // namespace

int nvidia_vgpu_dm(int argc, char** argv, std::FILE* out, std::FILE* err) {
  Context context = context_of_process(out, err);
  CLI::App app("NVIDIA's vgpu-device-manager, answered by gantry.", "nvidia-vgpu-dm");
  app.fallthrough();
  bool debug = false;  // nothing is logged; accepted because scripts pass it
  app.add_flag("-d,--debug", debug, "Accepted; nothing is logged")->envname("VGPU_DM_DEBUG");
  app.set_version_flag("-v,--version", "nvidia-vgpu-dm (answered by gantry " GANTRY_VERSION ")");
  app.footer(
      "Examples:\n"
      "  nvidia-vgpu-dm apply -f config.yaml -c default\n"
      "  nvidia-vgpu-dm assert -f config.yaml -c default\n"
      "gantry vgpu --help has more commands.\n");
  Action chosen;
  add_dm_command(app, "apply", "Apply the vGPUs of a named set", chosen, apply_vgpus);
  add_dm_command(app, "assert", "Assert that a named set is applied", chosen, assert_vgpus);
  return run_program(app, argc, argv, context, chosen);
}

}  // namespace gantry::cli
