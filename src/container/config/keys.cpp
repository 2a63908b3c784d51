// SPDX-License-Identifier: Apache-2.0
#include "container/config/keys.hpp"

#include "base/core/text.hpp"
#include "base/toml_edit/document.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::config {
namespace {

// FIELD(bool, cli.no_cgroups): a function from Settings to that member.
#define FIELD(type, member)                       \
  Field<type> {                                   \
    [](Settings& s) -> type& { return s.member; } \
  }
#define LIST(member) FIELD(std::vector<std::string>, member)

constexpr std::string_view kHookFromContainer =
    "always ignored: the image's files would act on the host";

constexpr Key kKeys[] = {
    {"disable-require", FIELD(bool, disable_require), "skip NVIDIA_REQUIRE_*"},
    {"swarm-resource", FIELD(std::string, swarm_resource),
     "variables that replace NVIDIA_VISIBLE_DEVICES, separated by commas", "", "",
     "\"DOCKER_RESOURCE_GPU\""},
    {"accept-nvidia-visible-devices-envvar-when-unprivileged",
     FIELD(bool, accept_envvar_when_unprivileged),
     "false: only privileged containers may request GPUs by environment", "", "", "true"},
    {"accept-nvidia-visible-devices-as-volume-mounts", FIELD(bool, accept_volume_mounts),
     "mounts of /dev/null below /var/run/nvidia-container-devices request GPUs", "", "", "false"},
    {"supported-driver-capabilities", FIELD(std::string, supported_driver_capabilities),
     "the capabilities that a container may request"},

    {"nvidia-container-cli.root", FIELD(std::string, cli.root), "where the driver's files are", "",
     "", "\"/run/nvidia/driver\""},
    {"nvidia-container-cli.path", FIELD(std::string, cli.path), "where nvidia-container-cli is", "",
     "", "\"/usr/bin/nvidia-container-cli\""},
    {"nvidia-container-cli.environment", LIST(cli.environment), "variables for that program"},
    {"nvidia-container-cli.debug", FIELD(std::string, cli.debug), "its log", "", "",
     "\"/var/log/nvidia-container-toolkit.log\""},
    {"nvidia-container-cli.ldcache", FIELD(std::string, cli.ldcache), "the host's ld.so.cache", "",
     "", "\"/etc/ld.so.cache\""},
    {"nvidia-container-cli.load-kmods", FIELD(bool, cli.load_kmods), "load the kernel's modules"},
    {"nvidia-container-cli.no-pivot", FIELD(bool, cli.no_pivot), "no pivot_root", "", "", kOmitted},
    {"nvidia-container-cli.no-cgroups", FIELD(bool, cli.no_cgroups),
     "do not change device cgroups: for rootless containers", "", "", "false"},
    {"nvidia-container-cli.user", FIELD(std::string, cli.user),
     "USER:GROUP as which `nvidia-container-cli info` and `list` ask the driver", "", "",
     "\"root:video\""},
    {"nvidia-container-cli.ldconfig", FIELD(std::string, cli.ldconfig),
     "the host's ldconfig; Gantry merges caches itself and does not run it"},

    {"nvidia-container-runtime.debug", FIELD(std::string, runtime.debug), "the shim's log", "", "",
     "\"/var/log/nvidia-container-runtime.log\""},
    {"nvidia-container-runtime.log-level", FIELD(std::string, runtime.log_level),
     "the level of the shim's log", "trace|debug|info|warning|warn|error|fatal|panic"},
    {"nvidia-container-runtime.runtimes", LIST(runtime.runtimes),
     "low-level runtimes; the first one that is installed is used"},
    {"nvidia-container-runtime.mode", FIELD(std::string, runtime.mode),
     "how GPUs get into a container", "auto|legacy|csv|cdi|jit-cdi"},
    {"nvidia-container-runtime.modes.csv.mount-spec-path",
     FIELD(std::string, runtime.csv_mount_spec_path), "Tegra: lists of files"},
    {"nvidia-container-runtime.modes.csv.compat-container-root",
     FIELD(std::string, runtime.csv_compat_container_root), "Tegra: the image's compat directory",
     "", "", kOmitted},
    {"nvidia-container-runtime.modes.cdi.spec-dirs", LIST(runtime.cdi_spec_dirs),
     "directories of CDI specs; later ones override earlier ones"},
    {"nvidia-container-runtime.modes.cdi.default-kind",
     FIELD(std::string, runtime.cdi_default_kind), "the kind of device names without a kind"},
    {"nvidia-container-runtime.modes.cdi.annotation-prefixes",
     LIST(runtime.cdi_annotation_prefixes), "annotations that name CDI devices"},
    {"nvidia-container-runtime.modes.jit-cdi.nvcdi-feature-flags",
     LIST(runtime.jit_cdi_feature_flags), "like --feature-flag of cdi generate", "", "", kOmitted},
    {"nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks",
     LIST(runtime.jit_cdi_disable_hooks), "like --disable-hook of cdi generate", "", "", kOmitted},
    {"nvidia-container-runtime.modes.legacy.cuda-compat-mode",
     FIELD(std::string, runtime.legacy_cuda_compat_mode), "the image's newer libcuda",
     "ldconfig|mount|disabled|hook"},

    {"nvidia-container-runtime-hook.path", FIELD(std::string, hook.path), "where the hook is"},
    {"nvidia-container-runtime-hook.skip-mode-detection", FIELD(bool, hook.skip_mode_detection),
     "the hook works in every mode"},
    {"nvidia-ctk.path", FIELD(std::string, ctk_path), "where nvidia-ctk is"},

    {"features.allow-cuda-compat-libs-from-container",
     FIELD(bool, features.allow_cuda_compat_libs_from_container), kHookFromContainer, "", "",
     kOmitted},
    {"features.allow-ldconfig-from-container", FIELD(bool, features.allow_ldconfig_from_container),
     kHookFromContainer, "", "", kOmitted},
    {"features.allow-unknown-oci-spec-fields", FIELD(bool, features.allow_unknown_oci_spec_fields),
     "unknown fields are always kept", "", "", kOmitted},
    {"features.disable-cuda-compat-lib-hook", FIELD(bool, features.disable_cuda_compat_lib_hook),
     "the image's newer libcuda is not used", "", "", kOmitted},
    {"features.disable-imex-channel-creation", FIELD(bool, features.disable_imex_channel_creation),
     "IMEX channels are not created", "", "", kOmitted},
    {"features.ignore-imex-channel-requests", FIELD(bool, features.ignore_imex_channel_requests),
     "NVIDIA_IMEX_CHANNELS is not read", "", "", kOmitted},
    {"features.no-additional-gids-for-device-nodes",
     FIELD(bool, features.no_additional_gids_for_device_nodes),
     "containers do not get the groups of the nodes", "", "", kOmitted},

    {"gantry.root", FIELD(std::string, gantry.root), "the root directory of the machine", "",
     "GANTRY_ROOT"},
    {"gantry.flavour", FIELD(std::string, gantry.flavour), "how the loader finds the libraries",
     "shim|one-hook|no-hooks", "GANTRY_FLAVOUR"},
    {"gantry.kubernetes-environment", FIELD(std::string, gantry.kubernetes_environment),
     "how NVIDIA_VISIBLE_DEVICES is used in a pod", "granted|any|never",
     "GANTRY_KUBERNETES_ENVIRONMENT"},
    {"gantry.environment", FIELD(std::string, gantry.environment),
     "how it is used in other containers", "any|privileged|never", "GANTRY_ENVIRONMENT"},
    {"gantry.refresh-deadline", FIELD(std::int64_t, gantry.refresh_deadline),
     "seconds that `gantry cdi refresh` may take while a container waits", "",
     "GANTRY_REFRESH_DEADLINE"},
    {"gantry.cdi-kinds", LIST(gantry.cdi_kinds),
     "other CDI kinds that an image's environment may name", "", "GANTRY_CDI_KINDS"},
    {"gantry.pod-cgroups", LIST(gantry.pod_cgroups),
     "names in a cgroup path, in addition to kubepods, that mark a pod's container", "",
     "GANTRY_POD_CGROUPS"},
};

#undef LIST
#undef FIELD

std::optional<bool> bool_of(std::string_view words) {
  const auto lower = to_lower(words);
  if (lower == "true" || lower == "1" || lower == "t") return true;
  if (lower == "false" || lower == "0" || lower == "f") return false;
  return std::nullopt;
}

struct Setter {
  std::string_view words;
  Settings& settings;

