// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/plugin.hpp"

#include "node/kubelet/checkpoint.hpp"
#include "support/kubelet_messages.hpp"
#include "support/plugin_fixture.hpp"

#include <fmt/format.h>

namespace gantry::kubelet {
namespace {

using std::chrono::milliseconds;
using test::FakeKubelet;
using test::kGpuResource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A plugin that was registered by hand; how that is done otherwise is the registrar's test.
class PluginTest : public test::PluginFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kubelet_.start().ok());
    plugin_ = make_plugin();
    register_at("p.sock");
    ASSERT_TRUE(until([&] { return kubelet_.healthy(kGpuResource).size() == 2; }));
  }

  void register_at(const std::string& name) {
    ASSERT_TRUE(plugin_->serve(tree_.path("dp/" + name)).ok());
    client_.call(kRegister, encode(RegisterRequest{.endpoint = name, .resource = kGpuResource}),
                 milliseconds{20'000}, [](const grpc::CallStatus& outcome, const std::string&) {
                   EXPECT_EQ(outcome, grpc::CallStatus{});
                 });
  }

  // A call to the plugin itself, past the kubelet.
  grpc::CallStatus call(std::string_view method, std::string request,
                        std::string* reply = nullptr) {
    grpc::Client client(*loop_, plugin_->socket_path());
    std::optional<grpc::CallStatus> outcome;
    client.call(method, std::move(request), milliseconds{20'000},
                [&](const grpc::CallStatus& how, std::string what) {
                  outcome = how;
                  if (reply != nullptr) *reply = std::move(what);
                });
    EXPECT_TRUE(until([&] { return outcome.has_value(); }));
    return outcome.value_or(grpc::CallStatus{});
  }

  // Once a question is held, whenever that is.
  sys::Loop::Timer when_held(std::function<void()> then) {
    return loop_->every(milliseconds{2}, [this, then = std::move(then), done = false]() mutable {
      if (done || held_.empty()) return;
      done = true;
      then();
    });
  }

  Result<model::ContainerAllocateResponse> allocate(const DeviceIds& ids) override {
    if (refuses_) return *refuses_;
    return PluginFixture::allocate(ids);
  }
  Result<DeviceIds> prefer(const PreferredRequest& request) override {
    asked_.push_back(request);
    if (preferred_.empty()) return Error(Errc::Internal, "no opinion");
    return preferred_;
  }
  void pre_start(const PreStartRequest& question) override {
    if (!holds_) return PluginFixture::pre_start(question);
    held_.push_back(question);
  }

  FakeKubelet kubelet_{*loop_, kubelet_options(tree_, FakeKubelet::Streams::ByResource)};
  grpc::Client client_{*loop_, tree_.path("dp/kubelet.sock")};
  std::unique_ptr<Plugin> plugin_;
  std::optional<Error> refuses_;
  std::vector<PreferredRequest> asked_;
  DeviceIds preferred_;
  bool holds_ = false;
  std::vector<PreStartRequest> held_;
};

TEST_F(PluginTest, PreStartIsAlwaysRequiredAndPreferenceAlwaysOffered) {
  std::string reply;
  EXPECT_EQ(call(kOptions, "", &reply), grpc::CallStatus{});
  EXPECT_EQ(*decode_options(reply), (PluginOptions{true, true}));
}

TEST_F(PluginTest, TheWholeListComesAtOnceAndAgainAfterEachChange) {
  EXPECT_EQ(kubelet_.capacity(kGpuResource), 2U);
  plugin_->offer({{.id = "GPU-a"}, {.id = "GPU-b", .healthy = false}, {.id = "GPU-c"}});
  ASSERT_TRUE(until([&] { return kubelet_.capacity(kGpuResource) == 3; }));
  EXPECT_THAT(kubelet_.healthy(kGpuResource), ElementsAre("GPU-a", "GPU-c"));
  plugin_->offer({{.id = "GPU-c"}});
  ASSERT_TRUE(until([&] { return kubelet_.capacity(kGpuResource) == 1; }));
}

TEST_F(PluginTest, AnEmptyListIsSaid) {
  plugin_->offer({});
  ASSERT_TRUE(until([&] { return kubelet_.capacity(kGpuResource) == 0; }));
  EXPECT_TRUE(kubelet_.connected(kGpuResource));
}

TEST_F(PluginTest, APodGetsWhatTheAgentAnswersAndItsStartIsAskedFor) {
  ASSERT_TRUE(kubelet_.admit(pod("u1", 2)).ok());
  const auto answer = kubelet_.start_container("u1", "main");
  ASSERT_TRUE(answer.ok()) << answer.error().text();
  EXPECT_THAT(answer->cdi_devices, ElementsAre("nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"));
  EXPECT_THAT(started_, ElementsAre(DeviceIds{"GPU-a", "GPU-b"}));
  // By then the checkpoint says for whom.
  const auto holders =
      holders_of(*read_checkpoint(tree_.path("dp")), kGpuResource, {"GPU-a", "GPU-b"});
  ASSERT_THAT(holders, SizeIs(1));
  EXPECT_EQ(holders[0].pod.uid, "u1");
}

