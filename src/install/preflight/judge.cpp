// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/judge.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "install/driver_package/run_header.hpp"
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::preflight {
namespace {

// Commands of gantry know the machine; an option to add and a choice to make are for the reader.
bool changes_machine(std::string_view remedy) {
  constexpr std::string_view kSudo = "sudo ";
  for (auto at = remedy.find(kSudo); at != std::string_view::npos; at = remedy.find(kSudo, at + 1))
    if (!remedy.substr(at + kSudo.size()).starts_with("gantry ")) return true;
  return false;
}

void apply_ignored(const DriverRequest& request, std::vector<Finding>& findings) {
  for (auto& finding : findings) {
    const bool wanted = std::find(request.ignore.begin(), request.ignore.end(), finding.code) !=
                        request.ignore.end();
    const auto* known = find_known_finding(finding.code);
    const bool may = known != nullptr && known->ignorable == Ignorable::Yes;
    if (wanted && may && finding.severity == Severity::Blocks) finding.severity = Severity::Warns;
  }
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::Blocks: return "blocks";
    case Severity::Warns: return "warns";
    case Severity::Notes: break;
  }
  return "notes";
}

bool Judgement::wants_guest_driver() const {
  if (request.source == Source::Grid) return true;
  const auto name = driver_package::parse_run_name(
      request.run_file.empty() ? std::string_view(request.url) : request.run_file);
  return name.ok() && name->kind == driver_package::RunKind::GuestDriver;
}

std::optional<Flavour> Judgement::wanted_flavour() const {
  return preflight::wanted_flavour(facts, request);
}

bool Judgement::loads() const {
  return request.kernel.empty() || request.kernel == facts.kernel.release;
}

bool Judgement::replaces_loaded() const {
  if (!loads() || facts.loaded.version.empty()) return false;
  // The one that NVIDIA's container has loaded is waited for, not unloaded.
  if (request.source == Source::NvidiaContainer) return false;
  if (facts.loaded.version != version_of(request)) return true;
  const auto flavour = wanted_flavour();
  if (!flavour || facts.loaded.flavour == model::ModuleFlavour::Unknown) return false;
  return (facts.loaded.flavour == model::ModuleFlavour::Open) != (*flavour == Flavour::Open);
}

// The proprietary module's licence is "NVIDIA", the open one's "Dual MIT/GPL".
std::optional<Flavour> wanted_flavour(const MachineFacts& facts, const DriverRequest& request) {
  if (request.flavour || request.source != Source::Precompiled) return request.flavour;
  for (const auto& precompiled : facts.precompiled) {
    if (precompiled.module.ok() && precompiled.module->name == "nvidia")
      return precompiled.module->license == "NVIDIA" ? Flavour::Proprietary : Flavour::Open;
  }
  return std::nullopt;
}

std::vector<Finding> judge(const MachineFacts& facts, const DriverRequest& request) {
  Judgement judgement(facts, request);
  judge_request(judgement);
  judge_gpus(judgement);
  judge_binding(judgement);
  judge_kernel(judgement);
  judge_precompiled(judgement);
  judge_installed(judgement);
  judge_users(judgement);
  judge_machine(judgement);
  judge_clock(judgement);
  auto findings = std::move(judgement.findings);
  apply_ignored(request, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return findings;
}

void address_remedies(const sys::Host& host, std::span<Finding> findings) {
  constexpr std::string_view kDone = "on that machine: ";
  for (auto& finding : findings) {
    if (contains(finding.remedy, kDone)) continue;
    finding.remedy = changes_machine(finding.remedy) ? sys::on_machine(host, finding.remedy)
                                                     : sys::with_root(finding.remedy, host.root());
  }
}

bool blocks(std::span<const Finding> findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::Blocks; });
}

Status first_blocker(std::span<const Finding> findings) {
  const auto is_blocker = [](const Finding& finding) {
    return finding.severity == Severity::Blocks;
  };
  const auto first = std::find_if(findings.begin(), findings.end(), is_blocker);
  if (first == findings.end()) return {};
  const auto others = std::count_if(findings.begin(), findings.end(), is_blocker) - 1;
  auto text = first->sentence;
  if (others > 0) {
    text += fmt::format(" ({} more finding{} the installation: gantry driver preflight)", others,
                        others == 1 ? " blocks" : "s block");
  }
  Error error(first->code == "gpu-in-use" ? Errc::Busy : Errc::Unsupported, std::move(text));
  if (first->remedy.empty()) return error;
  return std::move(error).advise(first->remedy);
}

}  // namespace gantry::preflight
