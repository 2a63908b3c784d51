// SPDX-License-Identifier: Apache-2.0
// gantry-fake-kubelet as a process of its own, as the lanes use it.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/sys/child.hpp"
#include "support/paths.hpp"
#include "support/plugin_fixture.hpp"

#include <fmt/format.h>

#include <thread>

namespace gantry::kubelet {
namespace {

using std::chrono::seconds;
using test::kGpuResource;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class FakeKubeletProgram : public test::PluginFixture {
 protected:
  // The program's answers to these commands, while a plugin is there.
  std::vector<std::string> answers(const std::string& commands) {
    tree_.file("commands", commands);
    const auto plugin = make_plugin();
    Registrar registrar(*loop_, {.directory = tree_.path("dp")}, nullptr, nullptr);
    registrar.add(*plugin);
    EXPECT_TRUE(registrar.start().ok());
    std::string output;
    std::thread program([&] {
      const auto ran =
          sys::run_command({"sh", "-c",
                            fmt::format("{} --dir {} --pod-resources {} < {}",
                                        test::built("bin/gantry-fake-kubelet"), tree_.path("dp"),
                                        tree_.path("pr.sock"), tree_.path("commands"))},
                           seconds{60});
      if (ran.ok()) output = ran->output;
      loop_->stop();
    });
    EXPECT_TRUE(loop_->run().ok());
    program.join();
    std::vector<std::string> all;
    for (const auto line : lines(output)) all.emplace_back(line);
    return all;
  }
};

TEST_F(FakeKubeletProgram, AdmitsPodsRestartsAndTellsWhatItKnows) {
  const auto all = answers(
      "wait nvidia.com/gpu 2 20\n"
      "admit default/train/u1/main nvidia.com/gpu=2\n"
      "admit default/late/u2/main nvidia.com/gpu=1\n"
      "restart\n"
      "wait nvidia.com/gpu 2 20\n"
      "start u1 main\n"
      "remove u1\n"
      "admit default/late/u2/main nvidia.com/gpu=1\n"
      "dump\n"
      "nonsense\n"
      "quit\n");
  ASSERT_THAT(all, SizeIs(10)) << testing::PrintToString(all);
  EXPECT_THAT(all[0], HasSubstr(R"("ok":true,"capacity":2,"allocatable":2)"));
  const auto admitted = *json::Document::parse(all[1]);
  EXPECT_THAT(admitted["ids"][kGpuResource].strings(), ElementsAre("GPU-a", "GPU-b"));
  EXPECT_THAT(admitted["answer"]["cdiDevices"].strings(),
              ElementsAre("nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"));
  EXPECT_THAT(all[2], HasSubstr("requested number of devices unavailable"));
  EXPECT_THAT(all[5], HasSubstr(R"("nvidia.com/gpu=GPU-b")"));  // from the checkpoint
  EXPECT_THAT(all[7], HasSubstr(R"("ok":true)"));
  const auto known = *json::Document::parse(all[8]);
  EXPECT_EQ(known["holders"].element(0)["pod"].string(), "default/late");
  EXPECT_EQ(known["resources"][kGpuResource]["capacity"].u64(), 2U);
  // One before the restart and one after. A third one is right where the going kubelet has closed
  // the stream and still listens: it cannot be told apart from one that wants the plugin back.
  EXPECT_THAT(known["registrations"].size(), AnyOf(2U, 3U));
  EXPECT_THAT(all[9], HasSubstr("no such command"));
}

TEST_F(FakeKubeletProgram, TimesCallsWithoutGivingAnythingAway) {
  const auto all = answers(
      "wait nvidia.com/gpu 2 20\n"
      "time nvidia.com/gpu 20\n"
      "time nvidia.com/gpu 0\n"
      "time nvidia.com/other 5\n"
      "admit default/train/u1/main nvidia.com/gpu=2\n"
      "quit\n");
  ASSERT_THAT(all, SizeIs(5)) << testing::PrintToString(all);
  EXPECT_THAT(all[1], HasSubstr(R"("ok":true,"preferred":{"p50":)"));
  EXPECT_THAT(all[1], HasSubstr(R"("allocate":{"p50":)"));
  EXPECT_THAT(all[2], HasSubstr("1 to 100000 calls"));
  EXPECT_THAT(all[3], HasSubstr(R"("ok":false)"));
  EXPECT_THAT(all[4], HasSubstr(R"("ok":true)"));
}

}  // namespace
}  // namespace gantry::kubelet