TEST_F(PluginTest, TheAgentsPreferenceDecides) {
  preferred_ = {"GPU-b"};
  ASSERT_TRUE(kubelet_.admit(pod("u1", 1)).ok());
  EXPECT_THAT(kubelet_.ids_of("u1", "main", kGpuResource), ElementsAre("GPU-b"));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_EQ(asked_[0],
            (PreferredRequest{.available = {"GPU-a", "GPU-b"}, .must_include = {}, .size = 1}));
}

TEST_F(PluginTest, NoOpinionDoesNotFailAPod) {
  EXPECT_TRUE(kubelet_.admit(pod("u1", 1)).ok());
  EXPECT_THAT(kubelet_.ids_of("u1", "main", kGpuResource), SizeIs(1));
}

TEST_F(PluginTest, AnInitContainersDevicesAreHandedOn) {
  FakeKubelet::Pod two = pod("u1", 2);
  two.containers.insert(
      two.containers.begin(),
      {.name = "init", .limits = {{kGpuResource, 2}}, .kind = FakeKubelet::Kind::Init});
  ASSERT_TRUE(kubelet_.admit(two).ok());
  EXPECT_EQ(kubelet_.ids_of("u1", "init", kGpuResource),
            kubelet_.ids_of("u1", "main", kGpuResource));
  EXPECT_THAT(holders_of(*read_checkpoint(tree_.path("dp")), kGpuResource, {"GPU-a", "GPU-b"}),
              SizeIs(2));
}

TEST_F(PluginTest, AnEndedPodsDevicesAreGivenAgainWithoutAWord) {
  ASSERT_TRUE(kubelet_.admit(pod("u1", 2)).ok());
  EXPECT_THAT(kubelet_.admit(pod("u2", 1)).error().text(), HasSubstr("Requested: 1, Available: 0"));
  kubelet_.remove("u1");
  EXPECT_TRUE(kubelet_.admit(pod("u2", 2)).ok());
  EXPECT_THAT(holders_of(*read_checkpoint(tree_.path("dp")), kGpuResource, {"GPU-a", "GPU-b"}),
              SizeIs(1));
}

TEST_F(PluginTest, TheNumaHintIsFollowed) {
  plugin_->offer({{.id = "a0", .numa_node = 0},
                  {.id = "a1", .numa_node = 0},
                  {.id = "b0", .numa_node = 1},
                  {.id = "n"}});
  ASSERT_TRUE(until([&] { return kubelet_.capacity(kGpuResource) == 4; }));
  FakeKubelet::Pod one = pod("u1", 1);
  one.containers[0].numa_nodes = {{1}};
  ASSERT_TRUE(kubelet_.admit(one).ok());
  EXPECT_THAT(kubelet_.ids_of("u1", "main", kGpuResource), ElementsAre("b0"));
  EXPECT_THAT(asked_, IsEmpty());  // one aligned device, nothing to choose
  FakeKubelet::Pod other = pod("u2", 1);
  other.containers[0].numa_nodes = {{0}};
  ASSERT_TRUE(kubelet_.admit(other).ok());
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_THAT(asked_[0].available, ElementsAre("a0", "a1"));
}

TEST_F(PluginTest, AnAllocateErrorReachesThePodWordForWord) {
  refuses_ = Error(Errc::Denied, "request for 2 of 'nvidia.com/gpu': only 1 per container");
  const auto admitted = kubelet_.admit(pod("u1", 2));
  ASSERT_FALSE(admitted.ok());
  EXPECT_EQ(admitted.error().text(),
            "PERMISSION_DENIED: request for 2 of 'nvidia.com/gpu': only 1 per container");
}

TEST_F(PluginTest, ADeviceThatIsNotOfferedIsNotAllocated) {
  const auto outcome = call(kAllocate, encode_allocate_request({{"GPU-a", "GPU-z"}}));
  EXPECT_EQ(
      outcome,
      (grpc::CallStatus{grpc::StatusCode::NotFound,
                        "invalid allocation request for 'nvidia.com/gpu': unknown device: GPU-z"}));
}

TEST_F(PluginTest, RequestsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(call(kAllocate, "").code, grpc::StatusCode::InvalidArgument);
  EXPECT_EQ(call(kAllocate, encode_allocate_request({{}})).code, grpc::StatusCode::InvalidArgument);
  EXPECT_EQ(call(kAllocate, "\xff\xff").code, grpc::StatusCode::InvalidArgument);
  EXPECT_EQ(call(kPreStartContainer, "").code, grpc::StatusCode::InvalidArgument);
  EXPECT_EQ(call(kPreStartContainer, "\x0a").code, grpc::StatusCode::InvalidArgument);
  EXPECT_EQ(
      call(kGetPreferredAllocation,
           encode_preferred_request({{.available = {"GPU-a"}, .must_include = {}, .size = 2}}))
          .code,
      grpc::StatusCode::InvalidArgument);
  EXPECT_EQ(call(kGetPreferredAllocation,
                 encode_preferred_request({{.available = {"a"}, .must_include = {"b"}, .size = 1}}))
                .code,
            grpc::StatusCode::InvalidArgument);
  EXPECT_EQ(call("/v1beta1.DevicePlugin/Sing", "").code, grpc::StatusCode::Unimplemented);
  EXPECT_EQ(kubelet_.healthy(kGpuResource).size(), 2U);
}

