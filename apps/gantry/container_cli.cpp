// SPDX-License-Identifier: Apache-2.0
#include "gantry/container_cli.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"
#include "command_line/parse_arguments.hpp"
#include "gantry/container_cli_log.hpp"
#include "gantry/driver_user.hpp"
#include "gantry/format_values.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "gpu/probe/snapshot.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace gantry::cli {
namespace {

constexpr const char* kName = "nvidia-container-cli";

struct GlobalOptions {
  std::string debug_file;
  bool load_kernel_modules = false;
  bool no_pivot = false;  // nothing here pivots; accepted because callers pass it
  bool no_imex_channels = false;
  std::vector<std::string> user;  // empty: not given; {""}: given without a value
  bool user_given = false;
  std::string root;
  std::string ldcache;
};

using Failure = ContainerCliFailure;

Result<DriverUser> chosen_user(const sys::Host& host, const GlobalOptions& options) {
  if (options.user_given) {
    if (options.user.empty() || options.user.front().empty()) {
      return DriverUser{.uid = ::geteuid(), .gid = ::getegid(), .groups = {}};
    }
    return parse_driver_user(host, options.user.front());
  }
  if (const auto configured = configured_driver_user(host))
    return parse_driver_user(host, *configured);
  return default_driver_user();
}

// GPU nodes that exist but that the driver process cannot open.
std::optional<Failure> find_unopenable_node(const model::Inventory& machine,
                                            const DriverUser& user) {
  const model::DeviceNode* closed = nullptr;
  for (const auto& node : machine.nodes) {
    const bool gpu_or_control = node.path == "/dev/nvidiactl" ||
                                (node.path.starts_with("/dev/nvidia") &&
                                 parse_u64(std::string_view(node.path).substr(11)).has_value());
    if (!gpu_or_control) continue;
    if (may_open(user, node)) {
      if (node.path != "/dev/nvidiactl") return std::nullopt;
    } else {
      closed = &node;
    }
  }
  if (closed == nullptr) return std::nullopt;
  return Failure{
      .error = "initialization error: cuda error: no cuda-capable device is detected",
      .remedy = fmt::format(
          "{} has mode {:04o} and belongs to {}:{}; the driver process runs as {}:{}, without "
          "capabilities, and "
          "may not open it.\nRun `{} --user=root:{} info`, or set user = \"root:{}\" under "
          "[nvidia-container-cli] in /etc/nvidia-container-runtime/config.toml.",
          closed->path, closed->mode, closed->uid, closed->gid, user.uid, user.gid, kName,
          closed->gid, closed->gid)};
}

// The group's name if the machine has one: "video" says more than 33.
std::string with_group_name(const sys::Host& host, std::string text,
                            const model::Inventory& machine) {
  const auto groups = host.read("/etc/group");
  if (!groups.ok()) return text;
  for (const auto& node : machine.nodes) {
    for (auto line : lines(*groups)) {
      const auto fields = split(line, ':');
      if (fields.size() < 3 || fields[2] != fmt::to_string(node.gid)) continue;
      const auto number = fmt::format("root:{}", node.gid);
      for (auto at = text.find(number); at != std::string::npos; at = text.find(number, at + 1)) {
        text.replace(at, number.size(), fmt::format("root:{}", fields[0]));
      }
    }
  }
  return text;
}

// A lost GPU stays in the list because its device node still exists. Warn the reader.
void warn_of_lost(const model::Inventory& machine, std::FILE* err) {
  for (const auto& gpu : machine.gpus) {
    if (gpu.health.state != model::HealthState::Lost) continue;
    fmt::print(err, "{}: warning: GPU {} at {} is {}\n", kName, gpu.index, gpu.pci.nvml(),
               format_health(gpu.health));
  }
}

Status check_cache(const sys::Host& host, const std::string& path) {
  if (path.empty()) return {};
  GANTRY_TRY(const std::string bytes, host.read(path));
  const auto cache = loader::parse_ld_cache(bytes);
  if (!cache.ok()) return Error(Errc::Corrupt, fmt::format("{}: {}", path, cache.error().text()));
  return {};
}

int fail(std::FILE* err, const Failure& failure) {
  fmt::print(err, "{}: {}\n", kName, failure.error);
  if (!failure.remedy.empty()) fmt::print(err, "{}\n", failure.remedy);
  return 1;
}

void load_driver_modules(const sys::Host& host) {
  const auto kernel = sys::real_kernel();
  for (const char* name : {"nvidia", "nvidia-uvm", "nvidia-modeset"}) {
    // A missing module is reported as "driver not loaded" a moment later, with its remedy.
    (void)kernel->load_module(host, name);
  }
}

using Print = std::function<Result<std::string>(const model::Inventory&)>;

struct Observation {
  std::optional<Failure> failure;
  std::string text;
};

Failure at_start(const Error& error) {
  return {"initialization error: " + error.text(), ""};
}

std::string root_of(const GlobalOptions& options) {
  if (!options.root.empty()) return options.root;
  const char* environment = std::getenv("GANTRY_ROOT");
  return environment != nullptr ? environment : "/";
}

Observation look(const GlobalOptions& options, const Print& print, const Log& log, std::FILE* err) {
  const auto host = sys::Host::at(root_of(options));
  if (!host.ok()) return {at_start(host.error()), ""};
  log.info(kContainerCliComponent, "root", {{"path", host->root()}});
  if (const auto cache = check_cache(*host, options.ldcache); !cache.ok())
    return {Failure{"ldcache error: " + cache.error().text(), ""}, ""};
  if (options.load_kernel_modules) load_driver_modules(*host);
  const auto user = chosen_user(*host, options);
  if (!user.ok()) return {at_start(user.error()), ""};
  log.info(kContainerCliComponent, "user of the driver process",
           {{"uid", user->uid}, {"gid", user->gid}});
  probe::SnapshotOptions how;
  if (!options.ldcache.empty()) how.ld_cache = options.ldcache;
  log.info(kContainerCliComponent, "cache of the loader", {{"path", how.ld_cache}});
  const auto taken = probe::take_snapshot(*host, how);
  if (!taken.ok()) return {at_start(taken.error()), ""};
  const auto& machine = taken->inventory;
  log_machine(log, machine);
  if (auto failure = find_unopenable_node(machine, *user)) {
    failure->remedy = with_group_name(*host, failure->remedy, machine);
    return {failure, ""};
  }
  if (const auto failure = initialization_failure(*taken)) return {failure, ""};
  auto text = print(machine);
  if (!text.ok())
    return {Failure{text.error().text(), "Run `gantry info` to see the ids of this machine."}, ""};
  warn_of_lost(machine, err);
  return {std::nullopt, *std::move(text)};
}

int look_and_print(const GlobalOptions& options, const Print& print, std::FILE* out,
                   std::FILE* err) {
  const auto log = open_container_cli_log(options.debug_file);
  if (!log.ok()) return fail(err, at_start(log.error()));
  log->info(kContainerCliComponent, "nvidia-container-cli of gantry",
            {{"version", GANTRY_VERSION}});
  const auto looked = look(options, print, *log, err);
  if (looked.failure) {
    log->write(LogLevel::Error, kContainerCliComponent, looked.failure->error);
    return fail(err, *looked.failure);
  }
  log->info(kContainerCliComponent, "done");
  fmt::print(out, "{}", looked.text);
  return 0;
}

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.add_option("-d,--debug", options.debug_file, "Append what was found to this file")
      ->type_name("FILE");
  app.add_flag("-k,--load-kmods", options.load_kernel_modules, "Load the kernel modules first");
  app.add_flag("-n,--no-pivot", options.no_pivot, "Accepted; nothing here pivots");
  app.add_flag("--no-create-imex-channels", options.no_imex_channels,
               "Accepted; info and list create nothing");
  app.add_option("-u,--user", options.user, "Run the driver process as this user and group")
      ->type_name("UID[:GID]")
      ->expected(0, 1);
  app.add_option("-r,--root", options.root, "The machine below this directory")->type_name("DIR");
  app.add_option("-l,--ldcache", options.ldcache,
                 "The loader's cache, below the root (default /etc/ld.so.cache)")
      ->type_name("FILE");
  app.set_version_flag("-V,--version", container_version_text);
}

