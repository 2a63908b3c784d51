// SPDX-License-Identifier: Apache-2.0
#include "gantry/cdi_options.hpp"

#include "container/driver_dir/current.hpp"
#include "container/plan/capabilities.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>

namespace gantry::cli {
namespace {

// `gantry sim run` names its machine in NVIDIA's variables, too. --root may then name another one.
bool is_other_machine(const std::string& directory, const std::string& root) {
  const char* simulated = std::getenv("GANTRY_ROOT");
  return simulated != nullptr && directory == simulated && root != simulated;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The hook in the directory of this program, else in the directory where packages install it.
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

// Accepts NVIDIA's values, so that scripts keep working, and rejects all others, so that a misspelt
// value is noticed.
constexpr std::array<std::string_view, 7> kFeatures{"disable-ipc-discoverer",
                                                    "disable-multiple-csv-devices",
                                                    "disable-nvsandboxutils",
                                                    "disable-nvsandbox-utils",
                                                    "enable-coherent-annotations",
                                                    "enable-explicit-driver-libraries",
                                                    "no-additional-gids-for-device-nodes"};
constexpr std::array<std::string_view, 7> kHooks{"all",
                                                 "chmod",
                                                 "create-symlinks",
                                                 "disable-device-node-modification",
                                                 "enable-cuda-compat",
                                                 "update-application-profile",
                                                 "update-ldcache"};

Status check_words(const std::vector<std::string>& given, std::span<const std::string_view> known,
                   std::string_view flag) {
  for (const auto& word : given) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    return Error(Errc::Invalid,
                 fmt::format("{} {}: use one of {}", flag, word, fmt::join(known, ", ")));
  }
  return {};
}

// True if the root has the kernel's files, false for a tree that has only the driver's files.
bool is_machine(const sys::Host& tree) {
  return tree.exists("/proc/driver/nvidia") || tree.exists("/sys/bus/pci");
}

// `path` as seen from inside `root`, if it is below `root`.
std::optional<std::string> below(std::string_view root, std::string_view path) {
  if (root == "/") return std::string(path);
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (!path.starts_with('/')) return std::nullopt;
  return std::string(path);
}

Result<plan::Flavour> parse_flavour(const SpecFlags& flags) {
  if (has(flags.disabled_hooks, "all") || has(flags.disabled_hooks, "update-ldcache"))
    return plan::Flavour::NoHooks;
  if (flags.flavour == "no-hooks") return plan::Flavour::NoHooks;
  if (flags.flavour == "one-hook") return plan::Flavour::OneHook;
  return Error(
      Errc::Invalid,
      fmt::format("--flavour {}: use no-hooks or one-hook (the shim needs no specification)",
                  flags.flavour));
}

Result<plan::AdditionalGroups> parse_groups(const SpecFlags& flags) {
  if (has(flags.features, "no-additional-gids-for-device-nodes"))
    return plan::AdditionalGroups::None;
  if (flags.gids == "auto") return plan::AdditionalGroups::DriverNodes;
  if (flags.gids == "all") return plan::AdditionalGroups::AllNodes;
  if (flags.gids == "none") return plan::AdditionalGroups::None;
  return Error(Errc::Invalid,
               fmt::format("--additional-gids {}: use auto, all or none", flags.gids));
}

}  // namespace

void add_spec_flags(CLI::App& command, SpecFlags& flags) {
  command
      .add_option("--mode,--discovery-mode", flags.mode,
                  "auto, nvml (always ask NVML), management, gds, gdrcopy, mofed, nvswitch, imex")
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
      .add_option("--device-id,--device-ids,--device,--devices", flags.devices,
                  "Only these devices: index, GPU:INSTANCE, UUID or PCI address; none gives the "
                  "driver without a GPU")
      ->type_name("ID")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_DEVICE_IDS");
  command
      .add_option("--device-name-strategy", flags.names,
                  "index, uuid, type-index; a device gets one name for each strategy")
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
                  "Prefix that the engine needs in front of this machine's paths; / means none "
                  "(default: the directory of a simulated machine, else none)")
      ->type_name("DIR");
  command
      .add_option("--driver-root", flags.driver_root,
                  "Directory of the driver: the same as --root, or a tree that has only the "
                  "driver's files; it is the prefix of the paths written")
      ->type_name("DIR")
      ->envname("NVIDIA_CTK_DRIVER_ROOT");
  command.add_option("--dev-root", flags.dev_root, "Accepted if it is the same as the root")
      ->type_name("DIR")
      ->envname("NVIDIA_CTK_DEV_ROOT");
  command
      .add_option("--target-version", flags.target_version,
                  "CDI version to write, 0.3 or later; entries that it does not support are left "
                  "out with a note (default: the lowest version that supports all entries)")
      ->type_name("VERSION");
  command.add_flag("--firmware", flags.firmware,
                   "Also mount the GSP firmware; containers do not need it");
  command
      .add_option("--additional-gids", flags.gids,
                  "Add the groups of device nodes that not every user may open: auto (the driver's "
                  "nodes), all (also those below /dev/dri; needs CDI 0.7) or none")
      ->type_name("WHICH")
      ->capture_default_str();
  command
      .add_option("--nvidia-cdi-hook-path,--nvidia-ctk-path", flags.hook_path,
                  "Path of the hook for --flavour one-hook, as the engine sees it")
      ->type_name("FILE")
      ->envname("NVIDIA_CTK_CDI_HOOK_PATH");
  command
      .add_option(
          "--disable-hook,--disable-hooks", flags.disabled_hooks,
          "all or update-ldcache: the same as --flavour no-hooks; Gantry has no other hooks")
      ->type_name("HOOK")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_DISABLED_HOOKS");
  command
      .add_option("--feature-flag,--feature-flags", flags.features,
                  "no-additional-gids-for-device-nodes, disable-ipc-discoverer; NVIDIA's other "
                  "flags have no effect")
      ->type_name("FLAG")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS");
  command
      .add_option("--library-search-path,--library-search-paths", flags.library_directories,
                  "Search for the driver's libraries only here (may be repeated)")
      ->type_name("DIR")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_LIBRARY_SEARCH_PATHS");
  command
      .add_option("--enable-hook,--enable-hooks", flags.enabled_hooks,
                  "Names of NVIDIA's hooks; accepted, but --flavour decides which hooks there are")
      ->type_name("HOOK")
      ->delimiter(',')
      ->envname("NVIDIA_CTK_CDI_GENERATE_ENABLED_HOOKS");
  // Flags of NVIDIA's tool that have no use here: Gantry finds files by their content and runs no
  // ldconfig. They are accepted so that units and scripts keep working.
  for (const auto* name : {"--config-search-path,--config-search-paths", "--ldconfig-path"}) {
    command.add_option(name, flags.ignored_values, "Accepted; not needed here")->type_name("VALUE");
  }
}

