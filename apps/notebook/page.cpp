// SPDX-License-Identifier: Apache-2.0
#include "notebook/page.hpp"

#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "notebook/page_internal.hpp"

#include <fmt/format.h>

#include <optional>

namespace gantry::workload {
namespace {

// The rest of the line that begins with `name`; "" if there is none.
std::string line_after(std::string_view text, std::string_view name) {
  for (const auto line : lines(text)) {
    if (trim(line).starts_with(name)) return std::string(trim(trim(line).substr(name.size())));
  }
  return "";
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

void write_gpu(json::Writer& out, const GpuList& sight) {
  const bool ok = sight.result.status == 0;
  out.object("gpu", [&] {
    out.member("state", state_of(sight));
    out.array("devices", split(ok ? trim(sight.result.output) : "", '\n'));
    out.member("error", ok ? std::nullopt : std::optional(sight.result.output));
  });
}

void write_last(json::Writer& out, const FinishedRun& last) {
  out.object("last", [&] {
    out.member("number", last.number);
    out.member("result", outcome_of(last.result));
    out.member("answered", last.answered);
    out.raw_member("seconds",
                   fmt::format("{:.3f}", static_cast<double>(last.result.took.count()) / 1000.0));
    out.member("output", last.result.output);
  });
}

}  // namespace

// The program may have printed other lines before its error.
std::string describe_failure(const JobResult& result) {
  if (result.hung)
    return fmt::format("the driver did not answer within {} s.", result.took.count() / 1000);
  const auto at = result.output.find("gantry-notebook: ");
  const std::string_view text =
      std::string_view(result.output).substr(at == std::string::npos ? 0 : at);
  auto message = fmt::format("{}.", text.substr(0, text.find('\n')));
  const auto cause = line_after(text, "cause:");
  const auto remedy = line_after(text, "remedy:");
  if (!cause.empty()) message += fmt::format(" Cause: {}.", cause);
  if (!remedy.empty()) message += fmt::format(" Remedy: {}", remedy);
  return message;
}

std::string describe_verdict(const PageState& view) {
  if (view.running) return fmt::format("Run {} is on the GPU.", view.runs);
  const auto& sight = view.sight.result;
  const bool blind = view.sight.looked && sight.status != 0;
  if (!view.last) {
    return blind ? fmt::format("GPU fault: no GPU can be used: {}", describe_failure(sight))
                 : "Nothing has run yet.";
  }
  const FinishedRun& run = *view.last;
  if (run.result.status != 0)
    return fmt::format("GPU fault, the connection works: run {} failed: {}", run.number,
                       describe_failure(run.result));
  if (blind)
    return fmt::format("GPU fault: run {} passed, but since then no GPU can be used: {}",
                       run.number, describe_failure(sight));
  if (!run.answered)
    return fmt::format(
        "Dropped connection: run {} passed on the GPU, but the browser disconnected before the "
        "answer. Check the proxy or the network between browser and pod, not the GPU.",
        run.number);
  return fmt::format("Run {} passed and was answered: GPU and connection work.", run.number);
}

std::string status_json(const PageState& view) {
  json::Writer out(json::Layout::Rows);
  out.object([&] {
    write_gpu(out, view.sight);
    out.member("running", view.running);
    view.last ? write_last(out, *view.last) : out.member("last", nullptr);
    out.member("verdict", describe_verdict(view));
  });
  return out.text() + "\n";
}

std::string render_page(const PageState& view) {
  std::string page = filled(kPage, "{{gpus}}", html(view.sight.result.output));
  page = filled(std::move(page), "{{output}}", view.last ? html(view.last->result.output) : "");
  return filled(std::move(page), "{{verdict}}", html(describe_verdict(view)));
}

}  // namespace gantry::workload
