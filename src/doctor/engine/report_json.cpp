// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"
#include "doctor/engine/report.hpp"

#include <optional>

namespace gantry::doctor {
namespace {

void write_evidence(json::Writer& out, const std::vector<Evidence>& evidence) {
  out.array("read", evidence, [&](const Evidence& item) {
    out.object([&] {
      out.member("source", item.source);
      out.member("value", item.value);
    });
  });
}

void write_result(json::Writer& out, const CheckResult& outcome) {
  const auto& check = *outcome.check;
  const auto& finding = outcome.finding;
  out.object([&] {
    out.member("id", check.id);
    out.member("reference", check.reference);
    out.member("area", to_string(check.area));
    out.member("title", check.title);
    out.member("verdict", to_string(finding.verdict));
    out.member("summary", finding.summary);
    write_evidence(out, finding.evidence);
    out.member("fix_class", letter(check.fix_class));
    // The command that fixes it; null if there is none.
    out.member("fix", outcome.fix.empty() ? std::nullopt : std::optional(outcome.fix));
    if (finding.verdict == Verdict::Ok || finding.verdict == Verdict::Skip) return;
    out.member("cause", outcome.cause());
    out.member("remedy", outcome.remedy());
    if (outcome.reason != nullptr) out.member("because_of", outcome.reason->id);
    if (outcome.offer == FixOffer::ByHand) out.member("by_hand", check.by_hand);
  });
}

void write_fix(json::Writer& out, const FixReport& fix) {
  out.object([&] {
    out.member("id", fix.check->id);
    out.member("state", to_string(fix.state));
    out.array("steps", fix.steps, [&](const auto& step) {
      out.object([&] {
        out.member("did", step.what);
        if (!step.error.empty()) out.member("error", step.error);
      });
    });
    out.member("after", to_string(fix.after));
    out.member("text", fix.text);
  });
}

void write_guest(json::Writer& out, const Guest& guest) {
  out.object("guest", [&] {
    out.member("known", guest.known);
    out.member("virtual", guest.is_virtual());
    out.member("hypervisor", guest.name);
    out.member("wsl", guest.wsl);
    write_evidence(out, guest.evidence);
  });
}

void write_summary(json::Writer& out, const VerdictCounts& counts) {
  out.object("summary", [&] {
    out.member("checks", counts.total());
    out.member("ok", counts.ok);
    out.member("info", counts.info);
    out.member("warn", counts.warn);
    out.member("fail", counts.fail);
    out.member("skip", counts.skip);
  });
}

}  // namespace

std::string report_json(const std::vector<CheckResult>& outcomes,
                        const std::vector<FixReport>& fixes, const Guest& guest) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kReportSchema);
    write_guest(out, guest);
    write_summary(out, count(outcomes));
    out.array("unreadable", [&] {  // ids of checks that only root can run
      for (const auto& outcome : outcomes) {
        if (outcome.finding.needs_root) out.value(outcome.check->id);
      }
    });
    out.array("checks", outcomes, [&](const auto& outcome) { write_result(out, outcome); });
    if (!fixes.empty()) {
      out.array("fixes", fixes, [&](const auto& fix) { write_fix(out, fix); });
    }
  });
  return out.text() + "\n";
}

std::string list_json(const std::vector<const Check*>& checks) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kReportSchema);
    out.array("checks", checks, [&](const Check* check) {
      out.object([&] {
        out.member("id", check->id);
        out.member("reference", check->reference);
        out.member("area", to_string(check->area));
        out.member("title", check->title);
        out.member("reads", check->reads);
        out.member("cause", check->cause);
        out.member("remedy", check->remedy);
        out.member("fix_class", letter(check->fix_class));
        out.member("fix", fix_rule(*check));
        out.member("by_hand", check->by_hand);
        out.member("afterwards", check->afterwards);
      });
    });
  });
  return out.text() + "\n";
}

}  // namespace gantry::doctor