Result<SpecMachine> open_machine(const SpecFlags& flags, const Context& context) {
  driver::DriverLocation named{.root = {}, .libraries = flags.library_directories};
  for (const auto& directory : named.libraries) {
    if (directory.starts_with('/')) continue;
    return Error(Errc::Invalid,
                 fmt::format("--library-search-path {} must begin with /", directory));
  }
  if (flags.driver_root.empty() || is_other_machine(flags.driver_root, context.root)) {
    GANTRY_TRY(auto host, open_host(context));
    return SpecMachine{std::move(host), std::move(named)};
  }
  GANTRY_TRY(auto tree, sys::Host::at(flags.driver_root).in("--driver-root"));
  if (is_machine(tree)) return SpecMachine{std::move(tree), std::move(named)};
  GANTRY_TRY(auto host, open_host(context));
  auto inside = below(host.root(), tree.root());
  if (!inside) {
    return Error(Errc::Invalid,
                 fmt::format("--driver-root {} has only the driver's files (no "
                             "/proc/driver/nvidia, no /sys/bus/pci) and is not below the machine's "
                             "root {}; name the machine's root with --root",
                             flags.driver_root, host.root()));
  }
  named.root = *std::move(inside);
  return SpecMachine{std::move(host), std::move(named)};
}

Result<SpecLocation> locate_spec(const std::string& file, const sys::Host& machine) {
  std::error_code failed;
  const auto whole = std::filesystem::absolute(file, failed).lexically_normal().string();
  if (failed) return Error::sys(failed.value(), file);
  if (machine.is_live()) return SpecLocation{std::nullopt, whole};
  if (auto inside = below(machine.root(), whole))
    return SpecLocation{std::nullopt, *std::move(inside)};
  GANTRY_TRY(auto live, sys::Host::at("/"));
  return SpecLocation{std::move(live), whole};
}

void add_take_over(CLI::App& command, bool& take_over) {
  command.add_flag(
      "--take-over", take_over,
      "If another file already defines devices of this kind, rename it to FILE.before-gantry");
}

Result<publish::SpecOptions> spec_options(const SpecFlags& flags, const SpecMachine& machine) {
  const auto& host = machine.host;
  GANTRY_CHECK(check_words(flags.features, kFeatures, "--feature-flag"));
  GANTRY_CHECK(check_words(flags.disabled_hooks, kHooks, "--disable-hook"));
  GANTRY_CHECK(check_words(flags.enabled_hooks, kHooks, "--enable-hook"));
  publish::SpecOptions options;
  GANTRY_TRY(options.kind, publish::parse_mode(flags.mode).in("--mode"));
  options.names.clear();
  for (const auto& word : flags.names) {
    GANTRY_TRY(const auto strategy,
               publish::parse_name_strategy(word).in("--device-name-strategy"));
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
  options.plan.node_hook = !has(flags.disabled_hooks, "disable-device-node-modification");
  options.plan.hook_path = flags.hook_path.empty() ? found_hook() : flags.hook_path;
  options.plan.engine_root = driver_dir::simulated_engine_root(host);
  if (!flags.driver_root.empty() && machine.driver.root.empty() && !host.is_live())
    options.plan.engine_root = host.root();
  if (!flags.engine_root.empty())
    options.plan.engine_root = flags.engine_root == "/" ? "" : flags.engine_root;
  if (!flags.dev_root.empty() && flags.dev_root != "/" && flags.dev_root != host.root() &&
      !is_other_machine(flags.dev_root, host.root())) {
    return Error(
        Errc::Unsupported,
        fmt::format("--dev-root {}: device nodes are read below the root {}; leave this flag out",
                    flags.dev_root, host.root()));
  }
  return options;
}

void print_notes(const std::vector<std::string>& notes, const Context& context) {
  if (context.quiet) return;
  for (const auto& note : notes) print_note(note, context);
}

}  // namespace gantry::cli
