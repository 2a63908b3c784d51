// SPDX-License-Identifier: Apache-2.0
#include "notebook/page.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "notebook/page_internal.hpp"

#include <fmt/format.h>

namespace gantry::workload {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Finds the line of the error: the program may have printed other lines before it.
std::string reason_of(const JobResult& result) {
  const auto at = result.output.find("gantry-notebook: ");
  return first_line(at == std::string::npos ? result.output : result.output.substr(at));
}

std::string html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string filled(std::string text, std::string_view slot, std::string_view value) {
  const auto at = text.find(slot);
  return at == std::string::npos ? text : text.replace(at, slot.size(), value);
}

std::string_view state_of(const GpuList& sight) {
  if (!sight.looked) return "unknown";
  if (sight.result.hung) return "hung";
  return sight.result.status == 0 ? "ok" : "fault";
}

std::string_view outcome_of(const JobResult& result) {
  if (result.hung) return "hung";
  return result.status == 0 ? "passed" : "failed";
}

std::string devices_of(const GpuList& sight) {
  std::string list;
  if (sight.result.status != 0) return list;
  for (const auto line : split(trim(sight.result.output), '\n'))
    list.append(list.empty() ? "" : ", ").append(json::quote(line));
  return list;
}

std::string last_of(const std::optional<FinishedRun>& last) {
  if (!last) return "null";
  return fmt::format(
      R"({{"number": {}, "result": "{}", "answered": {}, "seconds": {:.3f}, "output": {}}})",
      last->number, outcome_of(last->result), last->answered,
      static_cast<double>(last->result.took.count()) / 1000.0, json::quote(last->result.output));
}

}  // namespace

std::string describe_verdict(const PageState& view) {
  if (view.running) return fmt::format("Run {} is on the GPU.", view.runs);
  if (!view.last) {
    return view.sight.result.status == 0
               ? "Nothing has run yet."
               : fmt::format("GPU fault: no GPU can be used: {}.", reason_of(view.sight.result));
  }
  const FinishedRun& run = *view.last;
  if (run.result.hung)
    return fmt::format(
        "GPU fault: the driver did not answer run {} within {} s. The connection works.",
        run.number, run.result.took.count() / 1000);
  if (run.result.status != 0)
    return fmt::format("GPU fault: run {} failed: {}. The connection works.", run.number,
                       reason_of(run.result));
  if (!run.answered)
    return fmt::format(
        "Dropped connection: run {} passed on the GPU, but the browser disconnected before the "
        "answer. Check the proxy or the network between browser and pod, not the GPU.",
        run.number);
  return fmt::format("Run {} passed and was answered: GPU and connection work.", run.number);
}

std::string status_json(const PageState& view) {
  return fmt::format(
      "{{\n  \"gpu\": {{\"state\": \"{}\", \"devices\": [{}], \"error\": {}}},\n"
      "  \"running\": {},\n  \"last\": {},\n  \"verdict\": {}\n}}\n",
      state_of(view.sight), devices_of(view.sight),
      view.sight.result.status == 0 ? "null" : json::quote(view.sight.result.output), view.running,
      last_of(view.last), json::quote(describe_verdict(view)));
}

std::string render_page(const PageState& view) {
  std::string page = filled(kPage, "{{gpus}}", html(view.sight.result.output));
  page = filled(std::move(page), "{{output}}", view.last ? html(view.last->result.output) : "");
  return filled(std::move(page), "{{verdict}}", html(describe_verdict(view)));
}

}  // namespace gantry::workload
