// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/registrar.hpp"

#include "base/core/clock.hpp"
#include "net/grpc/socket.hpp"
#include "support/plugin_fixture.hpp"

#include <sys/stat.h>

#include <filesystem>

namespace gantry::kubelet {
namespace {

using std::chrono::milliseconds;
using test::FakeKubelet;
using test::kGpuResource;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = RegistrarEvent::Kind;

// Every behaviour on both kinds of kubelet.
class RegistrarTest : public test::PluginFixture,
                      public testing::WithParamInterface<FakeKubelet::Streams> {
 protected:
  void begin() {
    registrar_ = std::make_unique<Registrar>(
        *loop_,
        RegistrarOptions{.directory = tree_.path("dp"),
                         .names = names_,
                         .look_every = milliseconds{200},
                         .first_check = milliseconds{50},
                         .check_every = milliseconds{300}},
        &kubelet_view_, [this](const RegistrarEvent& event) { events_.push_back(event); });
    registrar_->add(*plugin_);
    ASSERT_TRUE(registrar_->start().ok());
  }
  void begin_with_kubelet() {
    ASSERT_TRUE(kubelet_.start().ok());
    begin();
    ASSERT_TRUE(until([&] { return ready(); }));
  }
  bool ready() const {
    return kubelet_.healthy(kGpuResource).size() == 2 && registrar_->all_registered();
  }

  std::size_t count(Kind what) const {
    return static_cast<std::size_t>(std::count_if(
        events_.begin(), events_.end(), [&](const auto& event) { return event.what == what; }));
  }
  std::vector<std::string> our_sockets() const {
    std::vector<std::string> names;
    const auto all = tree_.host().list("/dp");
    if (!all.ok()) return names;
    for (const auto& name : *all) {
      if (name.starts_with("gantry-")) names.push_back(name);
    }
    return names;
  }

  FakeKubelet kubelet_{*loop_, kubelet_options(tree_, GetParam())};
  PodResources kubelet_view_{*loop_, {.path = tree_.path("pr.sock"), .keep = milliseconds{0}}};
  std::unique_ptr<Plugin> plugin_ = make_plugin();
  std::unique_ptr<Registrar> registrar_;
  std::vector<RegistrarEvent> events_;
  SocketNaming names_ = SocketNaming::Ours;
};

TEST_P(RegistrarTest, RegistersWithAKubeletThatIsThere) {
  begin_with_kubelet();
  ASSERT_THAT(kubelet_.registrations(), SizeIs(1));
  const auto& request = kubelet_.registrations()[0];
  EXPECT_EQ(request.version, "v1beta1");
  EXPECT_EQ(request.resource, kGpuResource);
  EXPECT_THAT(request.endpoint, testing::MatchesRegex("gantry-gpu-[0-9]+-[0-9a-f]+\\.sock"));
  EXPECT_EQ(count(Kind::Registered), 1U);
}

TEST_P(RegistrarTest, TellsInOrderHowItCameToBeRegistered) {
  begin_with_kubelet();
  ASSERT_TRUE(until([&] { return count(Kind::Watched) == 1; }));
  std::vector<Kind> steps;
  for (const auto& event : events_) steps.push_back(event.what);
  EXPECT_THAT(steps,
              testing::ElementsAre(Kind::Found, Kind::Serving, Kind::Registered, Kind::Watched));
}

TEST_P(RegistrarTest, ASocketIsNamedAsGkesPluginNamesIt) {
  names_ = SocketNaming::Gke;
  begin_with_kubelet();
  ASSERT_THAT(kubelet_.registrations(), SizeIs(1));
  EXPECT_THAT(kubelet_.registrations()[0].endpoint,
              testing::MatchesRegex("nvidiaGPU-[0-9]{10}\\.sock"));
}

TEST_P(RegistrarTest, WaitsForAKubeletThatIsNotYetThere) {
  begin();  // not even its directory
  ASSERT_TRUE(until([&] { return count(Kind::Waiting) >= 1; }));
  run_loop_for(milliseconds{50});
  EXPECT_EQ(count(Kind::Waiting), 1U);
  EXPECT_EQ(count(Kind::NotRegistered), 0U);
  ASSERT_TRUE(kubelet_.start().ok());
  EXPECT_TRUE(until([&] { return ready(); }));
}

TEST_P(RegistrarTest, ARestartedKubeletIsThereAgainWithinASecond) {
  begin_with_kubelet();
  kubelet_.kill();
  run_loop_for(milliseconds{300});
  ASSERT_TRUE(kubelet_.start().ok());
  EXPECT_TRUE(kubelet_.healthy(kGpuResource).empty());
  EXPECT_TRUE(until([&] { return ready(); }));
  EXPECT_THAT(our_sockets(), SizeIs(1));
  const auto& all = kubelet_.registrations();
  EXPECT_NE(all[0].endpoint, all.back().endpoint);  // a socket's name is used once
}

// A retry that was due for the dead kubelet must not become a second registration with the new one.
TEST_P(RegistrarTest, ARestartedKubeletIsRegisteredWithOnce) {
  begin_with_kubelet();
  kubelet_.kill();
  // Its socket's file is still there, so pauses grow: 20, 40, 80, 160 ms.
  ASSERT_TRUE(until([&] { return count(Kind::NotRegistered) >= 4; }));
  ASSERT_TRUE(kubelet_.start().ok());
  ASSERT_TRUE(until([&] { return ready(); }));
  run_loop_for(milliseconds{500});
  EXPECT_EQ(count(Kind::Registered), 2U);
}

TEST_P(RegistrarTest, AKubeletThatRestartsInNoTimeIsNoticedToo) {
  begin_with_kubelet();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(kubelet_.start().ok());
    ASSERT_TRUE(until([&] { return ready(); })) << i;
  }
}

TEST_P(RegistrarTest, AKubeletSocketThatIsMovedIntoPlaceIsSeen) {
  begin();
  std::filesystem::create_directory(tree_.path("made"));
  FakeKubelet elsewhere(*loop_, {.directory = tree_.path("made"), .streams = GetParam()});
  ASSERT_TRUE(elsewhere.start().ok());
  std::filesystem::create_directory(tree_.path("dp"));
  run_loop_for(milliseconds{250});
  std::filesystem::rename(tree_.path("made/kubelet.sock"), tree_.path("dp/kubelet.sock"));
  EXPECT_TRUE(
      until([&] { return count(Kind::Found) == 1 && elsewhere.registrations().size() == 1; }));
}

TEST_P(RegistrarTest, ARemovedSocketOfOursMeansAnotherRegistration) {
  begin_with_kubelet();
  ASSERT_EQ(::unlink(plugin_->socket_path().c_str()), 0);
  EXPECT_TRUE(until([&] { return kubelet_.registrations().size() == 2 && ready(); }));
  EXPECT_EQ(count(Kind::SocketRemoved), 1U);
  run_loop_for(milliseconds{200});
  EXPECT_TRUE(ready());
}

TEST_P(RegistrarTest, AReplacedDirectoryIsFollowed) {
  begin_with_kubelet();
  kubelet_.kill();
  std::filesystem::rename(tree_.path("dp"), tree_.path("old"));
  run_loop_for(milliseconds{50});
  ASSERT_TRUE(kubelet_.start().ok());
  EXPECT_TRUE(until([&] { return ready(); }));
  EXPECT_THAT(our_sockets(), SizeIs(1));
}

TEST_P(RegistrarTest, AKubeletThatLetsGoIsAskedAgain) {
  begin_with_kubelet();
  kubelet_.drop_connections();
  EXPECT_TRUE(kubelet_.healthy(kGpuResource).empty());
  EXPECT_TRUE(until([&] { return ready(); }));
  EXPECT_EQ(count(Kind::Disconnected), 1U);
}

TEST_P(RegistrarTest, AKubeletKilledInTheMiddleOfRegisterIsTriedAgain) {
  ASSERT_TRUE(kubelet_.start().ok());
  kubelet_.die_in_register();
  begin();
  ASSERT_TRUE(until([&] { return count(Kind::NotRegistered) >= 1; }));
  EXPECT_FALSE(kubelet_.running());
  ASSERT_TRUE(kubelet_.start().ok());
  EXPECT_TRUE(until([&] { return ready(); }));
}

TEST_P(RegistrarTest, ARefusalIsReportedAndRepeatedWithLongerPauses) {
  ASSERT_TRUE(kubelet_.start().ok());
  kubelet_.answer_register_with(grpc::CallStatus{grpc::StatusCode::Unknown, "not today"});
  const auto start = Clock::now();
  begin();
  ASSERT_TRUE(until([&] { return count(Kind::NotRegistered) >= 5; }));
  const auto pauses = milliseconds{20 + 40 + 80 + 160};  // between the first five attempts
  EXPECT_GE(Clock::now() - start, pauses);
  const auto refused = std::find_if(events_.begin(), events_.end(), [](const auto& event) {
    return event.what == Kind::NotRegistered;
  });
  EXPECT_THAT(refused->text, HasSubstr("not today"));
  EXPECT_THAT(our_sockets(), SizeIs(1));
  kubelet_.answer_register_with(std::nullopt);
  EXPECT_TRUE(until([&] { return ready(); }));
}

TEST_P(RegistrarTest, AStaleSocketOfADeadKubeletIsNoKubelet) {
  ASSERT_TRUE(kubelet_.start().ok());
  kubelet_.kill();
  ASSERT_TRUE(tree_.host().link_info("/dp/kubelet.sock").ok());
  begin();
  ASSERT_TRUE(until([&] { return count(Kind::NotRegistered) >= 1; }));
  EXPECT_THAT(events_.back().text, HasSubstr("Connection refused"));
  ASSERT_TRUE(kubelet_.start().ok());
  EXPECT_TRUE(until([&] { return ready(); }));
}

TEST_P(RegistrarTest, RegistersAgainIfTheKubeletStoppedTheEndpointBehindAnOpenStream) {
  begin_with_kubelet();
  kubelet_.stop_endpoint(kGpuResource);
  ASSERT_TRUE(until([&] { return count(Kind::Registered) == 2 && ready(); }));
  const auto admitted = kubelet_.admit(
      {.name = "a", .uid = "a", .containers = {{.name = "main", .limits = {{kGpuResource, 1}}}}});
  EXPECT_TRUE(admitted.ok()) << admitted.error().text();
}

TEST_P(RegistrarTest, APodResourcesThatDoesNotAnswerIsNoReasonForDoubt) {
  begin_with_kubelet();
  kubelet_.answer_pod_resources_with(
      grpc::CallStatus{grpc::StatusCode::Unimplemented, "gate is off"});
  run_loop_for(milliseconds{800});
  EXPECT_EQ(count(Kind::OutOfSync), 0U);
  EXPECT_THAT(kubelet_.registrations(), SizeIs(1));
}

TEST_P(RegistrarTest, SocketsOfDeadProcessesAreRemovedAndOthersAreNot) {
  ASSERT_TRUE(kubelet_.start().ok());
  { const auto dead = *grpc::listen_unix(tree_.path("dp/gantry-gpu-1-77.sock")); }
  { const auto foreign = *grpc::listen_unix(tree_.path("dp/nvidia-gpu.sock")); }
  const auto alive = *grpc::listen_unix(tree_.path("dp/gantry-gpu-1-78.sock"));
  tree_.file("dp/gantry-notes.sock", "a file");
  begin();
  ASSERT_TRUE(until([&] { return ready(); }));
  EXPECT_FALSE(tree_.host().link_info("/dp/gantry-gpu-1-77.sock").ok());
  EXPECT_TRUE(tree_.host().link_info("/dp/gantry-gpu-1-78.sock").ok());
  EXPECT_TRUE(tree_.host().link_info("/dp/nvidia-gpu.sock").ok());
  EXPECT_TRUE(tree_.host().exists("/dp/gantry-notes.sock"));
}

TEST_P(RegistrarTest, EveryResourceHasASocketOfItsOwn) {
  ASSERT_TRUE(kubelet_.start().ok());
  Plugin mig(*loop_, "nvidia.com/mig-1g.18gb", decisions());
  mig.offer({{.id = "MIG-1"}});
  begin();
  registrar_->add(mig);
  ASSERT_TRUE(
      until([&] { return ready() && !kubelet_.healthy("nvidia.com/mig-1g.18gb").empty(); }));
  EXPECT_THAT(our_sockets(), SizeIs(2));
  registrar_->remove(mig);
  mig.stop_serving();
  EXPECT_TRUE(until([&] { return !kubelet_.connected("nvidia.com/mig-1g.18gb"); }));
  run_loop_for(milliseconds{100});
  EXPECT_TRUE(ready());
  EXPECT_FALSE(kubelet_.connected("nvidia.com/mig-1g.18gb"));
}

TEST_P(RegistrarTest, APluginKilledInTheStreamLeavesNothingAllocatable) {
  begin_with_kubelet();
  registrar_.reset();
  plugin_.reset();
  EXPECT_TRUE(until([&] { return kubelet_.healthy(kGpuResource).empty(); }));
  EXPECT_EQ(kubelet_.capacity(kGpuResource), 2U);  // until the kubelet's five minutes are over
  EXPECT_THAT(our_sockets(), IsEmpty());
}

TEST_P(RegistrarTest, ASecondAgentTakesOverAndTheFirstOnesEndDoesNotLast) {
  begin_with_kubelet();
  auto second_plugin = make_plugin();
  Registrar second(*loop_, {.directory = tree_.path("dp"), .first_check = milliseconds{50}},
                   &kubelet_view_, nullptr);
  second.add(*second_plugin);
  ASSERT_TRUE(second.start().ok());
  ASSERT_TRUE(until([&] { return second.all_registered(); }));
  // Without a handover: up to 1.36 the first one's end disconnects the second, which comes back.
  registrar_.reset();
  plugin_.reset();
  run_loop_for(milliseconds{50});
  EXPECT_TRUE(
      until([&] { return second.all_registered() && kubelet_.healthy(kGpuResource).size() == 2; }));
}

INSTANTIATE_TEST_SUITE_P(BothKubelets, RegistrarTest,
                         testing::Values(FakeKubelet::Streams::ByResource,
                                         FakeKubelet::Streams::BySocket),
                         [](const auto& one) {
                           return one.param == FakeKubelet::Streams::ByResource ? "UpTo136"
                                                                                : "From137";
                         });

}  // namespace
}  // namespace gantry::kubelet
