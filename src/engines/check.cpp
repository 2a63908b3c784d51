// SPDX-License-Identifier: Apache-2.0
#include "engines/check.hpp"

#include "base/text.hpp"
#include "engines/containerd_internal.hpp"

#include <fmt/format.h>

namespace gantry::engines {
namespace {

using Verdict = Check::Verdict;

bool is_missing(const Error& error) {
  return error.code() == Errc::NotFound;
}

Check not_installed(const Plan& plan) {
  return {Verdict::NotAsked, fmt::format("{} is not installed here", plan.program)};
}

Check check_docker(const Plan& plan, const RunProgram& run) {
  const auto answer = run({plan.program, "--validate", "--config-file", plan.config});
  if (answer.ok()) return {Verdict::Passed, "dockerd --validate accepts it"};
  if (is_missing(answer.error())) return not_installed(plan);
  if (contains(answer.error().text(), "unknown flag")) {
    return {Verdict::NotAsked, "this dockerd cannot check a configuration (23 and later can)"};
  }
  return {Verdict::Failed, answer.error().text()};
}

// containerd says which file it means only by name: K3s's is made at its next start.
Check check_containerd(const Plan& plan, const RunProgram& run) {
  if (contains(plan.config, "/rancher/") || contains(plan.config, "/microk8s/") ||
      plan.config.starts_with("/etc/k0s/")) {
    return {Verdict::NotAsked, "the distribution makes containerd's file at its next start"};
  }
  const auto answer = run({plan.program, "--config", plan.config, "config", "dump"});
  if (!answer.ok()) {
    if (is_missing(answer.error())) return not_installed(plan);
    return {Verdict::Failed, answer.error().text()};
  }
  std::string toml;
  for (const auto line : lines(*answer)) {
    if (!line.starts_with("time=")) toml += std::string(line) + "\n";
  }
  const auto dump = toml_edit::Document::parse(std::move(toml));
  if (!dump.ok()) return {Verdict::NotAsked, "containerd config dump printed no TOML"};
  const auto& wanted = plan.expectation;
  for (const std::int64_t schema : {3, 2, 1}) {
    const auto containerd = cri_table(schema) / "containerd";
    const auto runtime = containerd / "runtimes" / wanted.runtime_name;
    if (!dump->has(runtime)) continue;
    const auto path = dump->string(runtime / "options" / "BinaryName").value_or("");
    const auto chosen = dump->string(containerd / "default_runtime_name").value_or("");
    if (path != wanted.runtime_path) {
      return {Verdict::Failed, fmt::format("containerd sees {} as {}", wanted.runtime_name, path)};
    }
    if (wanted.is_default && chosen != wanted.runtime_name) {
      return {Verdict::Failed, fmt::format("containerd's default is {}", chosen)};
    }
    if (!dump->has(containerd / "runtimes" / chosen)) {
      return {Verdict::Failed, fmt::format("containerd's default {} is gone", chosen)};
    }
    return {Verdict::Passed, "containerd config dump shows it"};
  }
  return {Verdict::Failed, "containerd config dump does not show the runtime"};
}

Check check_crio(const Plan& plan, const RunProgram& run) {
  if (plan.expectation.runtime_path.empty()) {
    return {Verdict::NotAsked, "CRI-O reads hooks when it starts"};
  }
  const auto answer = run({plan.program, "config"});
  if (!answer.ok()) {
    if (is_missing(answer.error())) return not_installed(plan);
    return {Verdict::Failed, answer.error().text()};
  }
  std::string toml;
  for (const auto line : lines(*answer)) {
    if (!line.starts_with("time=")) toml += std::string(line) + "\n";
  }
  const auto dump = toml_edit::Document::parse(std::move(toml));
  if (!dump.ok()) return {Verdict::NotAsked, "crio config printed no TOML"};
  const toml_edit::Path runtime{"crio", "runtime", "runtimes", plan.expectation.runtime_name};
  if (dump->string(runtime / "runtime_path") != plan.expectation.runtime_path) {
    return {Verdict::Failed, "crio config does not show the runtime"};
  }
  return {Verdict::Passed, "crio config shows it"};
}

}  // namespace

Check check(const Plan& plan, const RunProgram& run) {
  if (!run) return {Verdict::NotAsked, "this is not the machine that runs the engine"};
  switch (plan.engine) {
    case Engine::Docker: return check_docker(plan, run);
    case Engine::Containerd: return check_containerd(plan, run);
    case Engine::Crio: return check_crio(plan, run);
    case Engine::Podman: break;
  }
  return {Verdict::NotAsked, "podman reads its files at every start and has no check"};
}

}  // namespace gantry::engines
