// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/manifest.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "cluster/admission/admission.hpp"
#include "cluster/explain/manifest_objects.hpp"
#include "cluster/explain/pod_security.hpp"
#include "cluster/explain/pod_steps.hpp"
#include "cluster/explain/pod_templates.hpp"
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace gantry::explain {
namespace {

constexpr std::size_t kMaxPods = 1024;  // of one manifest

// In these, a limit outside the pod template is misplaced. Other objects may have a use for it.
constexpr std::array<std::string_view, 7> kBuiltInKinds{
    "Pod", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob"};

struct ManifestPod {
  std::string subject;
  std::string kind;        // of the object
  json::Value object;      // for limits outside the template; absent: the pod alone
  std::string name_space;  // "": kubectl decides
  json::Document pod;
};

// The pod security level of each Namespace that the manifest makes; "" if it enforces none.
using SecurityLevels = std::map<std::string, std::string, std::less<>>;

Step webhook_step(const admission::AdmissionResult& refused) {
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
  json::Writer review;
  review.object([&] {
    review.member("operation", "CREATE");
    review.object("resource", [&] { review.member("resource", "pods"); });
    review.raw_member("object", pod.raw());
  });
  const auto request = json::Document::parse(review.text());
  if (!request.ok()) return steps;
  const auto verdict = admission::admit_request(request->root(), {});
  if (verdict.answer != admission::Admission::Allowed) {
    steps.push_back(webhook_step(verdict));
    // Whole GPUs work in clusters without our webhook, and then nothing rejects the pod.
    if (const auto ask = podspec::parse_request(pod); !ask.ok() || !*ask || !(*ask)->shared())
      steps.back().verdict = StepStatus::Warning;
    return steps;
  }
  for (const auto& warning : admission::annotation_warnings(pod)) {
    steps.push_back({.id = "spec.annotation",
                     .what = "Gantry knows its annotations",
                     .verdict = StepStatus::Warning,
                     .read = warning,
                     .cause = "",
                     .remedy = "Gantry's docs/scheduling.md lists the annotations"});
  }
  return steps;
}

void add_pods(std::vector<ManifestPod>& pods, json::Value object, const std::string& file) {
  if (object["items"].is(json::Kind::Array)) {  // a List of any kind
    for (const auto item : object["items"]) add_pods(pods, item, file);
    return;
  }
  const auto kind = object["kind"].string().value_or("pod");
  const auto name = object["metadata"]["name"].string().value_or("?");
  const bool built_in =
      std::find(kBuiltInKinds.begin(), kBuiltInKinds.end(), kind) != kBuiltInKinds.end();
  auto templates = pod_templates(object, kMaxPods + 1 - std::min(kMaxPods, pods.size()));
  const bool several = templates.size() > 1;
  for (auto& found : templates) {
    const auto place = several ? fmt::format(" ({})", found.path) : "";
    pods.push_back({.subject = fmt::format("{} {}{} of {}", kind, name, place, file),
                    .kind = kind,
                    .object = built_in ? object : json::Value(),
                    .name_space = object["metadata"]["namespace"].string_or_empty(),
                    .pod = std::move(found.pod)});
  }
}

bool asks_for_gpus(const ManifestPod& pod) {
  return !requested_devices(pod.pod.root()).empty();
}

void add_levels(SecurityLevels& levels, json::Value object) {
  for (const auto item : object["items"]) add_levels(levels, item);
  if (object["kind"].string() != "Namespace") return;
  const auto metadata = object["metadata"];
  levels[metadata["name"].string_or_empty()] = metadata["labels"][kEnforceLabel].string_or_empty();
}

std::optional<Step> security_step(const ManifestPod& pod, const SecurityLevels& levels) {
  const auto level = levels.find(pod.name_space);
  return pod_security_step(pod.pod.root(), pod.name_space,
                           level == levels.end() ? "" : level->second);
}

Explanation explain_pod(const ManifestPod& pod, bool others_ask, const SecurityLevels& levels) {
  const auto root = pod.pod.root();
  Explanation explanation{
      .subject = pod.subject,
      .steps =
          spec_steps(root, {.kind = pod.kind, .object = pod.object, .others_ask = others_ask})};
  if (explanation.first_failed() != nullptr) return explanation;  // the webhook says the same
  for (auto& step : webhook_steps(root)) explanation.steps.push_back(std::move(step));
  if (auto step = security_step(pod, levels)) explanation.steps.push_back(*std::move(step));
  return explanation;
}

}  // namespace

Result<std::vector<Explanation>> explain_manifest(std::string_view text, const std::string& file) {
  GANTRY_TRY(const auto objects, manifest_objects(text, file));
  std::vector<ManifestPod> pods;
  SecurityLevels levels;
  for (const auto& object : objects) {
    add_pods(pods, object.root(), file);
    add_levels(levels, object.root());
  }
  if (pods.size() > kMaxPods)
    return Error(Errc::Invalid, fmt::format("{} has more than {} pods", file, kMaxPods));
  if (pods.empty())
    return Error(Errc::NotFound,
                 fmt::format("{} has no pod: it has no object with spec.containers", file));
  const auto asking = std::count_if(pods.begin(), pods.end(), asks_for_gpus);
  std::vector<Explanation> explanations;
  for (const auto& pod : pods)
    explanations.push_back(explain_pod(pod, asking > (asks_for_gpus(pod) ? 1 : 0), levels));
  return explanations;
}

}  // namespace gantry::explain
