// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/pod_security.hpp"

#include "base/core/text.hpp"
#include "cluster/explain/node_rejection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gantry::explain {
namespace {

constexpr std::string_view kViolates = "violates PodSecurity \"";

// Of the level "baseline": capabilities.add may have these alone.
constexpr std::array<std::string_view, 13> kBaselineCapabilities{
    "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
// What only the level "privileged" allows, as the API server writes it.
constexpr std::array<std::string_view, 5> kBaselineRules{
    "host namespaces", "hostPath", "privileged (", "hostPort", "non-default capabilities"};

void add_container_violations(std::vector<std::string>& found, json::Value container) {
  const auto name = container["name"].string_or_empty();
  const auto security = container["securityContext"];
  if (security["privileged"].boolean() == true)
    found.push_back(fmt::format("privileged container {}", name));
  for (const auto& added : security["capabilities"]["add"].strings()) {
    if (std::find(kBaselineCapabilities.begin(), kBaselineCapabilities.end(), added) ==
        kBaselineCapabilities.end())
      found.push_back(fmt::format("capability {} of container {}", added, name));
  }
  for (const auto port : container["ports"]) {
    if (port["hostPort"]) found.push_back(fmt::format("hostPort of container {}", name));
  }
}

std::string privileged_label(std::string_view name_space) {
  return fmt::format("kubectl label namespace {} {}=privileged --overwrite",
                     is_plain_word(name_space) ? name_space : "NAME", kEnforceLabel);
}

// An empty name is that of a namespace which the manifest leaves to kubectl.
std::string namespace_words(std::string_view name_space) {
  return name_space.empty() ? "its namespace" : fmt::format("namespace {}", name_space);
}

bool needs_privileged_level(const PodRefusal& refusal) {
  return refusal.level == "baseline" ||
         std::any_of(kBaselineRules.begin(), kBaselineRules.end(),
                     [&](std::string_view rule) { return contains(refusal.rules, rule); });
}

// A DaemonSet tries again ever more rarely; a restart does it at once.
std::string restart_command(const PodRefusal& refusal) {
  if (refusal.kind != "DaemonSet" || !is_plain_word(refusal.name_space) ||
      !is_plain_word(refusal.name))
    return "";
  return fmt::format(" && kubectl -n {} rollout restart daemonset/{}", refusal.name_space,
                     refusal.name);
}

// Whether `name` is the controller, or a pod that it would have created.
bool is_about(const PodRefusal& refusal, std::string_view name) {
  return !refusal.name.empty() && name.starts_with(refusal.name) &&
         (name.size() == refusal.name.size() || name[refusal.name.size()] == '-');
}

}  // namespace

std::vector<std::string> baseline_violations(json::Value pod) {
  std::vector<std::string> found;
  const auto spec = pod["spec"];
  for (const auto* field : {"hostPID", "hostIPC", "hostNetwork"}) {
    if (spec[field].boolean() == true) found.emplace_back(field);
  }
  for (const auto volume : spec["volumes"]) {
    if (volume["hostPath"])
      found.push_back(fmt::format("hostPath volume {}", volume["name"].string_or_empty()));
  }
  for (const auto* list : {"initContainers", "containers"}) {
    for (const auto container : spec[list]) add_container_violations(found, container);
  }
  return found;
}

std::optional<Step> pod_security_step(json::Value pod, std::string_view name_space,
                                      std::string_view level) {
  // Nobody restricts kube-system: a cluster's own pods need the host.
  if (level == "privileged" || (level.empty() && name_space == "kube-system")) return std::nullopt;
  const auto violations = baseline_violations(pod);
  if (violations.empty()) return std::nullopt;
  const bool known = !level.empty();
  return Step{
      .id = "admission.pod-security",
      .what = "Its namespace lets it in",
      .verdict = known ? StepStatus::Failed : StepStatus::Warning,
      .read = fmt::format("{}", fmt::join(violations, ", ")),
      .cause =
          known ? fmt::format("{} enforces the pod security level {}, which forbids: {}",
                              namespace_words(name_space), level, fmt::join(violations, ", "))
                : fmt::format("if {} enforces the pod security level baseline or restricted, the "
                              "API server refuses this pod",
                              namespace_words(name_space)),
      .remedy = privileged_label(name_space)};
}

std::optional<PodRefusal> pod_refusal(json::Value event) {
  const auto message = event["message"].string_or_empty();
  const auto at = message.find(kViolates);
  if (at == std::string::npos) return std::nullopt;
  const auto rest = std::string_view(message).substr(at + kViolates.size());
  const auto end = rest.find("\": ");
  if (end == std::string_view::npos) return std::nullopt;
  const auto level = rest.substr(0, end);  // "baseline:latest"
  const auto object = event["involvedObject"];
  return PodRefusal{.kind = object["kind"].string_or_empty(),
                    .name_space = object["namespace"].string_or_empty(),
                    .name = object["name"].string_or_empty(),
                    .level = std::string(level.substr(0, level.find(':'))),
                    .rules = std::string(rest.substr(end + 3))};
}

std::string describe(const PodRefusal& refusal) {
  return fmt::format("{} enforces the pod security level {}, which forbids: {}",
                     namespace_words(refusal.name_space), refusal.level, refusal.rules);
}

std::string remedy_for_refusal(const PodRefusal& refusal) {
  if (!needs_privileged_level(refusal))
    return "write into the pod's spec: securityContext: {runAsNonRoot: true, seccompProfile: "
           "{type: RuntimeDefault}}, and into each container: securityContext: "
           "{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}";
  return privileged_label(refusal.name_space) + restart_command(refusal);
}

std::optional<Step> refused_pod_step(json::Value events, std::string_view name) {
  std::optional<PodRefusal> last;
  for (const auto event : events["items"]) {
    auto refusal = pod_refusal(event);
    if (refusal && is_about(*refusal, name)) last = std::move(refusal);
  }
  if (!last) return std::nullopt;
  return Step{
      .id = "admission.pod-security",
      .what = "Its namespace lets it in",
      .verdict = StepStatus::Failed,
      .read = fmt::format("{} {}/{}: FailedCreate", last->kind, last->name_space, last->name),
      .cause = describe(*last),
      .remedy = remedy_for_refusal(*last)};
}

}  // namespace gantry::explain
