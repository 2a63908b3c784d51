// SPDX-License-Identifier: Apache-2.0
#include "node/why/manifest.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/yaml/value.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/webhook/admission.hpp"
#include "node/why/pod_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::why {
namespace {

constexpr std::size_t kDocuments = 256;

std::string json_of(const yaml::Value& value) {
  using Kind = yaml::Value::Kind;
  std::string text;
  switch (value.kind) {
    case Kind::Null: return "null";
    case Kind::Scalar:
      if (!value.quoted && (value.text == "true" || value.text == "false")) return value.text;
      return json::quote(value.text);
    case Kind::List:
      for (const auto& item : value.items) text += (text.empty() ? "" : ",") + json_of(item);
      return "[" + text + "]";
    case Kind::Map: break;
  }
  for (const auto& entry : value.entries)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", json::quote(entry.key),
                        json_of(entry.value));
  return "{" + text + "}";
}

std::vector<std::string> documents_in(std::string_view text) {
  std::vector<std::string> found(1);
  for (const auto line : lines(text)) {
    if (line == "---" || line.starts_with("--- ")) {
      found.emplace_back();
    } else {
      found.back() += fmt::format("{}\n", line);
    }
  }
  return found;
}

// The object with spec.containers in what is applied.
json::Value pod_in(json::Value object) {
  const auto spec = object["spec"];
  for (const auto pod : {object, spec["template"], spec["jobTemplate"]["spec"]["template"]}) {
    if (pod["spec"]["containers"]) return pod;
  }
  return {};
}

Step webhook_step(const webhook::AdmissionResult& refused) {
  return {.id = "spec.webhook",
          .what = "The webhook lets it in",
          .verdict = StepStatus::Failed,
          .read = refused.cause,
          .cause = refused.cause,
          .remedy = refused.remedy};
}

// What the webhook of a cluster with shared GPUs would say.
std::vector<Step> webhook_steps(json::Value pod) {
  std::vector<Step> steps;
  const auto request = json::Document::parse(fmt::format(
      R"({{"operation":"CREATE","resource":{{"resource":"pods"}},"object":{}}})", pod.raw()));
  if (!request.ok()) return steps;
  const auto verdict = webhook::admit_request(request->root(), {});
  if (verdict.answer != webhook::Admission::Allowed) {
    steps.push_back(webhook_step(verdict));
    // Whole GPUs work in clusters without our webhook, and then nothing rejects the pod.
    if (const auto ask = podspec::parse_request(pod); !ask.ok() || !*ask || !(*ask)->shared())
      steps.back().verdict = StepStatus::Warning;
    return steps;
  }
  for (const auto& warning : webhook::annotation_warnings(pod)) {
    steps.push_back({.id = "spec.annotation",
                     .what = "Gantry knows its annotations",
                     .verdict = StepStatus::Warning,
                     .read = warning,
                     .cause = "",
                     .remedy = "Gantry's docs/scheduling.md lists the annotations"});
  }
  return steps;
}

void add_chain(std::vector<Explanation>& explanations, json::Value object,
               const std::string& file) {
  for (const auto item : object["items"]) add_chain(explanations, item, file);
  const auto pod = pod_in(object);
  if (!pod) return;
  explanations.push_back(
      {.subject = fmt::format("{} {} of {}", object["kind"].string().value_or("pod"),
                              object["metadata"]["name"].string().value_or("?"), file),
       .steps = spec_steps(pod)});
  auto& explanation = explanations.back();
  if (explanation.first_failed() != nullptr) return;  // the webhook would say the same again
  for (auto& step : webhook_steps(pod)) explanation.steps.push_back(std::move(step));
}

}  // namespace

Result<std::vector<Explanation>> why_manifest(std::string_view text, const std::string& file) {
  const auto documents = documents_in(text);
  if (documents.size() > kDocuments)
    return Error(Errc::Invalid, fmt::format("{} has more than {} documents", file, kDocuments));
  std::vector<Explanation> explanations;
  for (const auto& document : documents) {
    GANTRY_TRY(const auto value, yaml::parse(document, file));
    GANTRY_TRY(const auto object, json::Document::parse(json_of(value)));
    add_chain(explanations, object.root(), file);
  }
  if (explanations.empty())
    return Error(Errc::NotFound,
                 fmt::format("{} has no pod: it has no object with spec.containers", file));
  return explanations;
}

}  // namespace gantry::why
