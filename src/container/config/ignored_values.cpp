// SPDX-License-Identifier: Apache-2.0
// NVIDIA's keys that have less effect here than their names suggest, or none.
#include "container/config/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::config {
namespace {

constexpr std::array<std::string_view, 2> kKnownFlags{"no-additional-gids-for-device-nodes",
                                                      "disable-ipc-discoverer"};
constexpr std::array<std::string_view, 4> kKnownHooks{"all", "update-ldcache", "enable-cuda-compat",
                                                      "disable-device-node-modification"};

bool among(const auto& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The table jit-cdi is for the modes that compute edits when a container starts.
bool makes_edits(const Settings& settings) {
  return settings.runtime.mode == "auto" || settings.runtime.mode == "jit-cdi";
}

struct IgnoredValues {
  std::vector<std::string> sentences;

  void add_if_set(bool is_set, std::string_view key, std::string_view why) {
    if (is_set) sentences.push_back(fmt::format("{} has no effect: {}", key, why));
  }
};

void add_jit_cdi(const Settings& settings, IgnoredValues& words) {
  const auto& runtime = settings.runtime;
  const std::string table = "nvidia-container-runtime.modes.jit-cdi.";
  for (const auto& flag : runtime.jit_cdi_feature_flags) {
    words.add_if_set(!among(kKnownFlags, flag),
                     fmt::format("{}nvcdi-feature-flags: {}", table, flag),
                     "Gantry does not use it");
  }
  for (const auto& hook : runtime.jit_cdi_disable_hooks) {
    words.add_if_set(!among(kKnownHooks, hook),
                     fmt::format("{}nvcdi-disable-hooks: {}", table, hook),
                     "Gantry has no such hook");
  }
  const bool any = !runtime.jit_cdi_feature_flags.empty() || !runtime.jit_cdi_disable_hooks.empty();
  words.add_if_set(any && !makes_edits(settings), table + "*",
                   fmt::format("mode = \"{}\" does not use it", runtime.mode));
}

}  // namespace

bool has_feature_flag(const Settings& settings, std::string_view flag) {
  return makes_edits(settings) && among(settings.runtime.jit_cdi_feature_flags, flag);
}

bool has_disabled_hook(const Settings& settings, std::string_view hook) {
  const auto& disabled = settings.runtime.jit_cdi_disable_hooks;
  return makes_edits(settings) && (among(disabled, hook) || among(disabled, "all"));
}

Status check_mode(const Settings& settings) {
  if (settings.runtime.mode != "csv") return {};
  return Error(Errc::Unsupported,
               "mode = \"csv\" is for Tegra systems, which Gantry does not support; set mode = "
               "\"auto\" under [nvidia-container-runtime] in config.toml");
}

std::vector<std::string> describe_ignored_values(const Settings& settings) {
  const Settings defaults;
  const auto& runtime = settings.runtime;
  const auto& features = settings.features;
  IgnoredValues words;
  words.add_if_set(
      !settings.cli.root.empty() && settings.cli.root != "/" && runtime.mode != "legacy",
      "nvidia-container-cli.root",
      "it is for the classic prestart hook; the runtime uses the driver's files that `gantry "
      "cdi refresh` found, and [gantry] root sets another machine's root");
  words.add_if_set(
      runtime.cdi_default_kind != defaults.runtime.cdi_default_kind && runtime.mode != "cdi",
      "nvidia-container-runtime.modes.cdi.default-kind",
      fmt::format("it applies to names without a kind only in mode = \"cdi\", not in \"{}\"",
                  runtime.mode));
  words.add_if_set(runtime.csv_mount_spec_path != defaults.runtime.csv_mount_spec_path ||
                       !runtime.csv_compat_container_root.empty(),
                   "nvidia-container-runtime.modes.csv.*", "it is for Tegra systems");
  add_jit_cdi(settings, words);
  words.add_if_set(settings.ctk_path != defaults.ctk_path && !settings.ctk_path.starts_with('/'),
                   "nvidia-ctk.path", "it is not absolute, so no hook is found there");
  words.add_if_set(settings.hook.path != defaults.hook.path && !settings.hook.path.starts_with('/'),
                   "nvidia-container-runtime-hook.path", "it is not absolute");
  constexpr std::string_view kNever = "the image's files would act on the host";
  words.add_if_set(features.allow_cuda_compat_libs_from_container,
                   "features.allow-cuda-compat-libs-from-container", kNever);
  words.add_if_set(features.allow_ldconfig_from_container, "features.allow-ldconfig-from-container",
                   kNever);
  return std::move(words.sentences);
}

}  // namespace gantry::config
