// SPDX-License-Identifier: Apache-2.0
// A namespace that enforces a pod security level refuses installers and device plugins: the rule
// and the label are named, before a manifest is applied and afterwards.
#include "cluster/explain/pod_security.hpp"

#include "cluster/explain/daemon_sets.hpp"
#include "cluster/explain/manifest.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::explain {
namespace {

using test::parsed;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

// What a real API server writes.
constexpr const char* kBaseline =
    R"(pods \"plugin-x7\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true), hostPath volumes (volume \"host\"), privileged (container \"c\" must not set securityContext.privileged=true))";
constexpr const char* kRestricted =
    R"(pods \"plugin-x7\" is forbidden: violates PodSecurity \"restricted:v1.30\": allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true)";
constexpr const char* kRestrictedHost =
    R"(pods \"plugin-x7\" is forbidden: violates PodSecurity \"restricted:latest\": restricted volume types (volume \"host\" uses restricted volume type \"hostPath\"), runAsNonRoot != true)";

std::string event(const std::string& message, const std::string& kind = "DaemonSet",
                  const std::string& name = "plugin") {
  return fmt::format(R"({{"involvedObject":{{"kind":"{}","namespace":"gpu","name":"{}"}},
      "reason":"FailedCreate","message":"Error creating: {}"}})",
                     kind, name, message);
}

json::Document list(const std::string& items) {
  return parsed(R"({"items":[)" + items + "]}");
}

std::optional<Step> refused(const std::string& events, std::string_view name) {
  return refused_pod_step(list(events).root(), name);
}

TEST(PodSecurity, NamesEveryRuleOfBaselineThatAPodBreaks) {
  const auto pod = parsed(R"({"spec":{"hostPID":true,"hostIPC":false,
      "volumes":[{"name":"host","hostPath":{"path":"/"}},{"name":"tmp","emptyDir":{}}],
      "initContainers":[{"name":"install","securityContext":{"privileged":true}}],
      "containers":[{"name":"c","ports":[{"containerPort":80},{"containerPort":1,"hostPort":1}],
        "securityContext":{"privileged":false,"capabilities":{"add":["CHOWN","SYS_MODULE"]}}}]}})");
  EXPECT_THAT(baseline_violations(pod.root()),
              ElementsAre("hostPID", "hostPath volume host", "privileged container install",
                          "capability SYS_MODULE of container c", "hostPort of container c"));
  EXPECT_THAT(baseline_violations(parsed(R"({"spec":{"containers":[{"name":"c"}]}})").root()),
              IsEmpty());
}

// The steps of a DaemonSet in namespace `name_space`, below objects of the same manifest.
Explanation of_manifest(const std::string& name_space, const std::string& others = "",
                        const std::string& spec = "hostPID: true, ") {
  const auto explanations = explain_manifest(
      fmt::format("{}kind: DaemonSet\nmetadata: {{name: d{}}}\nspec: {{template: {{spec: {{{}"
                  "containers: [{{name: nvidia-driver-installer}}]}}}}}}\n",
                  others, name_space, spec),
      "f");
  EXPECT_TRUE(explanations.ok()) << explanations.error().text();
  return explanations.ok() ? explanations->front() : Explanation{};
}

std::string name_space(const std::string& level) {
  return "kind: Namespace\nmetadata: {name: gpu, labels: "
         "{pod-security.kubernetes.io/enforce: " +
         level + "}}\n---\n";
}

TEST(PodSecurity, AManifestIsDoubtfulWhereItsNamespaceIsNotKnown) {
  const auto somewhere = of_manifest("");
  EXPECT_EQ(somewhere.first_failed(), nullptr);
  ASSERT_NE(somewhere.first(StepStatus::Warning), nullptr);
  EXPECT_EQ(somewhere.first(StepStatus::Warning)->read, "hostPID");
  EXPECT_EQ(somewhere.first(StepStatus::Warning)->remedy,
            "kubectl label namespace NAME pod-security.kubernetes.io/enforce=privileged "
            "--overwrite");
  EXPECT_THAT(of_manifest(", namespace: gpu").first(StepStatus::Warning)->remedy,
              HasSubstr("kubectl label namespace gpu pod-security"));
  EXPECT_EQ(of_manifest(", namespace: kube-system").first(StepStatus::Warning), nullptr);
  EXPECT_EQ(of_manifest("", "", "").first(StepStatus::Warning), nullptr);
}

