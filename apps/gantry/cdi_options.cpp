// SPDX-License-Identifier: Apache-2.0
#include "gantry/cdi_options.hpp"

#include "plan/capabilities.hpp"
#include "prepared/current.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>

namespace gantry::cli {
namespace {

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The hook beside this program, else where packages put it.
std::string found_hook() {
  std::array<char, PATH_MAX> self{};
  const auto length = ::readlink("/proc/self/exe", self.data(), self.size());
  if (length > 0) {
    const std::string_view path(self.data(), static_cast<std::size_t>(length));
    auto beside = fmt::format("{}/nvidia-cdi-hook", path.substr(0, path.rfind('/')));
    if (::access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "/usr/bin/nvidia-cdi-hook";
}

Result<plan::Flavour> parse_flavour(const SpecFlags& flags) {
  if (has(flags.disabled_hooks, "all") || has(flags.disabled_hooks, "update-ldcache"))
    return plan::Flavour::NoHooks;
  if (flags.flavour == "no-hooks") return plan::Flavour::NoHooks;
  if (flags.flavour == "one-hook") return plan::Flavour::OneHook;
  return Error(Errc::Invalid,
               fmt::format("--flavour {} is none that a specification can have; there are no-hooks "
                           "and one-hook (the shim needs no specification)",
                           flags.flavour));
}

Result<plan::Groups> parse_groups(const SpecFlags& flags) {
  if (has(flags.features, "no-additional-gids-for-device-nodes")) return plan::Groups::None;
  if (flags.gids == "auto") return plan::Groups::DriverNodes;
  if (flags.gids == "all") return plan::Groups::AllNodes;
  if (flags.gids == "none") return plan::Groups::None;
  return Error(Errc::Invalid,
               fmt::format("--additional-gids {}: there are auto, all and none", flags.gids));
}

}  // namespace

void add_spec_flags(CLI::App& command, SpecFlags& flags) {
  command
      .add_option(
          "--mode,--discovery-mode", flags.mode,
          "auto, nvml (ask NVML in any case), management, gds, gdrcopy, mofed, nvswitch, imex")
      ->type_name("MODE")
      ->envname("NVIDIA_CTK_CDI_GENERATE_MODE")
      ->capture_default_str();
  command
      .add_option("--flavour", flags.flavour,
                  "How the container's loader finds the driver: no-hooks or one-hook")
      ->type_name("FLAVOUR")
      ->capture_default_str();
  command
      .add_option("--capabilities", flags.capabilities,
                  "Driver capabilities a container gets, or all (with compat32)")
      ->type_name("LIST")
      ->capture_default_str();
  command
      .add_option(
          "--device-id,--device-ids,--device,--devices", flags.devices,
          "Only these: index, GPU:INSTANCE, UUID, PCI address; none for the driver without a GPU")
      ->type_name("ID")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_DEVICE_IDS");
  command
      .add_option("--device-name-strategy", flags.names,
                  "index, uuid, type-index; a device has a name by each")
      ->type_name("NAMING")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES")
      ->capture_default_str();
  command.add_flag("--no-all-device", flags.no_all_device, "Leave the device `all` out")
      ->envname("NVIDIA_CTK_CDI_GENERATE_NO_ALL_DEVICE");
  command
      .add_option("--vendor,--cdi-vendor", flags.vendor, "Vendor of the kind (default: nvidia.com)")
      ->type_name("NAME")
      ->envname("NVIDIA_CTK_CDI_GENERATE_VENDOR");
  command.add_option("--class,--cdi-class", flags.class_name, "Class of the kind (default: gpu)")
      ->type_name("NAME")
      ->envname("NVIDIA_CTK_CDI_GENERATE_CLASS");
  command
      .add_option("--engine-root", flags.engine_root,
                  "What the engine must put before this machine's paths, / for nothing (default: a "
                  "simulated "
                  "tree's place, else nothing)")
      ->type_name("DIR");
  command
      .add_option("--driver-root", flags.driver_root,
                  "NVIDIA's name for --root; paths are written with it in front")
      ->type_name("DIR")
      ->envname("NVIDIA_CTK_DRIVER_ROOT");
  command.add_option("--dev-root", flags.dev_root, "Accepted where it is the root")
      ->type_name("DIR")
      ->envname("NVIDIA_CTK_DEV_ROOT");
  command
      .add_option("--target-version", flags.target_version,
                  "CDI version to write, down to 0.3; what it cannot say is left out with a word "
                  "(default: the lowest that can say everything)")
      ->type_name("VERSION");
  command.add_flag("--firmware", flags.firmware,
                   "Mount the GSP firmware, too; a container needs none");
  command
      .add_option("--additional-gids", flags.gids,
                  "Groups of nodes that are not for everybody: auto (the driver's nodes), all "
                  "(those below /dev/dri too; needs CDI 0.7), none")
      ->type_name("WHICH")
      ->capture_default_str();
  command
      .add_option("--nvidia-cdi-hook-path,--nvidia-ctk-path", flags.hook_path,
                  "The hook of --flavour one-hook, as the engine sees it")
      ->type_name("FILE")
      ->envname("NVIDIA_CTK_CDI_HOOK_PATH");
  command
      .add_option("--disable-hook,--disable-hooks", flags.disabled_hooks,
                  "all or update-ldcache: the same as --flavour no-hooks; others are not there to "
                  "begin with")
      ->type_name("HOOK")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_DISABLED_HOOKS");
  command
      .add_option("--feature-flag,--feature-flags", flags.features,
                  "no-additional-gids-for-device-nodes, disable-ipc-discoverer; NVIDIA's others "
                  "change nothing")
      ->type_name("FLAG")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS");
  // Of NVIDIA's tool, and without a use here: files are found by what they are, and no ldconfig is
  // run. Accepted, so that units and scripts go on working.
  for (const auto* name : {"--library-search-path,--library-search-paths",
                           "--config-search-path,--config-search-paths", "--ldconfig-path",
                           "--enable-hook,--enable-hooks"}) {
    command.add_option(name, flags.not_needed, "Accepted; not needed here")->type_name("VALUE");
  }
}

void apply_driver_root(const SpecFlags& flags, Context& context) {
  if (!flags.driver_root.empty()) context.root = flags.driver_root;
}

Result<refresh::SpecOptions> spec_options(const SpecFlags& flags, const sys::Host& host) {
  refresh::SpecOptions options;
  GANTRY_TRY(options.kind, refresh::parse_mode(flags.mode).in("--mode"));
  options.names.clear();
  for (const auto& word : flags.names) {
    GANTRY_TRY(const auto strategy, refresh::parse_strategy(word).in("--device-name-strategy"));
    if (std::find(options.names.begin(), options.names.end(), strategy) == options.names.end())
      options.names.push_back(strategy);
  }
  GANTRY_TRY(options.capabilities,
             plan::parse_capabilities(flags.capabilities).in("--capabilities"));
  GANTRY_TRY(options.plan.flavour, parse_flavour(flags));
  GANTRY_TRY(options.plan.groups, parse_groups(flags));
  options.target_version = flags.target_version;
  options.vendor = flags.vendor;
  options.class_name = flags.class_name;
  options.devices = flags.devices;
  options.all_device = !flags.no_all_device;
  options.plan.firmware = flags.firmware;
  options.plan.sockets = !has(flags.features, "disable-ipc-discoverer");
  options.plan.hook_path = flags.hook_path.empty() ? found_hook() : flags.hook_path;
  options.plan.engine_root = prepared::engine_root_of(host);
  if (!flags.driver_root.empty() && flags.driver_root != "/")
    options.plan.engine_root = host.root();
  if (!flags.engine_root.empty())
    options.plan.engine_root = flags.engine_root == "/" ? "" : flags.engine_root;
  if (!flags.dev_root.empty() && flags.dev_root != "/" && flags.dev_root != host.root()) {
    return Error(Errc::Unsupported,
                 fmt::format("--dev-root {}: device nodes are read below the root, {}; leave the "
                             "flag out",
                             flags.dev_root, host.root()));
  }
  return options;
}

void print_notes(const std::vector<std::string>& notes, const Context& context) {
  if (context.quiet) return;
  for (const auto& note : notes) fmt::print(context.err, "Note: {}\n", note);
}

}  // namespace gantry::cli