void add_list_options(CLI::App& list, ContainerListOptions& o) {
  list.add_option("-d,--device", o.devices,
                  "Index, GPU or MIG UUID, PCI address, GPU:INSTANCE or all");
  list.add_flag("-l,--libraries", o.libraries, "Driver libraries");
  list.add_flag("-b,--binaries", o.binaries, "Driver programs");
  list.add_flag("-i,--ipcs", o.ipcs, "Sockets of the driver's daemons");
  list.add_flag("-f,--firmwares", o.firmwares, "GPU firmware");
  list.add_flag("--compat32", o.compat32, "32-bit libraries too");
  list.add_option("--mig-config", o.mig_config, "Files to configure MIG");
  list.add_option("--mig-monitor", o.mig_monitor, "Files to monitor MIG");
  list.add_option("--imex-channel", o.imex_channels, "IMEX channel");
  list.add_flag("--no-persistenced", o.no_persistenced, "Leave out nvidia-persistenced's socket");
  list.add_flag("--no-fabricmanager", o.no_fabricmanager, "Leave out the fabric manager's socket");
}

}  // namespace

std::optional<ContainerCliFailure> initialization_failure(const probe::Snapshot& machine) {
  const auto& driver = machine.inventory.driver;
  const std::string doctor = "Run `gantry doctor` for the cause and the remedy.";
  if (driver.version.empty()) {
    return Failure{"initialization error: nvml error: driver not loaded", doctor};
  }
  if (driver.nvml_error.empty()) return std::nullopt;
  if (machine.nvml_failure == NVML_ERROR_LIB_RM_VERSION_MISMATCH) {
    return Failure{
        "initialization error: nvml error: driver/library version mismatch",
        fmt::format(
            "The kernel module is {}, the libraries are {}: reload the module or reboot. {}",
            driver.version, driver.library_version, doctor)};
  }
  if (machine.nvml_failure == NVML_ERROR_TIMEOUT) {
    return Failure{"initialization error: driver rpc error: timed out", doctor};
  }
  if (driver.library_directory.empty()) {
    return Failure{
        "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object "
        "file: no such "
        "file or directory",
        doctor};
  }
  return Failure{"initialization error: nvml error: " + driver.nvml_error, doctor};
}