TEST(PodSecurity, AManifestWithItsNamespaceIsJudgedByItsLevel) {
  for (const auto* level : {"baseline", "restricted"}) {
    const auto refused = of_manifest(", namespace: gpu", name_space(level));
    ASSERT_NE(refused.first_failed(), nullptr) << level;
    EXPECT_EQ(
        refused.first_failed()->cause,
        fmt::format("namespace gpu enforces the pod security level {}, which forbids: hostPID",
                    level));
  }
  const auto open = of_manifest(", namespace: gpu", name_space("privileged"));
  EXPECT_EQ(open.first_failed(), nullptr);
  EXPECT_EQ(open.first(StepStatus::Warning), nullptr);
}

TEST(PodSecurity, TextOfAManifestDoesNotBecomeACommand) {
  EXPECT_THAT(of_manifest(", namespace: \"$(reboot)\"").first(StepStatus::Warning)->remedy,
              HasSubstr("kubectl label namespace NAME "));
}

TEST(PodSecurity, APodThatWasNeverCreatedIsExplainedByItsControllersEvent) {
  for (const auto* name : {"plugin", "plugin-x7"}) {
    const auto step = refused(event(kBaseline), name);
    ASSERT_TRUE(step) << name;
    EXPECT_EQ(step->verdict, StepStatus::Failed);
    EXPECT_THAT(step->cause, HasSubstr("namespace gpu enforces the pod security level baseline, "
                                       "which forbids: host namespaces (hostPID=true), hostPath"));
    EXPECT_EQ(step->remedy,
              "kubectl label namespace gpu pod-security.kubernetes.io/enforce=privileged "
              "--overwrite && kubectl -n gpu rollout restart daemonset/plugin");
  }
  EXPECT_THAT(refused(event(kBaseline, "ReplicaSet"), "plugin-x7")->remedy,
              EndsWith("--overwrite"));
  EXPECT_FALSE(refused(event(kBaseline), "plug"));
  EXPECT_FALSE(refused(event(kBaseline), "plugins"));
  EXPECT_FALSE(refused(event("exceeded quota: pods"), "plugin"));
  EXPECT_FALSE(refused(event("violates PodSecurity \\\"cut"), "plugin"));
  EXPECT_FALSE(refused("", "plugin"));
}

TEST(PodSecurity, WhereAPodCanMeetTheLevelItsNamespaceStaysAsItIs) {
  EXPECT_THAT(refused(event(kRestricted), "plugin")->remedy, HasSubstr("runAsNonRoot: true"));
  EXPECT_THAT(refused(event(kRestrictedHost), "plugin")->remedy,
              HasSubstr("enforce=privileged --overwrite"));
}

// Why a pod that waits for a GPU has none: `scheduled` of two wanted pods of the plugin exist.
Step waiting(int scheduled, const std::string& events) {
  GpuDaemonSets sets;
  sets.add(list(fmt::format(R"({{"metadata":{{"namespace":"gpu","name":"plugin"}},
      "spec":{{"template":{{"spec":{{"containers":[{{"name":"nvidia-device-plugin"}}]}}}}}},
      "status":{{"desiredNumberScheduled":2,"currentNumberScheduled":{}}}}})",
                            scheduled))
               .root());
  sets.compare(list(R"({"metadata":{"name":"a"}})").root());
  sets.add_refusals(list(events).root());
  Step step{.cause = "no node offers nvidia.com/gpu", .remedy = "gantry doctor"};
  sets.explain(step);
  return step;
}

TEST(PodSecurity, APluginWhosePodsAreRefusedIsNamed) {
  const auto step = waiting(0, event(kBaseline));
  EXPECT_THAT(step.cause,
              HasSubstr("no node offers nvidia.com/gpu: DaemonSet gpu/plugin lacks pods, because "
                        "namespace gpu enforces the pod security level baseline"));
  EXPECT_THAT(step.remedy, EndsWith("rollout restart daemonset/plugin"));
}

TEST(PodSecurity, ARefusalThatIsOverOrOfAnotherIsNotBlamed) {
  for (const auto& step :
       {waiting(2, event(kBaseline)), waiting(0, ""), waiting(0, event(kBaseline, "ReplicaSet")),
        waiting(0, event(kBaseline, "DaemonSet", "other"))})
    EXPECT_EQ(step.remedy, "gantry doctor");
}

}  // namespace
}  // namespace gantry::explain
