// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "cluster/admission/admission.hpp"
#include "cluster/admission/containers_internal.hpp"
#include "cluster/podspec/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::admission {
namespace {

// Denied is for users that may not do it; all other errors are for the author of the object.
AdmissionResult refused(const Error& error) {
  return {.answer = error.code() == Errc::Denied ? Admission::Denied : Admission::Invalid,
          .message = error.text(),
          .cause = error.cause(),
          .remedy = error.remedy()};
}

bool is_trusted(const json::Value& request, const Policy& policy) {
  const auto user = request["userInfo"]["username"].string();
  return user && !user->empty() &&
         std::find(policy.trusted.begin(), policy.trusted.end(), *user) != policy.trusted.end();
}

bool is_kubelet(const json::Value& request) {
  const auto groups = request["userInfo"]["groups"].strings();
  return std::find(groups.begin(), groups.end(), "system:nodes") != groups.end();
}

// The first placement annotation that differs from `old`, which may be absent; "" if there is none.
std::string changed_placement_annotation(const json::Value& object, const json::Value& old) {
  const auto now = object["metadata"]["annotations"];
  const auto before = old["metadata"]["annotations"];
  for (const auto member : now) {
    auto key = member.key();
    if (podspec::is_placement_annotation(key) && before[key].string() != member.string())
      return key;
  }
  for (const auto member : before) {
    auto key = member.key();
    if (podspec::is_placement_annotation(key) && !now[key]) return key;
  }
  return "";
}

AdmissionResult deny_placement_annotation(const std::string& key, std::string_view what) {
  return refused(
      Error(Errc::Denied,
            fmt::format("annotation {} is written by the scheduler and says which GPUs a pod has",
                        printable(key.substr(0, 64))))
          .advise(what));
}

void set_scheduler_name(const json::Value& pod, const Policy& policy, PodDraft& draft) {
  if (policy.scheduler_name.empty()) return;
  const auto named = pod["spec"]["schedulerName"].string().value_or("");
  if (named == policy.scheduler_name) return;
  if (named.empty() || named == "default-scheduler") {
    draft.edits.set({"spec", "schedulerName"}, json::quote(policy.scheduler_name));
    return;
  }
  draft.warnings.push_back(
      fmt::format("schedulerName {} is kept, but {} schedules shared GPUs: another scheduler may "
                  "choose a node without room",
                  printable(named.substr(0, 64)), policy.scheduler_name));
}

// An engine without CDI gives a container its share through our runtime, which this class selects.
void set_runtime_class(const json::Value& pod, const Policy& policy, PodDraft& draft) {
  const auto& wanted = policy.runtime_class;
  if (wanted.empty()) return;
  const auto named = pod["spec"]["runtimeClassName"].string().value_or("");
  if (named == wanted) return;
  if (named.empty()) {
    draft.edits.set({"spec", "runtimeClassName"}, json::quote(wanted));
    return;
  }
  draft.warnings.push_back(
      fmt::format("runtimeClassName {} is kept, but nodes whose engine has no CDI give shares only "
                  "to pods of the class {}",
                  printable(named.substr(0, 64)), wanted));
}

// Limits of a share cannot be enforced in a privileged container.
Status check_privileged(const json::Value& pod, const podspec::PodRequest& ask) {
  if (!ask.shared()) return {};
  for (const auto& place : containers_of(pod)) {
    const bool privileged =
        place.container["securityContext"]["privileged"].boolean().value_or(false);
    const auto name = place.container["name"].string();
    const bool asks =
        std::any_of(ask.containers.begin(), ask.containers.end(),
                    [&](const podspec::ContainerRequest& one) { return one.container == name; });
    if (!privileged || !asks) continue;
    return Error(
               Errc::Denied,
               fmt::format("container \"{}\" is privileged, so GPU limits cannot be enforced in it",
                           place.name()))
        .advise(
            fmt::format("remove securityContext.privileged, or ask for whole GPUs with {}: 1 alone",
                        podspec::kNvidiaGpu));
  }
  return {};
}

Status check_create(const json::Value& pod) {
  const auto node = pod["spec"]["nodeName"].string().value_or("");
  if (node.empty()) return {};
  return Error(Errc::Denied, "spec.nodeName bypasses the scheduler, which assigns the GPUs")
      .advise(fmt::format("write nodeSelector: {{kubernetes.io/hostname: {}}}",
                          printable(node.substr(0, 253))));
}

Status fill_in(const json::Value& pod, const Policy& policy, PodDraft& draft) {
  GANTRY_CHECK(check_create(pod));
  GANTRY_CHECK(fill_resources(pod, policy, draft));
  remove_driver_volumes(pod, draft);
  set_scheduler_name(pod, policy, draft);
  set_runtime_class(pod, policy, draft);
  return {};
}

// Checks the pod in its final form: its request and its warnings.
Status examine(const json::Document& pod, PodDraft& draft) {
  GANTRY_TRY(const auto text, draft.edits.applied(pod));
  GANTRY_TRY(const auto filled, json::Document::parse(text));
  GANTRY_TRY(const auto ask, podspec::parse_request(filled.root()));
  if (!ask) {
    draft.warnings.emplace_back("the pod names GPU resources but asks for no GPU");
    return {};
  }
  GANTRY_CHECK(check_privileged(filled.root(), *ask));
  add_warnings(filled.root(), *ask, draft.warnings);
  return {};
}

AdmissionResult judge_create(const json::Value& request, const Policy& policy) {
  const auto object = request["object"];
  if (!has_gpu_resources(object)) return {};
  if (object["metadata"]["annotations"]["kubernetes.io/config.mirror"] && is_kubelet(request))
    return {};
  const auto key = changed_placement_annotation(object, {});
  if (!key.empty()) return deny_placement_annotation(key, "leave it out");
  auto pod = json::Document::parse(std::string(object.raw()));
  if (!pod.ok()) return refused(pod.error());
  PodDraft draft;
  auto status = fill_in(pod->root(), policy, draft);
  if (status.ok()) status = examine(*pod, draft);
  if (!status.ok()) return refused(status.error());
  return {.patch = draft.edits.empty() ? "" : draft.edits.text(),
          .warnings = std::move(draft.warnings)};
}

// Compares what counts once a pod has its GPUs.
bool same_ask(const podspec::PodRequest& one, const podspec::PodRequest& other) {
  return one.contract == other.contract && one.containers == other.containers &&
         one.share_priority == other.share_priority;
}

AdmissionResult judge_asks(const json::Value& object, const json::Value& old) {
  const auto before = podspec::parse_request(old);
  const auto now = podspec::parse_request(object);
  // It bypassed the webhook; a pod that cannot be updated would help no one.
  if (!before.ok()) return {};
  if (!now.ok()) return refused(now.error());
  if (old["spec"]["nodeName"].string().value_or("").empty()) return {};
  const bool same = *before && *now ? same_ask(**before, **now) : !*before && !*now;
  if (same) return {};
  return refused(
      Error(Errc::Invalid, "the GPU request of a pod cannot change while the pod has GPUs")
          .advise("delete the pod and create it with the new numbers"));
}

void warn_of_debuggers(const json::Value& object, std::vector<std::string>& warnings) {
  for (const auto container : object["spec"]["ephemeralContainers"]) {
    if (!container["securityContext"]["privileged"].boolean().value_or(false)) continue;
    warnings.push_back(
        fmt::format("debug container \"{}\" is privileged and sees every GPU of its node",
                    printable(container["name"].string().value_or("").substr(0, 64))));
  }
}

AdmissionResult judge_update(const json::Value& request, const Policy& policy) {
  const auto object = request["object"];
  const auto old = request["oldObject"];
  if (!has_gpu_resources(object) && !has_gpu_resources(old)) return {};
  const auto key = changed_placement_annotation(object, old);
  if (!key.empty() && !is_trusted(request, policy))
    return deny_placement_annotation(key, "do not change it");
  auto verdict = judge_asks(object, old);
  if (verdict.answer == Admission::Allowed &&
      request["subResource"].string() == "ephemeralcontainers")
    warn_of_debuggers(object, verdict.warnings);
  return verdict;
}

AdmissionResult judge_binding(const json::Value& request, const Policy& policy) {
  const auto key = changed_placement_annotation(request["object"], {});
  if (key.empty() || is_trusted(request, policy)) return {};
  return deny_placement_annotation(key, "leave it out");
}

}  // namespace

AdmissionResult admit_request(const json::Value& request, const Policy& policy) {
  const auto operation = request["operation"].string();
  const auto resource = request["resource"]["resource"].string();
  const auto part = request["subResource"].string().value_or("");
  if (!request["resource"]["group"].string().value_or("").empty()) return {};
  const bool binding = resource == "bindings" || (resource == "pods" && part == "binding");
  if (binding) return operation == "CREATE" ? judge_binding(request, policy) : AdmissionResult{};
  if (resource != "pods") return {};
  if (operation == "UPDATE") return judge_update(request, policy);
  return operation == "CREATE" && part.empty() ? judge_create(request, policy) : AdmissionResult{};
}

}  // namespace gantry::admission
