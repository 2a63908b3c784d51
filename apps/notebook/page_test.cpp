// SPDX-License-Identifier: Apache-2.0
#include "notebook/page.hpp"

#include "base/json/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::workload {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const GpuList seen{.looked = true, .result = {.output = "GPU 0: A & B <script>\nGPU 1: \"x\"\n"}};
const GpuList nothing_seen{
    .looked = true,
    .result = {.status = 1, .output = "gantry-notebook: cuInit: none\n  cause: x\n"}};

std::optional<FinishedRun> passed(bool answered) {
  return FinishedRun{
      .number = 3, .result = {.output = "Test PASSED\nDone\n"}, .answered = answered};
}

TEST(Verdict, TellsADroppedConnectionFromAFaultOfTheGpu) {
  EXPECT_THAT(describe_verdict({.sight = seen, .last = passed(false)}),
              AllOf(StartsWith("Dropped connection: run 3 passed on the GPU"), HasSubstr("proxy")));
  EXPECT_EQ(describe_verdict({.sight = seen, .last = passed(true)}),
            "Run 3 passed and was answered: GPU and connection work.");
  const std::optional<FinishedRun> failed = FinishedRun{
      .number = 4,
      .result = {.status = 1,
                 .output = "[Vector addition]\ngantry-notebook: cuMemAlloc: x\n  cause: y\n  "
                           "remedy: z -a\n"},
      .answered = false};
  EXPECT_EQ(describe_verdict({.sight = seen, .last = failed}),
            "GPU fault, the connection works: run 4 failed: gantry-notebook: cuMemAlloc: x. "
            "Cause: y. Remedy: z -a");
  const std::optional<FinishedRun> hung = FinishedRun{
      .number = 5, .result = {.status = 137, .hung = true, .took = std::chrono::seconds(60)}};
  EXPECT_THAT(describe_verdict({.sight = seen, .last = hung}),
              HasSubstr("run 5 failed: the driver did not answer within 60 s"));
}

TEST(Verdict, DoesNotCallAGpuWellThatTheStateCallsAFault) {
  const auto verdict = describe_verdict({.sight = nothing_seen, .last = passed(true)});
  EXPECT_EQ(verdict,
            "GPU fault: run 3 passed, but since then no GPU can be used: gantry-notebook: cuInit: "
            "none. Cause: x.");
  EXPECT_THAT(status_json({.sight = nothing_seen, .last = passed(true)}),
              AllOf(HasSubstr(R"("state": "fault")"), Not(HasSubstr("connection work"))));
}

TEST(Verdict, BeforeAnyRunIsWhatTheLookFound) {
  EXPECT_EQ(describe_verdict({.sight = seen, .last = {}}), "Nothing has run yet.");
  EXPECT_THAT(describe_verdict({.sight = nothing_seen, .last = {}}),
              HasSubstr("GPU fault: no GPU can be used: gantry-notebook: cuInit: none. Cause: x."));
  EXPECT_EQ(describe_verdict({.sight = seen, .last = passed(true), .running = true, .runs = 4}),
            "Run 4 is on the GPU.");
}

TEST(Page, ShowsTheDriversWordsAsText) {
  const std::string page = render_page({.sight = seen, .last = passed(true)});
  EXPECT_THAT(page,
              AllOf(HasSubstr("GPU 0: A &amp; B &lt;script>"), HasSubstr("Test PASSED"),
                    Not(HasSubstr("{{")), Not(HasSubstr("http://")), Not(HasSubstr("https://"))));
}

TEST(NotebookStatus, IsJson) {
  const auto document = json::Document::parse(status_json({.sight = seen, .last = passed(false)}));
  ASSERT_TRUE(document.ok()) << document.error().text();
  EXPECT_EQ((*document)["gpu"]["state"].string(), "ok");
  EXPECT_EQ((*document)["last"]["result"].string(), "passed");
  EXPECT_EQ((*document)["last"]["output"].string(), "Test PASSED\nDone\n");
  const std::string none = status_json({.sight = nothing_seen, .last = {}});
  EXPECT_TRUE(json::Document::parse(none).ok()) << none;
  EXPECT_THAT(none, AllOf(HasSubstr(R"("state": "fault", "devices": [])"), HasSubstr("cuInit")));
}

}  // namespace
}  // namespace gantry::workload
