// SPDX-License-Identifier: Apache-2.0
#include "container/engines/check.hpp"

#include "base/core/text.hpp"
#include "container/engines/containerd_internal.hpp"
#include "container/engines/crio_config.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::engines {
namespace {

using Verdict = ConfigCheck::Verdict;

bool is_missing(const Error& error) {
  return error.code() == Errc::NotFound;
}

ConfigCheck not_installed(const ChangePlan& plan) {
  return {Verdict::NotAsked, fmt::format("{} is not installed here", plan.program)};
}

ConfigCheck check_docker(const ChangePlan& plan, const RunProgram& run) {
  const auto answer = run({plan.program, "--validate", "--config-file", plan.config});
  if (answer.ok()) return {Verdict::Passed, "dockerd --validate accepts it"};
  if (is_missing(answer.error())) return not_installed(plan);
  // These are dockerd's own words in its output: it has one exit status for every error.
  if (contains(answer.error().text(), "unknown flag")) {
    return {Verdict::NotAsked, "this dockerd cannot check a configuration (23 and later can)"};
  }
  return {Verdict::Failed, answer.error().text()};
}

// Returns true if one of the files named runtimes before the change, and not this one. Old versions
// of containerd drop their built-in runtime once a file names any.
bool was_missing(const ChangePlan& plan, const toml_edit::Path& containerd,
                 const std::string& runtime) {
  for (const auto& file : plan.files) {
    const auto before = toml_edit::Document::parse(file.before.value_or(""));
    if (!before.ok()) continue;
    const auto names = before->members(containerd / "runtimes");
    if (!names.empty() && std::find(names.begin(), names.end(), runtime) == names.end())
      return true;
  }
  return false;
}

ConfigCheck judge_dump(const toml_edit::Document& dump, const ChangePlan& plan,
                       const toml_edit::Path& containerd) {
  const auto& wanted = plan.expectation;
  const auto runtime = containerd / "runtimes" / wanted.runtime_name;
  const auto path = dump.string(runtime / "options" / "BinaryName").value_or("");
  const auto chosen = dump.string(containerd / "default_runtime_name").value_or("");
  if (path != wanted.runtime_path) {
    return {Verdict::Failed, fmt::format("containerd sees {} as {}", wanted.runtime_name, path)};
  }
  if (wanted.is_default && chosen != wanted.runtime_name) {
    return {Verdict::Failed, fmt::format("containerd's default runtime is {}", chosen)};
  }
  if (!dump.has(containerd / "runtimes" / chosen)) {
    if (was_missing(plan, containerd, chosen)) {
      return {Verdict::Passed,
              fmt::format("containerd shows it; its default runtime {} was missing before, too: "
                          "add it to {}, or set default_runtime_name",
                          chosen, plan.config)};
    }
    return {Verdict::Failed,
            fmt::format("containerd no longer has its default runtime {}", chosen)};
  }
  return {Verdict::Passed, "containerd shows it in its configuration"};
}

// `dump` shows the effective configuration. In containerd 2.0 it leaves out files of version 2;
// `migrate` includes them.
ConfigCheck check_containerd(const ChangePlan& plan, const RunProgram& run) {
  // The distribution writes containerd's file at its next start.
  if (contains(plan.config, "/rancher/") || contains(plan.config, "/microk8s/") ||
      plan.config.starts_with("/etc/k0s/")) {
    return {Verdict::NotAsked, "the distribution writes containerd's file at its next start"};
  }
  ConfigCheck result{Verdict::Failed, "containerd config dump does not show the runtime"};
  for (const auto* word : {"dump", "migrate"}) {
    const auto answer = run({plan.program, "--config", plan.config, "config", word});
    if (!answer.ok()) {
      if (is_missing(answer.error())) return not_installed(plan);
      if (word == std::string_view("dump")) result.text = answer.error().text();
      continue;  // old versions have no `migrate`
    }
    const auto text = without_log(*answer);
    if (trim(text).empty()) {
      result = {Verdict::NotAsked, "containerd config dump printed nothing"};
      continue;
    }
    const auto dump = toml_edit::Document::parse(text);
    if (!dump.ok()) return {Verdict::NotAsked, "containerd config dump did not print TOML"};
    for (const std::int64_t schema : {3, 2, 1}) {
      const auto containerd = cri_table(schema) / "containerd";
      if (dump->has(containerd / "runtimes" / plan.expectation.runtime_name)) {
        return judge_dump(*dump, plan, containerd);
      }
    }
  }
  return result;
}

// CRI-O prints a value that equals its own default as a comment: `# default_runtime = "crun"`.
std::string default_in_comment(std::string_view text) {
  for (auto line : lines(text)) {
    line = trim(line);
    if (!line.starts_with('#')) continue;
    const auto value = toml_edit::Document::parse(std::string(trim(line.substr(1))));
    if (!value.ok()) continue;
    if (auto chosen = value->string({"default_runtime"})) return *std::move(chosen);
  }
  return "";
}

ConfigCheck judge_crio(const std::string& text, const Expectation& wanted) {
  const auto parsed = toml_edit::Document::parse(text);
  if (!parsed.ok()) return {Verdict::NotAsked, "crio config did not print TOML"};
  const auto& shown = *parsed;

  const auto path =
      shown.string(crio_runtime_table(wanted.runtime_name) / "runtime_path").value_or("");
  if (path != wanted.runtime_path) {
    return {Verdict::Failed,
            path.empty() ? fmt::format("crio config has no runtime {}", wanted.runtime_name)
                         : fmt::format("crio config shows {} as {}", wanted.runtime_name, path)};
  }
  const auto chosen = shown.string(crio_default_runtime_key()).value_or(default_in_comment(text));
  if (wanted.is_default && chosen != wanted.runtime_name) {
    return {Verdict::Failed, fmt::format("crio config shows the default runtime {}", chosen)};
  }
  return {Verdict::Passed, "crio config shows it"};
}

// What CRI-O said last is why it ended; before that it names the files that it read.
std::string last_line(std::string_view text) {
  const auto all = lines(trim(text));
  return all.empty() ? "" : std::string(all.back());
}

ConfigCheck check_crio(const ChangePlan& plan, const RunProgram& run) {
  const auto& wanted = plan.expectation;
  if (wanted.runtime_path.empty()) return {Verdict::NotAsked, "crio config does not show hooks"};
  const auto answer = run(plan.show_config);
  if (!answer.ok()) {
    if (is_missing(answer.error())) return not_installed(plan);
    return {Verdict::Failed, last_line(answer.error().text())};
  }
  if (wanted.is_default && !wanted.program_exists) {
    return {Verdict::Failed, fmt::format("CRI-O does not start while the program {} of its default "
                                         "runtime does not exist",
                                         wanted.runtime_path)};
  }
  return judge_crio(without_log(*answer), wanted);
}

}  // namespace

ConfigCheck check(const ChangePlan& plan, const RunProgram& run) {
  if (!run) return {Verdict::NotAsked, "this is not the machine that runs the engine"};
  switch (plan.engine) {
    case Engine::Docker: return check_docker(plan, run);
    case Engine::Containerd: return check_containerd(plan, run);
    case Engine::Crio: return check_crio(plan, run);
    case Engine::Podman: break;
  }
  return {Verdict::NotAsked, "podman reads its files at every start and cannot check them"};
}

}  // namespace gantry::engines
