// SPDX-License-Identifier: Apache-2.0
// Podman reads CDI specs by default. Only a named runtime or the classic hook can be configured.
#include "container/engines/change_plan_internal.hpp"

#include <array>

namespace gantry::engines {
namespace {

constexpr std::string_view kPodmanDropIn = "/etc/containers/containers.conf.d/99-nvidia.conf";
constexpr std::string_view kPodmanConfig = "/etc/containers/containers.conf";
constexpr std::array kHookDirectories{"/usr/share/containers/oci/hooks.d",
                                      "/etc/containers/oci/hooks.d"};

}  // namespace

Result<ChangePlan> plan_podman(const sys::Host& host, const EngineOptions& options) {
  ChangePlan plan{.engine = Engine::Podman, .program = "podman"};
  plan.config = options.config.empty() ? std::string(kPodmanConfig) : options.config;
  if (options.mode == IntegrationMode::Hook) {
    GANTRY_CHECK(add_hook(host, options, {kHookDirectories.begin(), kHookDirectories.end()}, plan));
    plan.notes.emplace_back(
        "rootless containers: set no-cgroups = true in config.toml, or use CDI");
    return plan;
  }
  auto target = options.drop_in.value_or(std::string(kPodmanDropIn));
  if (target.empty()) target = plan.config;
  GANTRY_TRY(auto file, TomlFile::open(host, target));
  const toml_edit::Path key{"engine", "runtimes", options.runtime_name};
  const auto there = file.document().strings(key);
  const auto known = there && !there->empty() ? there->front() : std::string();
  const auto path = options.runtime_path.empty()
                        ? keep_program(host, known, kRuntimePath, plan.notes)
                        : options.runtime_path;
  if (!there || there->empty() || there->front() != path) {
    GANTRY_CHECK(file.set(key, toml_edit::quote(std::vector{path})));
  }
  if (options.set_as_default) {
    GANTRY_CHECK(file.set_text({"engine", "runtime"}, options.runtime_name));
  }
  plan.notes.emplace_back(
      "podman does not need this for CDI: podman run --device nvidia.com/gpu=all ...");
  plan.expectation = {options.runtime_name, path, options.set_as_default};
  plan.files.push_back(std::move(file).change());
  return plan;
}

}  // namespace gantry::engines
