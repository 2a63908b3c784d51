// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

#include "gantry/agent.hpp"
#include "gantry/commands.hpp"
#include "gantry/config_manager.hpp"
#include "gantry/container_cli.hpp"
#include "gantry/inspect.hpp"
#include "gantry/nvidia_ctk.hpp"
#include "gantry/nvidia_driver_installer.hpp"
#include "gantry/nvidia_mig_parted.hpp"
#include "gantry/nvidia_vgpu_dm.hpp"
#include "gantry/safe_output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>

namespace gantry::cli {
namespace {

void add_commands(CLI::App& app, Context& context, Action& chosen) {
  add_info(app, context, chosen);
  add_list(app, context, chosen);
  add_topo(app, context, chosen);
  add_gpu(app, context, chosen);
  add_doctor(app, context, chosen);
  add_report(app, context, chosen);
  add_cdi(app, context, chosen);
  add_explain(app, context, chosen);
  add_runtime(app, context, chosen);
  add_node(app, context, chosen);
  add_driver(app, context, chosen);
  add_config(app, context, chosen);
  add_completion(app, context, chosen);
  add_man_page(app, context, chosen);
  add_share(app, context, chosen);
  add_vfio(app, context, chosen);
  add_vgpu(app, context, chosen);
  add_mig_command(app, context, chosen);
  add_sim(app, context, chosen);
  add_vm(app, context, chosen);
  add_why(app, context, chosen);
  add_inspect(app, context, chosen);
  add_agent(app, context, chosen);
  add_scheduler(app, context, chosen);
}

// fmt::print throws when the write fails; stdio keeps other failures until the flush.
int run_checked(const std::function<int()>& program, std::FILE* out, std::FILE* err) {
  int status = kProblem;
  std::string why;
  try {
    status = program();
    if (std::fflush(out) != 0 || std::ferror(out) != 0) why = std::strerror(errno);
  } catch (const std::system_error& failed) {
    why = failed.what();
  }
  if (why.empty()) return status;
  std::fprintf(err, "gantry: cannot write the output: %s\n", why.c_str());
  return kProblem;
}

// For programs without a Context.
template <int (*run)(int argc, char** argv, std::FILE* out, std::FILE* err)>
int with_safe_output(int argc, char** argv, std::FILE* out, std::FILE* err) {
  const SafeOutput safe_out(out);
  const SafeOutput safe_err(err);
  return run(argc, argv, safe_out.file(), safe_err.file());
}

int gantry(int argc, char** argv, std::FILE* out, std::FILE* err) {
  // It parses its arguments itself, because it accepts flags of other programs.
  if (argc > 1 && std::string_view(argv[1]) == "agent")
    return with_safe_output<agent>(argc - 1, argv + 1, out, err);
  Context context = context_of_process(out, err);
  CLI::App app("Makes NVIDIA GPUs usable from containers, pods and virtual machines.", "gantry");
  app.set_version_flag("--version", "gantry " GANTRY_VERSION);
  Action chosen;
  add_commands(app, context, chosen);
  return run_program(app, argc, argv, context, chosen);
}

// The other names of this program. Each is a link to `gantry` (CMakeLists.txt creates them).
struct ProgramAlias {
  std::string_view name;
  int (*run)(int argc, char** argv, std::FILE* out, std::FILE* err);
};

constexpr ProgramAlias kProgramAliases[] = {
    {"nvidia-device-plugin", with_safe_output<device_plugin>},
    {"nvidia-gpu-device-plugin", with_safe_output<gke_device_plugin>},
    {"gpushare-device-plugin-v2", with_safe_output<gpushare_device_plugin>},
    {"gpu-feature-discovery", with_safe_output<feature_discovery>},
    {"mps-control-daemon", with_safe_output<mps_control_daemon>},
    {"config-manager", with_safe_output<config_manager>},
    {"nvidia-container-cli", with_safe_output<container_cli>},
    {"nvidia-ctk", nvidia_ctk},
    {"nvidia-driver-installer", nvidia_driver_installer},
    {"nvidia-vgpu-dm", nvidia_vgpu_dm},
    {"nvidia-mig-parted", nvidia_mig_parted},
    {"kubectl-inspect-gpushare", inspect_gpushare},
    {"kubectl-inspect-gpushare-v2", inspect_gpushare},
};

int run_named(int argc, char** argv, std::FILE* out, std::FILE* err) {
  const std::string_view called = argv[0];
  for (const auto& alias : kProgramAliases) {
    if (called.substr(called.rfind('/') + 1) == alias.name) return alias.run(argc, argv, out, err);
  }
  return gantry(argc, argv, out, err);
}

}  // namespace

int main_program(int argc, char** argv, std::FILE* out, std::FILE* err) {
  if (argc < 1) return kUsage;  // execve() allows it
  return run_checked([&] { return run_named(argc, argv, out, err); }, out, err);
}

}  // namespace gantry::cli
