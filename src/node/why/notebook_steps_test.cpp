// SPDX-License-Identifier: Apache-2.0
#include "node/why/notebook_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Stage = JupyterStage;

JupyterAnswer answer(Stage stage, int status = 200) {
  return {.stage = stage,
          .where = "http://pod:8888",
          .port = 8888,
          .status = status,
          .error = stage == Stage::Unreachable ? "connection refused" : "",
          .version = "6.4.12",
          .kernel = "04915e2e-0895",
          .about = "python3, idle",
          .requests = 5,
          .answers = stage == Stage::Answered ? 5 : 0};
}

struct Steps {
  Step kernel, url;
};
Steps steps(const JupyterAnswer& direct, JupyterAnswer by_url, GpuState gpu = GpuState::Works,
            bool on_node = true) {
  by_url.where = "http://proxy";
  const auto both = notebook_steps({.direct = direct,
                                    .by_url = by_url,
                                    .on_node = on_node,
                                    .name_space = "ml",
                                    .pod = "nb",
                                    .node = "n1"},
                                   gpu);
  EXPECT_EQ(both.size(), 2U);
  return {both[0], both[1]};
}

TEST(NotebookSteps, BothAnswer) {
  const auto got = steps(answer(Stage::Answered), answer(Stage::Answered));
  EXPECT_EQ(got.kernel.verdict, StepStatus::Ok);
  EXPECT_EQ(
      got.kernel.read,
      "http://pod:8888: kernel 04915e2e (python3, idle): 5 of 5 answers, the first after 0 ms");
  EXPECT_EQ(got.url.verdict, StepStatus::Ok);
}

TEST(NotebookSteps, AProxyThatLosesFramesIsNamedAndTheGpuIsNot) {
  const auto got = steps(answer(Stage::Answered), answer(Stage::Lossy, 101));
  EXPECT_EQ(got.kernel.verdict, StepStatus::Ok);
  EXPECT_EQ(got.url.verdict, StepStatus::Failed);
  EXPECT_EQ(got.url.cause,
            "the GPU works and kernel 04915e2e answered in its pod, but the connection through "
            "http://proxy loses frames: its WebSocket opened, and 0 of 5 answers came");
  EXPECT_THAT(got.url.remedy, HasSubstr("kubectl port-forward -n ml pod/nb 8888"));
  EXPECT_THAT(got.url.remedy, HasSubstr("nginx.ingress.kubernetes.io/proxy-read-timeout"));
}

TEST(NotebookSteps, NamesTheSettingOfAProxyWithoutWebSockets) {
  const auto got = steps(answer(Stage::Answered), answer(Stage::Refused, 400));
  EXPECT_THAT(got.url.cause,
              HasSubstr("does not carry WebSockets: its answer to the upgrade is HTTP 400"));
  EXPECT_THAT(got.url.remedy, AllOf(HasSubstr("proxy_http_version 1.1"),
                                    HasSubstr("proxy_set_header Upgrade $http_upgrade"),
                                    HasSubstr("nginx.org/websocket-services")));
  const auto origin = steps(answer(Stage::Answered), answer(Stage::Refused, 403)).url;
  EXPECT_THAT(origin.remedy, HasSubstr("proxy_set_header Host $http_host"));
}

TEST(NotebookSteps, EveryOtherFaultOfTheConnectionHasItsSentence) {
  const auto cause = [](Stage stage, int status = 200) {
    const auto step = steps(answer(Stage::Answered), answer(stage, status)).url;
    EXPECT_EQ(step.verdict, stage == Stage::Denied ? StepStatus::Warning : StepStatus::Failed);
    EXPECT_NE(step.remedy, "");
    return step.cause;
  };
  EXPECT_THAT(cause(Stage::Unreachable), HasSubstr("does not answer: connection refused"));
  EXPECT_THAT(cause(Stage::NotJupyter, 502), HasSubstr("/api answers HTTP 502"));
  EXPECT_THAT(cause(Stage::Denied, 401), HasSubstr("wants a login"));
  EXPECT_THAT(cause(Stage::NoKernel), HasSubstr("leads to another Jupyter"));
}

TEST(NotebookSteps, AKernelThatIsDeadIsNoFaultOfTheProxy) {
  const auto hung = steps(answer(Stage::Lossy), answer(Stage::Lossy), GpuState::Unhealthy);
  EXPECT_EQ(hung.kernel.verdict, StepStatus::Failed);
  EXPECT_EQ(hung.kernel.cause,
            "kernel 04915e2e does not answer in its own pod either: it hangs or is dead, the GPU "
            "is not usable, and the connection through the URL is not at fault");
  EXPECT_THAT(hung.kernel.remedy, HasSubstr("kubectl logs -n ml nb"));
  EXPECT_EQ(hung.url.verdict, StepStatus::Unknown);
  EXPECT_EQ(hung.url.cause, "");
  const auto none = steps(answer(Stage::NoKernel), answer(Stage::NoKernel));
  EXPECT_EQ(none.kernel.verdict, StepStatus::Warning);
  EXPECT_THAT(none.kernel.cause, HasSubstr("no kernel runs"));
  EXPECT_EQ(none.url.verdict, StepStatus::Unknown);
  const auto gone = steps(answer(Stage::Unreachable), answer(Stage::NotJupyter, 502));
  EXPECT_THAT(gone.kernel.cause, HasSubstr("does not answer in its own pod, so no proxy"));
  EXPECT_EQ(gone.url.verdict, StepStatus::Unknown);
}

TEST(NotebookSteps, FromElsewhereTheKernelIsNotKnown) {
  const auto got =
      steps(answer(Stage::Unreachable), answer(Stage::Lossy), GpuState::Unknown, false);
  EXPECT_EQ(got.kernel.verdict, StepStatus::Unknown);
  EXPECT_THAT(got.kernel.read, HasSubstr("run the same command as root on n1"));
  EXPECT_EQ(got.url.verdict, StepStatus::Warning);
  EXPECT_THAT(got.url.cause,
              HasSubstr("no fault of the GPU is known and the kernel cannot be asked "
                        "from here, but the connection through http://proxy loses"));
  EXPECT_EQ(steps(answer(Stage::Unreachable), answer(Stage::NoKernel), GpuState::Unknown, false)
                .url.verdict,
            StepStatus::Unknown);
}

TEST(NotebookSteps, APageThatIsNotJupyterIsComparedAsFarAsItGoes) {
  const auto swallowed = steps(answer(Stage::NotJupyter, 404), answer(Stage::Unreachable));
  EXPECT_EQ(swallowed.kernel.verdict, StepStatus::Unknown);
  EXPECT_EQ(swallowed.url.verdict, StepStatus::Failed);
  EXPECT_THAT(swallowed.url.cause, HasSubstr("the pod answers at http://pod:8888, but"));
  EXPECT_EQ(steps(answer(Stage::NotJupyter, 404), answer(Stage::NotJupyter, 404)).url.verdict,
            StepStatus::Unknown);
}

}  // namespace
}  // namespace gantry::why