int container_cli(int argc, char** argv, std::FILE* out, std::FILE* err) {
  GlobalOptions options;
  ContainerListOptions list_options;
  bool csv = false;
  CLI::App app("Shows which parts of this machine's NVIDIA driver containers get.", kName);
  app.require_subcommand(1);
  app.fallthrough(false);
  add_global_options(app, options);
  auto* info = app.add_subcommand("info", "The driver and its GPUs");
  info->add_flag("--csv", csv, "Comma-separated values");
  auto* list =
      app.add_subcommand("list", "Host paths of device nodes and driver files, one per line");
  add_list_options(*list, list_options);
  auto* configure = app.add_subcommand(
      "configure", "Put GPUs into a container that is starting; see configure --help");
  configure->prefix_command();
  try {
    command_line::parse_arguments(app, argc, argv);
  } catch (const CLI::CallForVersion&) {
    fmt::print(out, "{}", container_version_text());
    return 0;
  } catch (const CLI::Success&) {
    fmt::print(out, "{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(err, "{}: {}\nTry `{} --help`.\n", kName, error.what(), kName);
    return 1;
  }
  options.user_given = app.count("--user") > 0;
  if (*configure) {
    fmt::print(err, "{}: configure is not available in this version of Gantry.\n", kName);
    return 1;
  }
  const Print print = [&](const model::Inventory& machine) -> Result<std::string> {
    if (*list) return container_list_text(machine, list_options);
    return csv ? container_info_csv(machine) : container_info_text(machine);
  };
  return look_and_print(options, print, out, err);
}

}  // namespace gantry::cli
