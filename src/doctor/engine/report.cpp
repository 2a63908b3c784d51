// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/report.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::doctor {
namespace {

constexpr std::size_t kIndent = 13;  // column of the text behind "    cause    "

std::string_view color_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok: return "\033[32m";
    case Verdict::Info: return "\033[36m";
    case Verdict::Warn: return "\033[33m";
    case Verdict::Fail: return "\033[31m";
    case Verdict::Skip: return "\033[2m";
  }
  return "";
}

std::string painted(std::string_view text, Verdict verdict, const Style& style) {
  if (!style.color) return std::string(text);
  return fmt::format("{}{}\033[0m", color_of(verdict), text);
}

// Breaks between words; a word that is too long stays whole, so that paths can be copied. The first
// line begins at column `start`, the others at `indent`.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width,
                    std::size_t start) {
  std::string out;
  std::size_t column = start;
  bool at_start = true;  // of a line
  for (auto word : split(text, ' ')) {
    if (word.empty()) continue;
    const bool fits = column + (at_start ? 0 : 1) + word.size() <= width;
    if (!fits && column > indent) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      at_start = true;
    }
    if (!at_start) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at_start = false;
  }
  return out;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  return wrapped(text, indent, width, indent);
}

std::string field(std::string_view name, std::string_view text, const Style& style) {
  return fmt::format("    {:<9}{}\n", name, wrapped(printable_lines(text), kIndent, style.width));
}

// A command is never wrapped, so that it can be pasted.
std::string command(std::string_view name, std::string_view text) {
  return fmt::format("    {:<9}{}\n", name, printable_lines(text));
}

// Groups skipped checks by reason: there are few reasons (no Docker, no kubelet, no NVSwitch).
std::string skipped(const std::vector<CheckResult>& outcomes, const Style& style) {
  std::vector<std::pair<std::string, std::string>> by_reason;  // in order of appearance
  for (const auto& outcome : outcomes) {
    if (outcome.finding.verdict != Verdict::Skip) continue;
    const auto known = std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& pair) {
      return pair.first == outcome.finding.summary;
    });
    if (known == by_reason.end()) {
      by_reason.emplace_back(outcome.finding.summary, outcome.check->id);
    } else {
      known->second += fmt::format(" {}", outcome.check->id);
    }
  }
  std::string out;
  for (const auto& [reason, ids] : by_reason) {
    out += fmt::format("  {}:\n    {}\n", wrapped(printable_lines(reason), 2, style.width),
                       wrapped(ids, 4, style.width));
  }
  return out;
}

// Offers --fix only if it would really change something.
std::string fix_line(const CheckResult& outcome) {
  const auto& check = *outcome.check;
  switch (outcome.offer) {
    case FixOffer::Automatic:
    case FixOffer::OnRequest: return command("fix", "sudo " + outcome.fix);
    case FixOffer::ByHand: return check.by_hand.empty() ? "" : command("by hand", check.by_hand);
    case FixOffer::Elsewhere: return command("by hand", "on the machine itself, with its programs");
    case FixOffer::Nothing: break;
  }
  return "";
}

std::string headline(const CheckResult& outcome, const Style& style, std::string_view reference) {
  constexpr std::size_t kHanging = 4;
  const auto& check = *outcome.check;
  const auto text = fmt::format("{}{}", printable_lines(outcome.finding.summary), reference);
  return fmt::format("  {}  {}\n", painted(check.id, outcome.finding.verdict, style),
                     wrapped(text, kHanging, style.width, check.id.size() + 4));
}

std::string expanded(const CheckResult& outcome, const Style& style) {
  const std::size_t kMostEvidence = style.detail == Detail::All ? 12 : 4;
  auto out = headline(outcome, style, fmt::format(" [{}]", outcome.check->reference));
  const auto& evidence = outcome.finding.evidence;
  for (std::size_t i = 0; i < evidence.size() && i < kMostEvidence; ++i) {
    out += field("read", fmt::format("{}: {}", evidence[i].source, evidence[i].value), style);
  }
  if (evidence.size() > kMostEvidence) {
    out += field("read", fmt::format("and {} more", evidence.size() - kMostEvidence), style);
  }
  out += field("cause", outcome.cause(), style);
  out += command("remedy", outcome.remedy());
  return out + fix_line(outcome);
}

// A consequence ends with its reason, unless it is a fault of its own that has to be repaired, too.
std::string consequences(const std::vector<CheckResult>& outcomes, const CheckResult& of,
                         const Style& style) {
  std::string out;
  for (const auto& outcome : outcomes) {
    if (outcome.reason != of.check) continue;
    out += field("hence", fmt::format("{}: {}", outcome.check->id, outcome.finding.summary), style);
    if (outcome.offer == FixOffer::Automatic && outcome.finding.verdict == Verdict::Fail) {
      out += command("remedy", outcome.remedy());
    }
  }
  return out;
}

std::string passed(const std::vector<CheckResult>& outcomes, const Style& style) {
  std::size_t widest = 0;
  for (const auto& outcome : outcomes) widest = std::max(widest, outcome.check->id.size());
  std::string out;
  for (const auto& outcome : outcomes) {
    if (outcome.finding.verdict != Verdict::Ok) continue;
    out += fmt::format("  {:<{}}  {}\n", outcome.check->id, widest,
                       wrapped(printable_lines(outcome.finding.summary), widest + 4, style.width));
  }
  return out;
}

