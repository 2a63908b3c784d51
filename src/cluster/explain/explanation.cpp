// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/explanation.hpp"

#include "base/core/printable.hpp"
#include "base/json/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::explain {
namespace {

constexpr int kSchema = 1;  // of the JSON document

// Text from pods is shortened: an environment variable may have megabytes.
std::string shown(std::string_view text) {
  constexpr std::size_t kMaxTextBytes = 800;
  return text.size() <= kMaxTextBytes ? printable(text)
                                      : printable(text.substr(0, kMaxTextBytes)) + "...";
}

std::string_view color_of(StepStatus verdict) {
  switch (verdict) {
    case StepStatus::Ok: return "\x1b[32m";
    case StepStatus::Failed: return "\x1b[31m";
    case StepStatus::Warning: return "\x1b[33m";
    case StepStatus::Unknown: break;
  }
  return "\x1b[2m";
}

// A doubtful step may be what keeps GPUs from the pod: "found nothing" needs every step in order.
std::string conclusion(const Explanation& explanation) {
  const auto* broken = explanation.first_failed();
  const auto* look = explanation.first(StepStatus::Warning);
  if (broken == nullptr && look == nullptr)
    return "Gantry found nothing that keeps GPUs from it.\n";
  const auto& step = broken != nullptr ? *broken : *look;
  auto text = broken != nullptr
                  ? fmt::format("Why: {}\n", shown(step.cause))
                  : fmt::format("No step is broken, but one is doubtful: {}\n", shown(step.what));
  if (!step.remedy.empty())
    text += fmt::format("{} {}\n", broken != nullptr ? "Do: " : "Perhaps:", shown(step.remedy));
  return text;
}

std::string step_line(const Step& step, bool color) {
  const auto word = fmt::format("{:6}", to_string(step.verdict));
  const auto shown_word =
      color ? fmt::format("  {}{}\x1b[0m", color_of(step.verdict), word) : "  " + word;
  return fmt::format("{}  {:34}  {}\n", shown_word, shown(step.what), shown(step.read));
}

std::string cause_line(const Step& step) {
  return step.cause.empty() ? "" : fmt::format("          {}\n", shown(step.cause));
}

std::string verdict_of_findings(const Explanation& explanation) {
  const auto count = [&](StepStatus verdict) {
    return std::count_if(explanation.steps.begin(), explanation.steps.end(),
                         [&](const Step& step) { return step.verdict == verdict; });
  };
  const auto broken = count(StepStatus::Failed);
  const auto doubtful = count(StepStatus::Warning);
  const auto* plural = (broken > 0 ? broken : doubtful) == 1 ? "" : "s";
  if (broken > 0) return fmt::format("it cannot use a GPU here, for {} reason{}", broken, plural);
  if (doubtful > 0)
    return fmt::format("nothing keeps it from a GPU, but look at {} line{}", doubtful, plural);
  return "nothing was found that keeps it from a GPU";
}

}  // namespace

std::string_view to_string(StepStatus verdict) {
  switch (verdict) {
    case StepStatus::Ok: return "ok";
    case StepStatus::Failed: return "BROKEN";
    case StepStatus::Warning: return "look";
    case StepStatus::Unknown: break;
  }
  return "?";
}

const Step* Explanation::first(StepStatus verdict) const {
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const Step& step) { return step.verdict == verdict; });
  return found == steps.end() ? nullptr : &*found;
}

const Step* Explanation::first_failed() const {
  return first(StepStatus::Failed);
}

// Names and messages come from pods: they must not send control codes to the terminal.
std::string to_string(const Explanation& explanation, bool color) {
  auto text = shown(explanation.subject) + "\n";
  for (const auto& step : explanation.steps) {
    text += step_line(step, color);
    if (step.verdict == StepStatus::Warning) text += cause_line(step);
  }
  return text + "\n" + conclusion(explanation);
}

std::string findings_text(const Explanation& explanation, bool color) {
  auto text = fmt::format("{}\nVerdict: {}\n\n", shown(explanation.subject),
                          verdict_of_findings(explanation));
  for (const auto& step : explanation.steps) text += step_line(step, color) + cause_line(step);
  std::string commands;
  for (const auto& step : explanation.steps) {
    if (step.remedy.empty() || step.verdict == StepStatus::Ok) continue;
    commands += fmt::format("{} {}\n", step.verdict == StepStatus::Failed ? "Do:     " : "Perhaps:",
                            shown(step.remedy));
  }
  return commands.empty() ? text : text + "\n" + commands;
}

std::string to_json(const Explanation& explanation) {
  json::Writer out;
  const auto first_id = [&](std::string_view name, StepStatus verdict) {
    const auto* step = explanation.first(verdict);
    out.member(name, step == nullptr ? std::nullopt : std::optional(shown(step->id)));
  };
  out.object([&] {
    out.member("schema", kSchema);
    out.member("subject", shown(explanation.subject));
    first_id("broken", StepStatus::Failed);
    first_id("look", StepStatus::Warning);
    out.array("links", explanation.steps, [&](const Step& step) {
      out.object([&] {
        out.member("id", shown(step.id));
        out.member("what", shown(step.what));
        out.member("verdict", to_string(step.verdict));
        out.member("read", shown(step.read));
        out.member("cause", shown(step.cause));
        out.member("remedy", shown(step.remedy));
      });
    });
  });
  return out.text() + "\n";
}

}  // namespace gantry::explain
