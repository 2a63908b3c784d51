// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/prestart.hpp"

#include "container/oci/container.hpp"
#include "container/oci/device_list.hpp"
#include "container/oci/request.hpp"
#include "container/runtime/injection/injection.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::runtime {
namespace {

constexpr std::string_view kOurKind = "nvidia.com/gpu";

// The value of -name, --name=value or -name value; nullopt if `argument` is another flag.
std::optional<Result<std::string>> value_of(std::string_view name, std::string_view argument,
                                            std::span<const std::string>& rest) {
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  if (argument == name) {
    if (rest.empty()) return Error(Errc::Invalid, fmt::format("flag needs a value: -{}", name));
    std::string value = rest.front();
    rest = rest.subspan(1);
    return value;
  }
  if (argument.starts_with(name) && argument.substr(name.size()).starts_with('=')) {
    return std::string(argument.substr(name.size() + 1));
  }
  return std::nullopt;
}

bool is_switch(std::string_view name, std::string_view argument) {
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  return argument == name || argument == fmt::format("{}=true", name);
}

// GPUs may have CDI names; CDI devices of other tools cannot be mounted here.
Result<std::vector<std::string>> device_ids(const model::ContainerRequest& request,
                                            const config::Settings& settings) {
  auto ids = request.devices;
  for (const auto& name : request.cdi_devices) {
    const auto parts = oci::split_qualified_name(name);
    if (parts.kind != kOurKind && parts.kind != settings.runtime.cdi_default_kind) {
      return Error(Errc::Unsupported,
                   fmt::format("a prestart hook cannot add {}; start the container with "
                               "nvidia-container-runtime or with an engine that supports CDI",
                               name));
    }
    ids.emplace_back(parts.name);
  }
  return ids;
}

Status mode_allows(const config::Settings& settings) {
  const auto& mode = settings.runtime.mode;
  if (settings.hook.skip_mode_detection || mode == "auto" || mode == "legacy") return {};
  return Error(
      Errc::Unsupported,
      fmt::format("the configuration sets mode = \"{}\", but a prestart hook supports only "
                  "\"legacy\"; start the container with nvidia-container-runtime or with "
                  "CDI, or set skip-mode-detection = true under "
                  "[nvidia-container-runtime-hook]",
                  mode));
}

Result<config::Settings> load_settings(const PrestartOptions& options) {
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  const auto path = options.config.empty() ? std::string(config::kConfigPath) : options.config;
  return config::load(here, path);
}

Result<oci::Container> container_of(const oci::State& state, const config::Settings& settings) {
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  const auto path = state.bundle + "/config.json";
  GANTRY_TRY(auto text, here.read(path, json::kSizeLimit));
  GANTRY_TRY(const auto document,
             json::Document::parse(std::move(text), json::Encoding::Any).in(path));
  return oci::parse_container(document, settings.gantry.pod_cgroups).in(path);
}

// nvidia-container-cli is this program under another name.
std::string cli_program(const config::Settings& settings) {
  return settings.cli.path.empty() ? "/proc/self/exe" : settings.cli.path;
}

}  // namespace

Result<PrestartOptions> parse_prestart(std::span<const std::string> arguments) {
  PrestartOptions options;
  while (!arguments.empty()) {
    const std::string& argument = arguments.front();
    arguments = arguments.subspan(1);
    if (!argument.starts_with('-')) {
      if (!options.command.empty()) {
        return Error(Errc::Invalid,
                     fmt::format("only one command is allowed, not also {}", argument));
      }
      options.command = argument;
    } else if (is_switch("debug", argument)) {
      options.debug = true;
    } else if (is_switch("version", argument)) {
      options.version = true;
    } else if (is_switch("help", argument) || is_switch("h", argument)) {
      options.help = true;
    } else if (auto config = value_of("config", argument, arguments)) {
      GANTRY_TRY(options.config, *std::move(config));
    } else if (auto root = value_of("root", argument, arguments)) {
      GANTRY_TRY(options.root, *std::move(root));
    } else {
      return Error(Errc::Invalid, fmt::format("flag provided but not defined: {}", argument));
    }
  }
  return options;
}

