// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/admission.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::admission {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const Policy kPolicy{.trusted = {"scheduler", "agent"}};

struct Update {
  std::string before;  // annotations
  std::string after;
  std::string user = "eve";
  std::string part = "";
  std::string node = "n";
  std::string limits = R"("aliyun.com/gpu-mem":8)";
  std::string new_limits = R"("aliyun.com/gpu-mem":8)";
  std::string more = "";  // members of the new spec
};

AdmissionResult admitted(const Update& update) {
  const auto pod = [&](const std::string& annotations, const std::string& limits,
                       const std::string& more) {
    return fmt::format(
        R"({{"metadata":{{"annotations":{{{}}}}},"spec":{{"nodeName":"{}","containers":[{{"name":"a","resources":{{"limits":{{{}}}}}}}]{}}}}})",
        annotations, update.node, limits, more);
  };
  const auto request = gantry::test::parsed(fmt::format(
      R"({{"operation":"UPDATE","resource":{{"group":"","resource":"pods"}},"subResource":"{}","userInfo":{{"username":"{}"}},"object":{},"oldObject":{}}})",
      update.part, update.user, pod(update.after, update.new_limits, update.more),
      pod(update.before, update.limits, "")));
  return admit_request(request.root(), kPolicy);
}

// NOLINTNEXTLINE(readability-identifier-naming): constant, though not constexpr
const std::string kHere = R"("gantry.dev/placement":"here")";
// NOLINTNEXTLINE(readability-identifier-naming): constant, though not constexpr
const std::string kThere = R"("gantry.dev/placement":"there")";

TEST(Update, OfWhereAPodIsIsForTheSchedulerAndTheAgentAlone) {
  for (const auto* part : {"", "status", "resize", "ephemeralcontainers"}) {
    for (const auto& [before, after] :
         {std::pair{kHere, kThere}, {kHere, std::string()}, {std::string(), kThere}}) {
      const auto verdict = admitted({.before = before, .after = after, .part = part});
      EXPECT_EQ(verdict.answer, Admission::Denied) << part << after;
      EXPECT_THAT(verdict.message, HasSubstr("which GPUs a pod has; do not change it"));
      EXPECT_EQ(admitted({.before = before, .after = after, .user = "agent", .part = part}).answer,
                Admission::Allowed);
    }
  }
}

TEST(Update, OfSomethingElseIsAnybodys) {
  const auto verdict = admitted({.before = kHere, .after = kHere + R"(,"note":"x")"});
  EXPECT_EQ(verdict.answer, Admission::Allowed) << verdict.message;
  EXPECT_EQ(verdict.patch, "");
  EXPECT_THAT(verdict.warnings, IsEmpty());
}

TEST(Update, OfAPodWithoutGpusIsNotOurs) {
  EXPECT_EQ(admitted({.after = kThere, .limits = R"("cpu":1)", .new_limits = R"("cpu":2)"}).answer,
            Admission::Allowed);
}

TEST(Update, CannotChangeWhatAPodAsksOnceItHasANode) {
  const std::string compute = R"("gantry.dev/compute":"30")";
  const auto verdict = admitted({.before = compute, .after = R"("gantry.dev/compute":"60")"});
  EXPECT_EQ(verdict.answer, Admission::Invalid);
  EXPECT_THAT(verdict.message, HasSubstr("delete the pod and create it with the new numbers"));
  EXPECT_EQ(admitted({.before = compute, .after = ""}).answer, Admission::Invalid);
  EXPECT_EQ(admitted({.after = R"("gantry.dev/priority":"high")"}).answer, Admission::Invalid);
  EXPECT_EQ(
      admitted({.before = compute, .after = R"("gantry.dev/compute":"60")", .node = ""}).answer,
      Admission::Allowed);
  EXPECT_EQ(admitted({.after = R"("gantry.dev/compute":"600")", .node = ""}).answer,
            Admission::Invalid);
}

TEST(Resize, OfAShareIsRefusedAndOfMemoryIsNot) {
  EXPECT_EQ(admitted({.part = "resize", .new_limits = R"("aliyun.com/gpu-mem":16)"}).answer,
            Admission::Invalid);
  EXPECT_EQ(
      admitted({.part = "resize", .new_limits = R"("aliyun.com/gpu-mem":8,"memory":"2Gi")"}).answer,
      Admission::Allowed);
}

TEST(Update, OfAPodThatCameInBadIsNotBlocked) {
  const auto bad = R"("nvidia.com/gpu":"0.5")";
  EXPECT_EQ(admitted({.after = R"("note":"x")", .limits = bad, .new_limits = bad}).answer,
            Admission::Allowed);
}

TEST(DebugContainer, IsLetInWithAWarningWhereItIsPrivileged) {
  EXPECT_THAT(
      admitted({.part = "ephemeralcontainers", .more = R"(,"ephemeralContainers":[{"name":"d"}])"})
          .warnings,
      IsEmpty());
  const auto verdict = admitted(
      {.part = "ephemeralcontainers",
       .more = R"(,"ephemeralContainers":[{"name":"d","securityContext":{"privileged":true}}])"});
  EXPECT_EQ(verdict.answer, Admission::Allowed);
  EXPECT_THAT(verdict.warnings, Contains(HasSubstr("debug container \"d\" is privileged")));
}

AdmissionResult bound(const std::string& resource, const std::string& annotations,
                      const std::string& user) {
  const auto request = gantry::test::parsed(fmt::format(
      R"({{"operation":"CREATE","resource":{{"group":"","resource":{}}},"userInfo":{{"username":"{}"}},)"
      R"("object":{{"metadata":{{"annotations":{{{}}}}},"target":{{"name":"n"}}}}}})",
      resource, user, annotations));
  return admit_request(request.root(), kPolicy);
}

TEST(Binding, CarriesAPlacementFromTheSchedulerAlone) {
  for (const auto* resource : {R"("pods"},"subResource":"binding","x":{"y":"")", R"("bindings")"}) {
    EXPECT_EQ(bound(resource, kHere, "scheduler").answer, Admission::Allowed);
    EXPECT_EQ(bound(resource, kHere, "eve").answer, Admission::Denied);
    EXPECT_EQ(bound(resource, "", "eve").answer, Admission::Allowed);
  }
}

TEST(Judge, LeavesOtherThingsAlone) {
  for (
      const auto* text :
      {"{}", "[]", "null", R"({"operation":"DELETE","resource":{"resource":"pods"}})",
       R"({"operation":"CREATE","resource":{"resource":"pods"}})",
       R"({"operation":"CREATE","resource":{"resource":"jobs","group":"batch"},"object":{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"x"}}}]}}})"})
    EXPECT_EQ(admit_request(gantry::test::parsed(text).root(), kPolicy).answer, Admission::Allowed)
        << text;
}

}  // namespace
}  // namespace gantry::admission
