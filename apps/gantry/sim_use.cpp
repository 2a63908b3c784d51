// SPDX-License-Identifier: Apache-2.0
// gantry sim use: serves a simulated machine to the container engines of the real one, and takes it
// back.
#include "base/sys/replace_file.hpp"
#include "base/sys/shell_command.hpp"
#include "container/cdi/registry.hpp"
#include "container/publish/refresh.hpp"
#include "gantry/cdi_options.hpp"
#include "gantry/sim_commands.hpp"
#include "sim/machine/tree.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::cli {
namespace {

// The first line of a specification that `sim use` wrote; the machine's root follows.
constexpr std::string_view kServedMark = "# A simulated machine, served by `gantry sim use`: ";
constexpr std::string_view kEnginesDirectory = "/var/run/cdi";
constexpr std::string_view kSpecName = "nvidia.yaml";
constexpr std::string_view kGpuKind = "nvidia.com/gpu";

struct SimUseOptions {
  std::string directory{kEnginesDirectory};
  bool remove = false;
};

std::string move_away(const std::string& path) {
  return fmt::format("move it away first: sudo mv {} {}", sys::shell_word(path),
                     sys::shell_word(path + ".before-sim"));
}

std::string served_root(const std::string& text) {
  if (!text.starts_with(kServedMark)) return "";
  return text.substr(kServedMark.size(), text.find('\n') - kServedMark.size());
}

Status check_other_specs(const sys::Host& live, const std::string& path) {
  auto directories = cdi::default_directories();
  const auto own = path.substr(0, path.rfind('/'));
  if (std::find(directories.begin(), directories.end(), own) == directories.end())
    directories.push_back(own);
  const auto registry = cdi::Registry::load(live, directories);
  for (const auto& file : registry.files()) {
    if (file.spec.kind != kGpuKind || file.path == path) continue;
    return Error(Errc::Exists, fmt::format("{} already defines {} devices; {}", file.path, kGpuKind,
                                           move_away(file.path)));
  }
  return {};
}

// The specification of the machine, written into the machine itself.
Result<publish::RefreshResult> prepare_machine(const Context& context) {
  const SpecFlags flags;
  GANTRY_TRY(const auto machine, open_machine(flags, context));
  publish::RefreshOptions options;
  GANTRY_TRY(options.spec, spec_options(flags, machine));
  return publish::refresh(machine.host, options);
}

Result<int> use_machine(const SimUseOptions& options, Context& context) {
  GANTRY_TRY(const auto marker, sim::read_marker(context.root));
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto live, sys::Host::at("/"));
  const auto path = fmt::format("{}/{}", options.directory, kSpecName);
  GANTRY_CHECK(check_serve_target(live, path));
  GANTRY_TRY(const auto made, prepare_machine(context));
  GANTRY_TRY(const auto text, host.read(publish::kSpecPath));
  GANTRY_CHECK(sys::replace_file(path, fmt::format("{}{}\n{}", kServedMark, host.root(), text)));
  fmt::print(context.out, "{}: {} devices of {} in {}\n", path, made.devices, marker.machine,
             host.root());
  fmt::print(context.out,
             "Try: podman run --rm --device nvidia.com/gpu=0 IMAGE nvidia-smi -L\n"
             "To take it back: {}gantry sim use --remove{}\n",
             ::geteuid() == 0 ? "" : "sudo ",
             options.directory == kEnginesDirectory
                 ? ""
                 : fmt::format(" --spec-dir {}", sys::shell_word(options.directory)));
  return kOk;
}

Result<int> remove_machine(const SimUseOptions& options, Context& context) {
  GANTRY_TRY(const auto live, sys::Host::at("/"));
  const auto path = fmt::format("{}/{}", options.directory, kSpecName);
  const auto text = live.read(path);
  if (!text.ok() && text.error().code() == Errc::NotFound) {
    fmt::print(context.out, "No simulated machine is served: there is no {}.\n", path);
    return kOk;
  }
  if (!text.ok()) return text.error();
  if (served_root(*text).empty()) {
    return Error(Errc::Exists,
                 fmt::format("{} was not written by `gantry sim use`, so it stays", path));
  }
  if (::unlink(path.c_str()) != 0) return Error::sys(errno, fmt::format("remove {}", path));
  fmt::print(context.out, "{}: removed; {} is no longer served\n", path, served_root(*text));
  return kOk;
}

}  // namespace

Status check_serve_target(const sys::Host& live, const std::string& path) {
  if (live.exists("/proc/driver/nvidia/version")) {
    return Error(Errc::Exists,
                 "this machine has a real NVIDIA driver, and a simulated machine is never served "
                 "over one; `gantry cdi refresh` serves the real one");
  }
  const auto text = live.read(path);
  if (!text.ok() && text.error().code() != Errc::NotFound) return text.error();
  if (text.ok() && served_root(*text).empty()) {
    return Error(Errc::Exists,
                 fmt::format("{} was not written by `gantry sim use`; {}", path, move_away(path)));
  }
  return check_other_specs(live, path);
}

void add_sim_use(CLI::App& sim, Context& context, Action& chosen) {
  auto options = std::make_shared<SimUseOptions>();
  auto* command =
      sim.add_subcommand("use", "Serve a simulated machine to the container engines of this one");
  command
      ->add_option("--root", context.root,
                   "Directory of the simulated machine (environment: GANTRY_ROOT)")
      ->type_name("DIR");
  command->add_flag("--remove", options->remove, "Take it back");
  command
      ->add_option("--spec-dir", options->directory,
                   "Directory of CDI specifications that the engines read")
      ->type_name("DIR")
      ->transform(absolute_path())
      ->capture_default_str();
  add_examples(*command,
               "  gantry sim use --root /tmp/machine   # podman run --device nvidia.com/gpu=0 ...\n"
               "  gantry sim use --remove\n");
  command->callback([=, &chosen] {
    chosen = [=](Context& c) {
      return options->remove ? remove_machine(*options, c) : use_machine(*options, c);
    };
  });
}

}  // namespace gantry::cli