TEST_F(PluginTest, SeveralContainersInOneRequestAreAnsweredInOrder) {
  std::string reply;
  EXPECT_EQ(call(kAllocate, encode_allocate_request({{"GPU-b"}, {"GPU-a"}}), &reply),
            grpc::CallStatus{});
  const auto answers = *decode_allocate_answer(reply);
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_THAT(answers[0].cdi_devices, ElementsAre("nvidia.com/gpu=GPU-b"));
}

TEST_F(PluginTest, AStartWaitsUntilTheAgentIsReady) {
  holds_ = true;
  ASSERT_TRUE(kubelet_.admit(pod("u1", 1)).ok());
  const auto later = when_held([&] {
    EXPECT_FALSE(plugin_->quiet());
    held_[0].ready();
  });
  EXPECT_TRUE(kubelet_.start_container("u1", "main").ok());
  EXPECT_TRUE(held_[0].over());
  EXPECT_TRUE(until([&] { return plugin_->quiet(); }));
}

TEST_F(PluginTest, AStartThatFailsSaysWhyAndMayBeTriedAgain) {
  holds_ = true;
  ASSERT_TRUE(kubelet_.admit(pod("u1", 1)).ok());
  const auto later =
      when_held([&] { held_[0].fail(Error(Errc::Busy, "driver is being upgraded")); });
  const auto started = kubelet_.start_container("u1", "main");
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().text(), HasSubstr("UNAVAILABLE: driver is being upgraded"));
  holds_ = false;
  EXPECT_TRUE(kubelet_.start_container("u1", "main").ok());
}

TEST_F(PluginTest, AQuestionThatIsDroppedIsAnErrorAndOneAnsweredLateGoesNowhere) {
  holds_ = true;
  ASSERT_TRUE(kubelet_.admit(pod("u1", 1)).ok());
  const auto later = when_held([&] { held_.clear(); });
  EXPECT_THAT(kubelet_.start_container("u1", "main").error().text(), HasSubstr("INTERNAL"));
  grpc::Client hasty(*loop_, plugin_->socket_path());
  bool answered = false;
  hasty.call(kPreStartContainer, encode_pre_start({"GPU-a"}), milliseconds{500},
             [&](const grpc::CallStatus&, const std::string&) { answered = true; });
  ASSERT_TRUE(until([&] { return answered && held_.size() == 1 && held_[0].over(); }));
  held_[0].ready();
}

TEST_F(PluginTest, AKubeletKilledInTheStreamIsSeenAndTheNextOneServed) {
  std::vector<bool> seen;
  plugin_->on_watched([&](bool watched) { seen.push_back(watched); });
  EXPECT_TRUE(plugin_->watched());
  kubelet_.kill();
  ASSERT_TRUE(until([&] { return !plugin_->watched(); }));
  ASSERT_TRUE(kubelet_.start().ok());
  register_at("q.sock");
  ASSERT_TRUE(until([&] { return kubelet_.healthy(kGpuResource).size() == 2; }));
  EXPECT_THAT(seen, ElementsAre(false, true));
}

TEST_F(PluginTest, AnOldSocketsStreamGoesOnBesideANewOne) {
  register_at("q.sock");
  ASSERT_TRUE(until([&] { return kubelet_.registrations().size() == 2 && plugin_->watched(); }));
  run_loop_for(milliseconds{30});
  // Up to 1.36 the end of the first stream would have taken the second one along.
  EXPECT_TRUE(kubelet_.connected(kGpuResource));
  EXPECT_THAT(plugin_->connections(), SizeIs(2));
  EXPECT_FALSE(tree_.host().exists("/dp/p.sock"));
  plugin_->offer({{.id = "GPU-new"}});
  EXPECT_TRUE(until([&] { return kubelet_.capacity(kGpuResource) == 1; }));
}

TEST_F(PluginTest, EveryCallIsReported) {
  reports_.clear();
  ASSERT_TRUE(kubelet_.admit(pod("u1", 2)).ok());
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_EQ(reports_[0].method, "GetPreferredAllocation");
  EXPECT_EQ(reports_[1].method, "Allocate");
  EXPECT_EQ(reports_[1].resource, kGpuResource);
  EXPECT_EQ(reports_[1].outcome, grpc::CallStatus{});
}

TEST_F(PluginTest, AHugeListStaysBelowWhatAKubeletReads) {
  std::vector<ListedDevice> devices;
  devices.reserve(std::size_t{16} * 128);
  for (int i = 0; i < 16 * 128; ++i) {
    devices.push_back(
        {.id = fmt::format("GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee::{}", i), .numa_node = i % 2});
  }
  EXPECT_LT(encode_list(devices).size(), std::size_t{4} << 20);
  plugin_->offer(devices);
  EXPECT_TRUE(until([&] { return kubelet_.capacity(kGpuResource) == devices.size(); }));
}

}  // namespace
}  // namespace gantry::kubelet
