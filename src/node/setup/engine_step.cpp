// SPDX-License-Identifier: Apache-2.0
// Finds the engines of the machine, those that support CDI without configuration, and those that
// need the nvidia runtime.
#include "base/sys/shell_command.hpp"
#include "container/engines/check.hpp"
#include "container/engines/journal.hpp"
#include "node/setup/node_setup_internal.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace gantry::setup {
namespace {

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct KnownEngine {
  engines::Engine engine;
  std::string_view program;
  Version cdi_by_default_since;  // without any configuration
};
// docker has CDI since 25, enabled by default since 28.3; podman has it for --device; containerd in
// its CRI.
constexpr std::array kKnownEngines{KnownEngine{engines::Engine::Docker, "dockerd", {28, 3}},
                                   KnownEngine{engines::Engine::Podman, "podman", {4, 1}},
                                   KnownEngine{engines::Engine::Crio, "crio", {1, 23}},
                                   KnownEngine{engines::Engine::Containerd, "containerd", {2, 0}}};
constexpr Version kDockerWithCdi{25, 0};

bool installed(const sys::Host& host, std::string_view program) {
  for (const auto* directory : {"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}) {
    if (host.exists(fmt::format("{}/{}", directory, program))) return true;
  }
  return false;
}

// "4.3" of "podman version 4.3.1", "2.1" of "containerd github.com/... v2.1.4 3f2c".
std::optional<Version> version_in(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == 'v';
    if (!begins || text[at] < '0' || text[at] > '9') continue;
    Version found;
    const auto* end = text.data() + text.size();
    const auto [dot, bad] = std::from_chars(text.data() + at, end, found.major);
    if (bad != std::errc{} || dot == end || *dot != '.') continue;
    if (std::from_chars(dot + 1, end, found.minor).ec == std::errc{}) return found;
  }
  return std::nullopt;
}

std::optional<Version> version_of(const KnownEngine& known, const NodeOptions& options) {
  if (!options.run) return std::nullopt;
  const auto said = options.run({std::string(known.program), "--version"});
  return said.ok() ? version_in(*said) : std::nullopt;
}

// Why an engine is not changed; "" if it must be configured.
std::string skip_reason(const SetupContext& work, const KnownEngine& known,
                        const std::optional<Version>& version) {
  if (version && *version >= known.cdi_by_default_since) {
    return fmt::format("{}.{} supports CDI: nothing to do", version->major, version->minor);
  }
  const bool of_the_cluster =
      known.engine == engines::Engine::Containerd || known.engine == engines::Engine::Crio;
  if (of_the_cluster && has_kubelet(work.host)) {
    return "used by the kubelet: the agent's answers need no change to it";
  }
  if (known.engine == engines::Engine::Containerd && installed(work.host, "dockerd")) {
    return "used by docker: nothing to do";
  }
  return "";
}

std::string restart_words(const SetupContext& work, const engines::ChangePlan& plan) {
  if (plan.restart.empty()) return "";
  const auto command = fmt::format("{}", fmt::join(plan.restart, " "));
  if (!work.options.restart || !work.options.run)
    return "; to apply it: " + sys::on_machine(work.host, "sudo " + command);
  const auto done = work.options.run(plan.restart);
  return done.ok() ? "; restarted" : fmt::format("; {}", done.error().text());
}

// A configuration that the engine's own program rejects is undone at once.
Result<std::string> apply(const SetupContext& work, const engines::ChangePlan& plan,
                          const engines::EngineOptions& wanted) {
  const auto files = engines::disk_file_writer();
  const JournalEntry record{SetupAction::Engine, std::string(to_string(plan.engine))};
  GANTRY_CHECK(work.journal.add(record));
  GANTRY_TRY(const auto outcome, engines::apply(work.host, plan, *files));
  for (const auto& note : outcome.notes) work.report.notes.push_back(note);
  const auto result = engines::check(plan, wanted.run);
  if (result.verdict == engines::ConfigCheck::Verdict::Failed) {
    GANTRY_TRY([[maybe_unused]] const auto back, engines::undo(work.host, plan.engine, *files));
    GANTRY_CHECK(work.journal.drop(record));
    return Error(
        Errc::Invalid,
        "does not accept the new configuration, so the old one was restored: " + result.text);
  }
  return "has the runtime nvidia" + restart_words(work, plan);
}

Result<std::string> configure(const SetupContext& work, const KnownEngine& known,
                              const std::optional<Version>& version, std::string& where) {
  engines::EngineOptions wanted{.engine = known.engine, .run = work.options.run};
  wanted.enable_cdi =
      known.engine == engines::Engine::Docker && version && *version >= kDockerWithCdi;
  GANTRY_TRY(const auto plan, engines::make_plan(work.host, wanted));
  for (const auto& file : plan.files) {
    if (file.changes() || where.empty()) where = work.host.outside(file.path);
  }
  if (!plan.changes()) return std::string("already has the runtime nvidia");
  if (work.options.dry_run) return std::string("would get the runtime nvidia");
  return apply(work, plan, wanted);
}

}  // namespace

void engine_steps(const SetupContext& work) {
  bool any = false;
  for (const auto& known : kKnownEngines) {
    if (!installed(work.host, known.program)) continue;
    any = true;
    const std::string name(to_string(known.engine));
    const auto version = version_of(known, work.options);
    if (auto leave = skip_reason(work, known, version); !leave.empty()) {
      work.say(name, "", std::move(leave));
      continue;
    }
    std::string where;
    auto done = configure(work, known, version, where);
    work.say(name, where, done.ok() ? *done : done.error().text(), !done.ok());
  }
  if (!any) work.say("engines", "", "no engine is installed");
}

}  // namespace gantry::setup