std::string findings(const std::vector<CheckResult>& outcomes, Verdict verdict,
                     const Style& style) {
  std::string out;
  for (const auto& outcome : outcomes) {
    if (outcome.finding.verdict != verdict || outcome.reason != nullptr) continue;
    const bool short_form = verdict == Verdict::Info && style.detail == Detail::Findings;
    out += short_form ? headline(outcome, style, "") : expanded(outcome, style);
    out += consequences(outcomes, outcome, style);
  }
  return out;
}

std::string group_text(const std::vector<CheckResult>& outcomes, Verdict verdict,
                       const Style& style) {
  if (verdict == Verdict::Ok) return passed(outcomes, style);
  return verdict == Verdict::Skip ? skipped(outcomes, style) : findings(outcomes, verdict, style);
}

}  // namespace

std::string summary_line(const VerdictCounts& counts) {
  return fmt::format("{} checks: {} ok, {} info, {} warn, {} fail, {} skipped", counts.total(),
                     counts.ok, counts.info, counts.warn, counts.fail, counts.skip);
}

std::string report_text(const std::vector<CheckResult>& outcomes, const Style& style) {
  constexpr std::array kOrder{Verdict::Fail, Verdict::Warn, Verdict::Info, Verdict::Ok,
                              Verdict::Skip};
  const auto counts = count(outcomes);
  std::string out = counts.fail + counts.warn == 0 ? "No problem found.\n\n" : "";
  for (const auto verdict : kOrder) {
    const bool quiet = verdict == Verdict::Ok || verdict == Verdict::Skip;
    if (quiet && style.detail == Detail::Findings) continue;
    const auto group = group_text(outcomes, verdict, style);
    if (group.empty()) continue;
    out += fmt::format("{}\n{}\n", painted(to_string(verdict), verdict, style), group);
  }
  const bool hidden = style.detail == Detail::Findings && counts.ok + counts.info + counts.skip > 0;
  const auto last = summary_line(counts) + (hidden ? " (--all shows them)" : "");
  return out + wrapped(last, 2, style.width, 0) + "\n";
}

std::string describe_unreadable(const std::vector<CheckResult>& outcomes, const sys::Host& host) {
  std::string ids;
  for (const auto& outcome : outcomes) {
    if (outcome.finding.needs_root) ids += fmt::format(" {}", outcome.check->id);
  }
  if (ids.empty()) return "";
  return fmt::format("This user may not read the files of:{}; run as root: sudo gantry doctor{}\n",
                     ids, sys::root_flag(host));
}

bool has_safe_fix(const std::vector<CheckResult>& outcomes) {
  return std::any_of(outcomes.begin(), outcomes.end(), [](const CheckResult& outcome) {
    const auto verdict = outcome.finding.verdict;
    return outcome.offer == FixOffer::Automatic &&
           (verdict == Verdict::Warn || verdict == Verdict::Fail);
  });
}

std::string fixes_text(const std::vector<FixReport>& fixes, const Style& style) {
  if (fixes.empty()) return "nothing to fix\n\n";
  std::string out = "fixes\n";
  for (const auto& fix : fixes) {
    const auto now =
        fix.steps.empty() ? std::string() : fmt::format(", now {}", to_string(fix.after));
    out += fmt::format("  {}  {}{}\n", painted(fix.check->id, fix.after, style),
                       to_string(fix.state), now);
    for (const auto& step : fix.steps) {
      out += fmt::format("    {} {}{}\n", step.error.empty() ? "did   " : "FAILED",
                         printable_lines(step.what),
                         step.error.empty() ? "" : ": " + printable_lines(step.error));
    }
    if (!fix.text.empty()) out += fmt::format("    {}\n", printable_lines(fix.text));
  }
  return out + "\n";
}

std::string_view fix_rule(const Check& check) {
  if (check.fix == nullptr || check.fix_class == FixClass::Never) return "by hand only";
  return check.fix_class == FixClass::Automatic ? "safe: --fix does it"
                                                : "risky: --fix asks, or name it: --fix=ID";
}

std::string explain_text(const Check& check, const Style& style) {
  std::string out = fmt::format("{} [{}] ({})\n", check.id, check.reference, to_string(check.area));
  out += field("ok when", check.title, style);
  out += field("reads", check.reads, style);
  out += field("cause", check.cause, style);
  out += command("remedy", check.remedy);
  out += field("fix", fix_rule(check), style);
  if (!check.by_hand.empty()) out += field("by hand", check.by_hand, style);
  if (!check.afterwards.empty()) out += field("then", check.afterwards, style);
  return out;
}

std::string list_text(const std::vector<const Check*>& checks) {
  std::string out;
  std::size_t widest = 0;
  for (const auto* check : checks) widest = std::max(widest, check->id.size());
  for (const auto* check : checks) {
    out += fmt::format("{:<{}}  {:<4} {}  {}\n", check->id, widest, check->reference,
                       letter(check->fix_class), check->title);
  }
  return out;
}

std::string list_markdown(const std::vector<const Check*>& checks) {
  std::string out = "| check | ref | fix | ok when | reads | remedy |\n|---|---|---|---|---|---|\n";
  const auto cell = [](std::string_view text) {
    std::string escaped;
    for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
    return escaped;
  };
  for (const auto* check : checks) {
    const bool code = !check->remedy.empty();
    out += fmt::format("| `{}` | {} | {} | {} | `{}` | {}{}{} |\n", check->id, check->reference,
                       letter(check->fix_class), cell(check->title), cell(check->reads),
                       code ? "`" : "", cell(check->remedy), code ? "`" : "");
  }
  return out;
}

}  // namespace gantry::doctor
