// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/pod_resources.hpp"

#include "support/plugin_fixture.hpp"

namespace gantry::kubelet {
namespace {

using std::chrono::milliseconds;
using test::FakeKubelet;
using test::kGpuResource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class PodResourcesTest : public test::PluginFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kubelet_.start().ok());
    registrar_.add(*plugin_);
    ASSERT_TRUE(registrar_.start().ok());
    ASSERT_TRUE(until([&] { return kubelet_.healthy(kGpuResource).size() == 2; }));
  }
  Result<std::vector<model::DeviceAllocation>> holders(PodResources& of) {
    std::optional<Result<std::vector<model::DeviceAllocation>>> answer;
    of.holders([&](const auto& got) { answer.emplace(got); });
    EXPECT_FALSE(answer);
    EXPECT_TRUE(until([&] { return answer.has_value(); }));
    return *answer;
  }
  FakeKubelet kubelet_{*loop_, kubelet_options(tree_, FakeKubelet::Streams::BySocket)};
  std::unique_ptr<Plugin> plugin_ = make_plugin();
  Registrar registrar_{*loop_, {.directory = tree_.path("dp")}, nullptr, nullptr};
  PodResources resources_{*loop_, {.path = tree_.path("pr.sock"), .keep = milliseconds{100}}};
};

TEST_F(PodResourcesTest, SaysWhoHasWhat) {
  ASSERT_TRUE(kubelet_.admit(pod("u1", 2)).ok());
  const auto all = holders(resources_);
  ASSERT_TRUE(all.ok());
  ASSERT_THAT(*all, SizeIs(1));
  EXPECT_EQ((*all)[0].pod.name, "pu1");
  EXPECT_EQ((*all)[0].pod.name_space, "default");
  EXPECT_EQ((*all)[0].container, "main");
  EXPECT_THAT((*all)[0].ids, ElementsAre("GPU-a", "GPU-b"));
}

TEST_F(PodResourcesTest, WhoAsksAtOnceAndSoonAfterSharesOneAnswer) {
  int answers = 0;
  for (int i = 0; i < 10; ++i) resources_.holders([&](const auto&) { ++answers; });
  ASSERT_TRUE(until([&] { return answers == 10; }));
  ASSERT_TRUE(holders(resources_).ok());
  EXPECT_EQ(kubelet_.pod_resources_calls(), 1);
  resources_.forget();
  ASSERT_TRUE(holders(resources_).ok());
  EXPECT_EQ(kubelet_.pod_resources_calls(), 2);
}

TEST_F(PodResourcesTest, ATiredKubeletIsLeftAloneAndTheLastAnswerServes) {
  ASSERT_TRUE(kubelet_.admit(pod("u1", 1)).ok());
  ASSERT_THAT(*holders(resources_), SizeIs(1));
  kubelet_.answer_pod_resources_with(
      grpc::CallStatus{grpc::StatusCode::ResourceExhausted, "rejected by rate limit"});
  for (int i = 0; i < 5; ++i) {
    resources_.forget();
    EXPECT_THAT(*holders(resources_), SizeIs(1));
  }
  EXPECT_EQ(kubelet_.pod_resources_calls(), 2);
}

TEST_F(PodResourcesTest, AnAnswerOfNowIsNeverAnOldOne) {
  std::vector<std::size_t> sizes;  // of the answers; 99: an error
  const auto note = [&](const auto& got) { sizes.push_back(got.ok() ? got->size() : 99); };
  ASSERT_THAT(*holders(resources_), SizeIs(0));
  ASSERT_TRUE(kubelet_.admit(pod("u1", 1)).ok());
  resources_.holders_now(note);
  ASSERT_TRUE(until([&] { return sizes.size() == 1; }));
  EXPECT_THAT(sizes, ElementsAre(1U)) << "the kept answer is not used";
  kubelet_.answer_pod_resources_with(
      grpc::CallStatus{grpc::StatusCode::ResourceExhausted, "rejected by rate limit"});
  resources_.holders_now(note);
  ASSERT_TRUE(until([&] { return sizes.size() == 2; }));
  EXPECT_THAT(sizes, ElementsAre(1U, 99U)) << "a pod may have got a GPU since the last answer";
}

TEST_F(PodResourcesTest, NoKubeletIsAnErrorThatNamesTheSocket) {
  PodResources nowhere(*loop_, {.path = tree_.path("none.sock")});
  const auto all = holders(nowhere);
  ASSERT_FALSE(all.ok());
  EXPECT_THAT(all.error().text(), HasSubstr("podresources: UNAVAILABLE: connect "));
  EXPECT_THAT(all.error().text(), HasSubstr("none.sock"));
}

TEST_F(PodResourcesTest, AllocatableIsWhatIsHealthy) {
  plugin_->offer({{.id = "GPU-a"}, {.id = "GPU-b", .healthy = false}});
  ASSERT_TRUE(until([&] { return kubelet_.healthy(kGpuResource).size() == 1; }));
  std::optional<Allocatable> got;
  resources_.allocatable([&](const Result<Allocatable>& answer) { got = *answer; });
  ASSERT_TRUE(until([&] { return got.has_value(); }));
  EXPECT_THAT(got->at(kGpuResource), ElementsAre("GPU-a"));
}

}  // namespace
}  // namespace gantry::kubelet
