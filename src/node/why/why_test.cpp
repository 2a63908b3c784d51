// SPDX-License-Identifier: Apache-2.0
// `gantry why pod` against an API server: what it asks for, and what it makes of the answers.
#include "node/why/why.hpp"

#include "support/fake_api_server.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace gantry::why {
namespace {

using explain::Explanation;
using explain::StepStatus;
using testing::HasSubstr;

std::string pod(const std::string& name, const std::string& node, int gpus,
                const std::string& metadata = "") {
  return fmt::format(
      R"({{"metadata":{{"namespace":"ml","name":"{}"{}}},"spec":{{"nodeName":"{}","containers":[
      {{"name":"c","resources":{{"limits":{{"nvidia.com/gpu":"{}"}}}}}}]}},
      "status":{{"phase":"{}"}}}})",
      name, metadata, node, gpus, node.empty() ? "Pending" : "Running");
}

constexpr const char* kOfJob =
    R"(,"labels":{"batch.kubernetes.io/job-name":"train"},
    "annotations":{"batch.kubernetes.io/job-completion-index":"0"})";

class WhyPod : public testing::Test {
 protected:
  void put_pod(const std::string& name, const std::string& node, int gpus,
               const std::string& metadata = "") {
    server_.put("/api/v1/namespaces/ml/pods/" + name, pod(name, node, gpus, metadata));
  }
  void put_node(const std::string& capacity) {
    server_.put("/api/v1/nodes/a", fmt::format(R"({{"metadata":{{"name":"a",
        "labels":{{"gpu/nvidia":"P630"}}}},"status":{{"capacity":{{{0}}},"allocatable":{{{0}}}}}}})",
                                               capacity));
  }
  Result<Explanation> ask(const std::string& name, const std::string& notebook = "") {
    kube::ClientConfig access;
    access.server = *http::parse_url(server_.url());
    kube::Api api(access, std::chrono::seconds(20));
    WhyOptions options{.node = "elsewhere"};
    if (!notebook.empty()) options.notebook = *parse_jupyter_url(notebook);
    return why_pod(api, tree_.host(), "ml", name, options);
  }
  Errc error_of(const std::string& name) {
    const auto explanation = ask(name);
    EXPECT_FALSE(explanation.ok());
    return explanation.ok() ? Errc::Internal : explanation.error().code();
  }
  Explanation why(const std::string& name, const std::string& notebook = "") {
    auto explanation = ask(name, notebook);
    EXPECT_TRUE(explanation.ok()) << explanation.error().text();
    return explanation.ok() ? *std::move(explanation) : Explanation{};
  }

  test::FakeApiServer server_;
  test::Tree tree_;
};

TEST_F(WhyPod, AJobThatWaitsForOneOfItsPods) {
  put_node(R"("nvidia.com/gpu":"4")");
  put_pod("notebook", "a", 1);
  for (const auto* name : {"chief", "one", "two"}) put_pod(name, "a", 1, kOfJob);
  put_pod("three", "", 1, kOfJob);
  const auto waiting = why("three");
  ASSERT_NE(waiting.first_failed(), nullptr);
  EXPECT_THAT(waiting.first_failed()->cause,
              HasSubstr("ml/notebook has 1, other pods of its own group have 3"));
  EXPECT_THAT(waiting.steps.back().cause, HasSubstr("this pod holds up Job ml/train"));
  const auto chief = why("chief");
  EXPECT_EQ(chief.first_failed(), nullptr);
  ASSERT_NE(chief.first(StepStatus::Warning), nullptr);
  EXPECT_EQ(chief.first(StepStatus::Warning)->remedy, "gantry why pod ml/three");
}

TEST_F(WhyPod, ADaemonSetWithoutANodeIsNamed) {
  put_node("");
  put_pod("waits", "", 1);
  EXPECT_EQ(why("waits").first_failed()->cause, "no node offers nvidia.com/gpu");
  server_.put(
      "/apis/apps/v1/namespaces/kube-system/daemonsets/plugin",
      R"({"metadata":{"namespace":"kube-system","name":"plugin"},"spec":{"template":{"spec":{
      "nodeSelector":{"gpu/nividia":"P630"},"containers":[{"name":"nvidia-device-plugin"}]}}}})");
  EXPECT_THAT(why("waits").first_failed()->cause,
              HasSubstr("DaemonSet kube-system/plugin runs on no node, because no node has the "
                        "label that it asks for: gpu/nividia=P630; a has gpu/nvidia=P630"));
}

TEST_F(WhyPod, APodThatItsNamespaceRefusesIsExplainedAlthoughItDoesNotExist) {
  const auto put_event = [&](const std::string& name) {
    server_.put("/api/v1/namespaces/ml/events/" + name + ".1", fmt::format(R"({{"involvedObject":{{
      "kind":"DaemonSet","namespace":"ml","name":"{}"}},"reason":"FailedCreate",
      "message":"pods \"{}-x\" is forbidden: violates PodSecurity \"baseline:latest\": hostPath"}})",
                                                                           name, name));
  };
  put_event("installer");
  const auto refused = why("installer-x");
  ASSERT_NE(refused.first_failed(), nullptr);
  EXPECT_EQ(refused.first_failed()->id, "admission.pod-security");
  EXPECT_THAT(refused.first_failed()->remedy, HasSubstr("kubectl label namespace ml pod-security"));
  EXPECT_EQ(error_of("other"), Errc::NotFound);
  server_.put("/api/v1/namespaces/ml", R"({"metadata":{"name":"ml","labels":{
      "pod-security.kubernetes.io/enforce":"privileged"}}})");
  EXPECT_EQ(error_of("installer-x"), Errc::NotFound);

  put_node("");
  put_pod("waits", "", 1);
  put_event("plugin");
  server_.put("/apis/apps/v1/namespaces/ml/daemonsets/plugin",
              R"({"metadata":{"namespace":"ml","name":"plugin"},"spec":{"template":{"spec":{
      "containers":[{"name":"nvidia-device-plugin"}]}}},"status":{"desiredNumberScheduled":1}})");
  EXPECT_THAT(why("waits").first_failed()->cause, HasSubstr("DaemonSet ml/plugin lacks pods"));
}

TEST_F(WhyPod, ANotebookIsAskedLast) {
  put_node(R"("nvidia.com/gpu":"4")");
  put_pod("notebook", "a", 1);
  const auto answers = why("notebook", server_.url() + "/?token=T");  // as a wrong proxy does
  ASSERT_GE(answers.steps.size(), 2U);
  const auto& kernel = answers.steps[answers.steps.size() - 2];
  EXPECT_EQ(kernel.id, "notebook.kernel");
  EXPECT_EQ(kernel.read,
            "the pod: no answer: it has no address; run the same command as root on a");
  EXPECT_EQ(answers.steps.back().id, "notebook.url");
  EXPECT_EQ(answers.steps.back().read, server_.url() + ": not Jupyter: /api answers HTTP 404");
  put_pod("waits", "", 1);
  EXPECT_FALSE(why("waits", server_.url()).steps.back().id.starts_with("notebook"));
}

}  // namespace
}  // namespace gantry::why
