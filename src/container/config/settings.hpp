// SPDX-License-Identifier: Apache-2.0
// The configuration of the runtime, the hooks and nvidia-ctk: NVIDIA's config.toml with its names
// and defaults, plus our own table [gantry] in the same file. A plain value.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::config {

// nvidia-container-cli: the driver's root and how its files get into a container.
struct CliSettings {
  std::string root;  // "" means "/"
  std::string path;
  std::vector<std::string> environment;
  std::string debug;
  std::string ldcache;
  bool load_kmods = true;
  bool no_pivot = false;
  bool no_cgroups = false;
  std::string user;  // "root:video"
  std::string ldconfig = "@/sbin/ldconfig";
  bool operator==(const CliSettings&) const = default;
};

// nvidia-container-runtime: the shim.
struct RuntimeSettings {
  std::string debug = "/dev/null";
  std::string log_level = "info";
  std::vector<std::string> runtimes{"runc", "crun"};
  std::string mode = "auto";  // auto, legacy, csv, cdi, jit-cdi
  std::string csv_mount_spec_path = "/etc/nvidia-container-runtime/host-files-for-container.d";
  std::string csv_compat_container_root;
  std::vector<std::string> cdi_spec_dirs{"/etc/cdi", "/var/run/cdi"};
  std::string cdi_default_kind = "nvidia.com/gpu";
  std::vector<std::string> cdi_annotation_prefixes{"cdi.k8s.io/"};
  std::vector<std::string> jit_cdi_feature_flags;
  std::vector<std::string> jit_cdi_disable_hooks;
  std::string legacy_cuda_compat_mode = "ldconfig";  // ldconfig, mount, disabled, hook
  bool operator==(const RuntimeSettings&) const = default;
};

// nvidia-container-runtime-hook
struct HookSettings {
  std::string path = "nvidia-container-runtime-hook";
  bool skip_mode_detection = false;
  bool operator==(const HookSettings&) const = default;
};

// NVIDIA's feature switches, off by default. Switches that would let the image's files act on the
// host are read only to report that Gantry ignores them.
struct FeatureSettings {
  bool allow_cuda_compat_libs_from_container = false;
  bool allow_ldconfig_from_container = false;
  bool allow_unknown_oci_spec_fields = false;
  bool disable_cuda_compat_lib_hook = false;
  bool disable_imex_channel_creation = false;
  bool ignore_imex_channel_requests = false;
  bool no_additional_gids_for_device_nodes = false;
  bool operator==(const FeatureSettings&) const = default;
};

// Gantry's own table. An unknown key in it is an error.
struct GantrySettings {
  std::string root;                                // "" means nvidia-container-cli.root
  std::string flavour = "shim";                    // shim, one-hook, no-hooks
  std::string kubernetes_environment = "granted";  // granted, any, never
  std::string environment = "any";                 // any, privileged, never
  std::int64_t refresh_deadline = 20;              // seconds
  std::vector<std::string> cdi_kinds;              // other kinds that the environment may name
  std::vector<std::string> pod_cgroups;            // parts of a cgroup path that mean a pod
  bool operator==(const GantrySettings&) const = default;
};

struct Settings {
  bool disable_require = false;
  std::string swarm_resource;  // names of variables, joined by commas
  bool accept_envvar_when_unprivileged = true;
  bool accept_volume_mounts = false;
  std::string supported_driver_capabilities = "compat32,compute,display,graphics,ngx,utility,video";
  CliSettings cli;
  RuntimeSettings runtime;
  HookSettings hook;
  std::string ctk_path = "nvidia-ctk";
  FeatureSettings features;
  GantrySettings gantry;
  bool operator==(const Settings&) const = default;
};

// The content of a file: the values, the keys that it sets, and warnings (unknown keys, each with
// its line). Unknown keys stay in the file and have no effect.
struct LoadedSettings {
  Settings settings;
  std::vector<std::string> named;
  std::vector<std::string> warnings;
};

// Looks up an environment variable; nullopt if it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view)>;
std::optional<std::string> process_environment(std::string_view name);

constexpr std::string_view kConfigPath = "/etc/nvidia-container-runtime/config.toml";
constexpr std::size_t kMaxConfigBytes = std::size_t{256} << 10;

// The path of the file: NVIDIA_CTK_CONFIG_FILE_PATH (may be relative to the working directory),
// else below XDG_CONFIG_HOME, else kConfigPath.
std::string config_path(const EnvironmentLookup& environment);

// Corrupt if the text is not TOML; Invalid for a value of the wrong type, a value that is not
// allowed, and an unknown key of [gantry]. Errors name the line.
Result<LoadedSettings> parse(std::string_view text);

// A missing file gives the defaults.
Result<LoadedSettings> load_with_warnings(const sys::Host& host, std::string_view path);
Result<Settings> load(const sys::Host& host, std::string_view path);

// GANTRY_ROOT, GANTRY_FLAVOUR, ... override the file's [gantry]. Only for programs that get their
// environment from the administrator or the engine; never for hooks.
Status apply_environment(Settings& settings, const EnvironmentLookup& environment);

// The root that the file sets: gantry.root, else nvidia-container-cli.root, else "/".
std::string machine_root(const Settings& settings);

enum class EnvironmentPolicy : std::uint8_t { Any, Privileged, Never };

// gantry.environment; but Privileged if that is "any" and NVIDIA's accept-... key is false.
EnvironmentPolicy environment_policy(const Settings& settings);

// For the table jit-cdi, in the modes that use it: returns true if `flag` is one of its feature
// flags, or if `hook` (or "all") is one of its disabled hooks.
bool has_feature_flag(const Settings& settings, std::string_view flag);
bool has_disabled_hook(const Settings& settings, std::string_view hook);

// Unsupported for the one NVIDIA mode that Gantry does not have.
Status check_mode(const Settings& settings);

// One sentence for every value that is set but has no effect on the runtime. For logs and `gantry
// explain`: this is not an error.
std::vector<std::string> describe_ignored_values(const Settings& settings);

}  // namespace gantry::config