  Status operator()(Field<bool> field) const {
    const auto value = bool_of(words);
    if (!value) return Error(Errc::Invalid, fmt::format("`{}` is neither true nor false", words));
    field(settings) = *value;
    return {};
  }
  Status operator()(Field<std::string> field) const {
    field(settings) = words;
    return {};
  }
  Status operator()(Field<std::int64_t> field) const {
    const auto value = parse_i64(words);
    if (!value) return Error(Errc::Invalid, fmt::format("`{}` is not a whole number", words));
    field(settings) = *value;
    return {};
  }
  Status operator()(Field<std::vector<std::string>> field) const {
    auto& list = field(settings);
    list.clear();
    const char separator = words.find(',') != std::string_view::npos ? ',' : ':';
    for (auto word : split(words, separator)) {
      if (!trim(word).empty()) list.emplace_back(trim(word));
    }
    return {};
  }
};

Status check_kinds(const std::vector<std::string>& kinds) {
  for (const auto& kind : kinds) {
    const auto slash = kind.find('/');
    const bool good = slash != std::string::npos && slash > 0 && slash + 1 < kind.size() &&
                      kind.find_first_of("/=*,", slash + 1) == std::string::npos;
    if (good) continue;
    return Error(
        Errc::Invalid,
        fmt::format("gantry.cdi-kinds has `{}`, which is not a kind; an example is acme.org/nic",
                    kind));
  }
  return {};
}

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

const Key* find_key(std::string_view name) {
  const auto* found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&](const Key& k) { return k.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

std::string_view table_of(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view leaf_name(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

std::string to_toml(const Key& key, const Settings& settings) {
  auto copy = settings;  // the fields are given as mutable references
  if (const auto* flag = std::get_if<Field<bool>>(&key.field)) {
    return (*flag)(copy) ? "true" : "false";
  }
  if (const auto* text = std::get_if<Field<std::string>>(&key.field))
    return toml_edit::quote((*text)(copy));
  if (const auto* number = std::get_if<Field<std::int64_t>>(&key.field)) {
    return fmt::to_string((*number)(copy));
  }
  return toml_edit::quote(std::get<Field<std::vector<std::string>>>(key.field)(copy));
}

Status check_allowed_values(const Key& key, const Settings& settings) {
  if (key.name == "gantry.refresh-deadline") {
    if (settings.gantry.refresh_deadline >= 1 && settings.gantry.refresh_deadline <= 600) return {};
    return Error(Errc::Invalid, fmt::format("{} must be 1 to 600 seconds, not {}", key.name,
                                            settings.gantry.refresh_deadline));
  }
  if (key.name == "gantry.cdi-kinds") return check_kinds(settings.gantry.cdi_kinds);
  if (key.words.empty()) return {};
  const auto value = to_toml(key, settings);
  for (auto word : split(key.words, '|')) {
    if (value == toml_edit::quote(word)) return {};
  }
  std::string allowed(key.words);
  std::replace(allowed.begin(), allowed.end(), '|', ' ');
  return Error(Errc::Invalid,
               fmt::format("{} cannot be {}; it must be one of: {}", key.name, value, allowed));
}

Status set_value(const Key& key, std::string_view words, Settings& settings) {
  auto changed = settings;
  GANTRY_CHECK(std::visit(Setter{words, changed}, key.field).in(key.name));
  GANTRY_CHECK(check_allowed_values(key, changed));
  settings = std::move(changed);
  return {};
}

}  // namespace gantry::config