Result<std::vector<std::string>> configure_arguments(const model::ContainerRequest& request,
                                                     const config::Settings& settings,
                                                     const std::string& machine_root,
                                                     std::uint64_t pid, const std::string& rootfs) {
  const auto& cli = settings.cli;
  std::vector<std::string> words;
  if (machine_root != "/") words.push_back("--root=" + machine_root);
  if (cli.load_kmods) words.emplace_back("--load-kmods");
  if (settings.features.disable_imex_channel_creation) {
    words.emplace_back("--no-create-imex-channels");
  }
  if (cli.no_pivot) words.emplace_back("--no-pivot");
  if (!cli.debug.empty()) words.push_back("--debug=" + cli.debug);
  if (!cli.ldcache.empty()) words.push_back("--ldcache=" + cli.ldcache);
  if (!cli.user.empty()) words.push_back("--user=" + cli.user);
  words.emplace_back("configure");
  words.push_back("--cuda-compat-mode=" + settings.runtime.legacy_cuda_compat_mode);
  if (!cli.ldconfig.empty()) words.push_back("--ldconfig=" + cli.ldconfig);
  if (cli.no_cgroups) words.emplace_back("--no-cgroups");
  GANTRY_TRY(const auto ids, device_ids(request, settings));
  const bool some = !ids.empty() && ids != std::vector<std::string>{"none"};
  if (some) words.push_back(fmt::format("--device={}", fmt::join(ids, ",")));
  if (request.mig_config) words.emplace_back("--mig-config=all");
  if (request.mig_monitor) words.emplace_back("--mig-monitor=all");
  for (const auto channel : request.imex_channels) {
    words.push_back(fmt::format("--imex-channel={}", channel));
  }
  for (const auto capability : request.capabilities) {
    words.push_back(fmt::format("--{}", model::to_string(capability)));
  }
  for (const auto& requirement : request.requirements) words.push_back("--require=" + requirement);
  words.push_back(fmt::format("--pid={}", pid));
  words.push_back(rootfs);
  return words;
}

Result<std::optional<ConfigureCall>> prestart(const PrestartOptions& options,
                                              std::string_view state,
                                              std::vector<std::string>& warnings) {
  GANTRY_TRY(const auto settings, load_settings(options));
  GANTRY_TRY(const auto started, oci::parse_state(state).in("reading the container's state"));
  if (started.pid == 0)
    return Error(Errc::Invalid, "the container's state does not name a process");
  GANTRY_TRY(const auto container, container_of(started, settings));
  const auto root = options.root.empty() ? config::machine_root(settings) : options.root;
  GANTRY_TRY(const auto host, sys::Host::at(root));
  const auto refresh = [&] {
    return refresh_by_gantry(host.root(), settings.gantry.refresh_deadline);
  };
  Injector injector({.host = host, .settings = settings, .refresh = refresh});
  GANTRY_TRY(auto decision, injector.decide(container));
  warnings = std::move(decision.warnings);
  if (!decision.request.groups.empty()) {
    warnings.emplace_back(
        "a prestart hook does not add other device groups than GPUs (such as NVIDIA_GDS); "
        "nvidia-container-runtime does");
    decision.request.groups.clear();
  }
  if (decision.request.is_empty()) return std::optional<ConfigureCall>();
  GANTRY_CHECK(mode_allows(settings));
  const auto rootfs = started.root.empty() ? oci::root_path(started.bundle, container.root)
                                           : oci::root_path(started.bundle, started.root);
  GANTRY_TRY(auto words,
             configure_arguments(decision.request, settings, root, started.pid, rootfs));
  words.insert(words.begin(), "nvidia-container-cli");
  return std::optional(ConfigureCall{.program = cli_program(settings),
                                     .arguments = std::move(words),
                                     .environment = settings.cli.environment});
}

}  // namespace gantry::runtime
