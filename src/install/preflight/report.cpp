// SPDX-License-Identifier: Apache-2.0
// What `gantry driver preflight` prints.
#include "base/json/writer.hpp"
#include "install/preflight/judge.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::preflight {
namespace {

std::string_view heading(Severity severity) {
  switch (severity) {
    case Severity::Blocks: return "BLOCKS";
    case Severity::Warns: return "warns ";
    case Severity::Notes: break;
  }
  return "note  ";
}

std::string machine_line(const MachineFacts& facts) {
  const auto& os = facts.os.pretty_name.empty() ? facts.os.id : facts.os.pretty_name;
  return fmt::format("{}{}{}, {} GPU{}", facts.kernel.release, os.empty() ? "" : ", ", os,
                     facts.gpus.size(), facts.gpus.size() == 1 ? "" : "s");
}

std::string wanted(const DriverRequest& request) {
  const auto version = version_of(request);
  if (!version.empty()) return fmt::format("driver {} ({})", version, to_string(request.source));
  return request.source == Source::Packages ? "the distribution's driver (packages)"
                                            : "a driver of any version";
}

std::ptrdiff_t count(std::span<const Finding> findings, Severity severity) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.severity == severity; });
}

std::string verdict(std::span<const Finding> findings) {
  const auto blockers = count(findings, Severity::Blocks);
  const auto warnings = count(findings, Severity::Warns);
  const auto text = fmt::format("{} warning{}", warnings, warnings == 1 ? "" : "s");
  if (blockers == 0) return fmt::format("can be installed; {}\n", text);
  return fmt::format("cannot be installed: {} finding{} block{} it; {}\n", blockers,
                     blockers == 1 ? "" : "s", blockers == 1 ? "s" : "", text);
}

void write_gpu(json::Writer& out, const GpuFact& gpu) {
  out.object([&] {
    out.member("address", gpu.address.sysfs());
    out.member("device", fmt::format("10de:{:04x}", gpu.device));
    out.member("name", gpu.name);
    out.member("architecture", to_string(gpu.architecture));
    out.member("driver", gpu.driver);
    out.member("vgpu", gpu.is_vgpu);
  });
}

void write_machine(json::Writer& out, const MachineFacts& facts) {
  out.object("machine", [&] {
    out.member("architecture", facts.machine);
    out.member("os", facts.os.pretty_name);
    out.member("kernel", facts.kernel.release);
    out.member("loaded_driver", facts.loaded.version);
    out.array("installed", facts.installed, [&](const InstalledDriver& driver) {
      out.object([&] {
        out.member("kind", to_string(driver.kind));
        out.member("version", driver.version);
        out.member("directory", driver.directory);
        out.array("packages", driver.packages);
      });
    });
    out.array("gpus", facts.gpus, [&](const GpuFact& gpu) { write_gpu(out, gpu); });
  });
}

}  // namespace

std::string to_text(const MachineFacts& facts, const DriverRequest& request,
                    std::span<const Finding> findings) {
  auto text = fmt::format("{} on {}\n", wanted(request), machine_line(facts));
  for (const auto& gpu : facts.gpus) text += fmt::format("  {}\n", gpu.describe());
  for (const auto& finding : findings) {
    text += fmt::format("{} {}: {}\n", heading(finding.severity), finding.code, finding.sentence);
    if (!finding.cause.empty()) text += fmt::format("         {}\n", finding.cause);
    if (!finding.remedy.empty()) text += fmt::format("         fix: {}\n", finding.remedy);
  }
  for (const auto& note : facts.notes) text += fmt::format("note   not read: {}\n", note);
  return text + verdict(findings);
}

std::string to_json(const MachineFacts& facts, const DriverRequest& request,
                    std::span<const Finding> findings) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", 1);
    out.member("driver", version_of(request));
    out.member("source", to_string(request.source));
    out.member("can_install", !blocks(findings));
    out.array("findings", findings, [&](const Finding& finding) {
      out.object([&] {
        out.member("code", finding.code);
        out.member("severity", to_string(finding.severity));
        out.member("sentence", finding.sentence);
        out.member("cause", finding.cause);
        out.member("remedy", finding.remedy);
      });
    });
    write_machine(out, facts);
    out.array("notes", facts.notes);
  });
  return std::move(out).text() + "\n";
}

}  // namespace gantry::preflight
