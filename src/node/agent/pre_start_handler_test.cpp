// SPDX-License-Identifier: Apache-2.0
#include "node/agent/pre_start_handler.hpp"

#include "container/grants/grants.hpp"
#include "node/agent/kubelet_fixture_for_test.hpp"

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using test::FakeKubelet;
using test::kGpuResource;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// NOLINTNEXTLINE(readability-identifier-naming): constant, though not constexpr
const std::string kShareMemory{resources::kMemoryResource};

// The same cards, numbered the other way round, as after a reboot.
model::Inventory renumbered(model::Inventory machine) {
  std::swap(machine.gpus[0].uuid, machine.gpus[1].uuid);
  return machine;
}

// Requests of the kubelet, through the agent's plugins.
class KubeletStarts : public KubeletFixture {
 protected:
  KubeletStarts() {
    begin([this](const std::string& resource, kubelet::PreStartRequest request) {
      handler_.prepare(resource, std::move(request), offering_);
    });
  }

  std::string gpu(std::size_t index) const { return machine_.gpus[index].uuid.text; }
  model::Grant grant(const std::string& uid, const std::string& container = "main") {
    auto read = grants::read(host_, uid, container);
    EXPECT_TRUE(read.ok()) << read.error().text();
    return read.ok() ? *std::move(read) : model::Grant{};
  }
  std::vector<std::string> devices_of(const std::string& uid,
                                      const std::string& container = "main") {
    return model::to_texts(grant(uid, container).devices);
  }

  model::Inventory machine_ = plan::machine_for_test();
  PreStartHandler handler_{*loop_, host_, "/dp", log_, {.pause = 1ms, .looks = 3}};
};

TEST_F(KubeletStarts, AContainerIsGrantedTheDevicesThatTheKubeletGaveIt) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 2}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  EXPECT_THAT(devices_of("u1"), ElementsAre(gpu(0), gpu(1)));
  EXPECT_THAT(grant("u1").resources, ElementsAre(Pair(kGpuResource, ElementsAre(gpu(0), gpu(1)))));
}

TEST_F(KubeletStarts, OneGrantHasTheDevicesOfAllResources) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}, {kMigResource, 1}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  const auto whole = kubelet_.ids_of("u1", "main", kGpuResource);
  const auto part = kubelet_.ids_of("u1", "main", kMigResource);
  EXPECT_THAT(devices_of("u1"), ElementsAre(whole[0], part[0]));
  EXPECT_THAT(grant("u1").resources,
              ElementsAre(Pair(kGpuResource, whole), Pair(kMigResource, part)));
}

TEST_F(KubeletStarts, TwoReplicasOfOneGpuAreGrantedAsThatGpu) {
  auto options = mixed_mig_for_test();
  options.sharing = {.kind = options::SharingKind::TimeSlicing,
                     .resources = {{.name = kGpuResource, .replicas = 2}}};
  auto one_gpu = machine_;
  one_gpu.gpus.resize(1);
  offer(one_gpu, options);
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 2}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  EXPECT_THAT(devices_of("u1"), ElementsAre(gpu(0)));
  EXPECT_THAT(grant("u1").resources,
              ElementsAre(Pair(kGpuResource, ElementsAre(gpu(0) + "::0", gpu(0) + "::1"))));
}

TEST_F(KubeletStarts, EachContainerOfAPodHasItsOwnGrant) {
  offer(machine_, mixed_mig_for_test());
  FakeKubelet::Pod two = pod_with("u1", {{kGpuResource, 1}});
  two.containers.push_back({.name = "other", .limits = {{kGpuResource, 1}}});
  ASSERT_TRUE(kubelet_.admit(two).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "other").ok());
  EXPECT_EQ(devices_of("u1", "other"), kubelet_.ids_of("u1", "other", kGpuResource));
  EXPECT_EQ(grants::read(host_, "u1", "main").error().code(), Errc::NotFound);
}

TEST_F(KubeletStarts, AnInitContainerThatPassesItsDevicesOnHasTheSameGrant) {
  offer(machine_, mixed_mig_for_test());
  FakeKubelet::Pod two = pod_with("u1", {{kGpuResource, 2}});
  two.containers.insert(
      two.containers.begin(),
      {.name = "init", .limits = {{kGpuResource, 2}}, .kind = FakeKubelet::Kind::Init});
  ASSERT_TRUE(kubelet_.admit(two).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "init").ok());
  EXPECT_EQ(grant("u1", "init"), grant("u1", "main"));
}

TEST_F(KubeletStarts, AnAnswerThatNamesAnotherGpuNowStopsTheContainer) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  offer(renumbered(machine_), mixed_mig_for_test());
  const auto started = kubelet_.start_container("u1", "main");
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().text(),
              AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("Delete the pod")));
  EXPECT_THAT(*grants::list(host_), IsEmpty());
  offer(machine_, mixed_mig_for_test());
  EXPECT_TRUE(kubelet_.start_container("u1", "main").ok()) << "the kubelet tries again";
}

TEST_F(KubeletStarts, AContainerWhoseGrantCannotBeWrittenDoesNotStart) {
  tree_.file("run/gantry", "a file where a directory should be");
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  const auto started = kubelet_.start_container("u1", "main");
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(
      started.error().text(),
      AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("writing the grant of container main of pod u1"),
            HasSubstr("df -h " + tree_.path("run"))));
  ASSERT_EQ(::unlink(tree_.path("run/gantry").c_str()), 0);
  EXPECT_TRUE(kubelet_.start_container("u1", "main").ok()) << "the kubelet tries again";
}

TEST_F(KubeletStarts, ASlotDoesNotStartBeforeSharedGpusAreReady) {
  offer(shared_machine_for_test(), shares_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kShareMemory, 2}})).ok());
  const auto started = kubelet_.start_container("u1", "main");
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().text(), HasSubstr("UNAVAILABLE: shared GPUs are not ready yet"));
  EXPECT_THAT(*grants::list(host_), IsEmpty());
}

TEST_F(KubeletStarts, GrantsOfAnEndedPodGoAtTheSecondLook) {
  offer(machine_, mixed_mig_for_test());
  for (const auto* uid : {"u1", "u2"}) {
    ASSERT_TRUE(kubelet_.admit(pod_with(uid, {{kGpuResource, 1}})).ok());
    ASSERT_TRUE(kubelet_.start_container(uid, "main").ok());
  }
  kubelet_.remove("u1");  // the checkpoint still names it
  handler_.remove_grants_of_gone_pods(kubelet_.holders());
  EXPECT_THAT(*grants::list(host_), SizeIs(2));
  handler_.remove_grants_of_gone_pods(kubelet_.holders());
  ASSERT_THAT(*grants::list(host_), SizeIs(1));
  EXPECT_THAT(grant("u2").devices, SizeIs(1));
}

// An agent that is killed again and again sees only its own start.
TEST_F(KubeletStarts, GrantsOfPodsThatTheCheckpointDoesNotNameGoAtTheStart) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  ASSERT_TRUE(grants::write(host_, "main", {.pod = {.uid = "ended"}}).ok());
  tree_.file("run/gantry/grants/killed/main/.grant.json.tmp", "half");
  const model::Grant in_slot{.pod = {.uid = "in-slot"},
                             .share = model::GrantShare{.name = "slot-1"}};
  ASSERT_TRUE(grants::write(host_, "main", in_slot).ok());
  PreStartHandler next(*loop_, host_, "/dp", log_);
  next.remove_grants_of_unknown_pods();
  EXPECT_THAT(*grants::pods(host_), UnorderedElementsAre("in-slot", "u1"));
}

TEST_F(KubeletStarts, APodThatTheCheckpointDoesNotNameIsGoneAtTheFirstLook) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  ASSERT_TRUE(grants::write(host_, "main", {.pod = {.uid = "ended"}}).ok());
  handler_.remove_grants_of_gone_pods(kubelet_.holders());
  EXPECT_THAT(*grants::pods(host_), ElementsAre("u1"));
}

TEST_F(KubeletStarts, APodThatIsMissingOnceKeepsItsGrant) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  const auto listed = kubelet_.holders();
  for (int i = 0; i < 2; ++i) {
    handler_.remove_grants_of_gone_pods({});
    handler_.remove_grants_of_gone_pods(listed);
  }
  EXPECT_THAT(*grants::list(host_), SizeIs(1));
}

TEST_F(KubeletStarts, GrantsAreNotReadWhileTheListIsTheSame) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  ASSERT_TRUE(kubelet_.start_container("u1", "main").ok());
  const auto listed = kubelet_.holders();
  handler_.remove_grants_of_gone_pods(listed);
  ASSERT_TRUE(grants::write(host_, "main", {.pod = {.uid = "stranger"}}).ok());
  for (int i = 0; i < 3; ++i) handler_.remove_grants_of_gone_pods(listed);
  EXPECT_THAT(*grants::list(host_), SizeIs(2));
  handler_.remove_grants_of_gone_pods({});
  handler_.remove_grants_of_gone_pods(listed);
  EXPECT_THAT(*grants::list(host_), SizeIs(1));
}

TEST_F(KubeletStarts, NothingIsRemovedWhileTheCheckpointCannotBeRead) {
  ASSERT_TRUE(grants::write(host_, "main", {.pod = {.uid = "u1"}}).ok());
  tree_.file("dp/kubelet_internal_checkpoint", "{");
  for (int i = 0; i < 3; ++i) handler_.remove_grants_of_gone_pods({});
  EXPECT_THAT(*grants::list(host_), SizeIs(1));
}

TEST_F(KubeletStarts, AGrantWithAShareIsNotRemovedWithoutItsShare) {
  offer(machine_, mixed_mig_for_test());
  ASSERT_TRUE(kubelet_.admit(pod_with("u1", {{kGpuResource, 1}})).ok());
  const model::Grant in_slot{.pod = {.uid = "gone"}, .share = model::GrantShare{.name = "slot-1"}};
  ASSERT_TRUE(grants::write(host_, "main", in_slot).ok());
  for (int i = 0; i < 3; ++i) handler_.remove_grants_of_gone_pods(kubelet_.holders());
  EXPECT_THAT(*grants::list(host_), SizeIs(1));
}

// Requests and checkpoints made by hand.
class PreStart : public test::PluginFixture {
 protected:
  void write_checkpoint(const std::string& resource, const kubelet::DeviceIds& ids,
                        const std::string& uid = "u1") {
    tree_.file(
        "dp/kubelet_internal_checkpoint",
        fmt::format(R"({{"Data":{{"PodDeviceEntries":[{{"PodUID":"{}","ContainerName":"main",)"
                    R"("ResourceName":"{}","DeviceIDs":{{"-1":["{}"]}},"AllocResp":""}}],)"
                    R"("RegisteredDevices":{{}}}},"Checksum":1}})",
                    uid, resource, fmt::join(ids, "\",\"")));
  }
  PreStartHandler& handler(CheckpointRetries retries = {.pause = 1ms, .looks = 1'000'000}) {
    return handler_.emplace(*loop_, host_, "/dp", log_, retries);
  }
  void prepare(ManualRequest& asked) {
    handler_->prepare(kGpuResource, asked.request(), offering_);
  }

  // Returns when the handler has looked at the checkpoint again.
  void look_again(const ManualRequest& asked) {
    const int before = asked.looks();
    ASSERT_TRUE(until([&] { return asked.looks() > before || asked.answered(); }));
  }

  const std::string gpu_ = plan::machine_for_test().gpus[0].uuid.text;
  const std::string other_gpu_ = plan::machine_for_test().gpus[1].uuid.text;
  sys::Host host_ = tree_.host();
  LogLines lines_;
  Log log_ = lines_.log();
  std::shared_ptr<const CurrentOffer> offering_ =
      current_offer_of(plan::machine_for_test(), mixed_mig_for_test());
  std::optional<PreStartHandler> handler_;
};

TEST_F(PreStart, WaitsUntilTheCheckpointNamesTheContainer) {
  ManualRequest asked({gpu_});
  handler();
  prepare(asked);
  EXPECT_FALSE(asked.answered()) << "there is no checkpoint";
  tree_.file("dp/kubelet_internal_checkpoint", R"({"Data":)");
  look_again(asked);
  EXPECT_FALSE(asked.answered()) << "it is half written";
  write_checkpoint(kGpuResource, {other_gpu_});
  look_again(asked);
  EXPECT_FALSE(asked.answered()) << "it names another device";
  write_checkpoint(kGpuResource, {gpu_, other_gpu_});
  look_again(asked);
  EXPECT_FALSE(asked.answered()) << "that container has one device more";
  write_checkpoint(kGpuResource, {gpu_});
  ASSERT_TRUE(until([&] { return asked.answered(); }));
  EXPECT_TRUE(asked.is_ready());
  EXPECT_THAT(grants::read(host_, "u1", "main")->devices, ElementsAre(model::GpuUuid{gpu_}));
  EXPECT_TRUE(asked.dropped());
}

TEST_F(PreStart, IsAnsweredAtOnceIfTheCheckpointNamesTheContainer) {
  write_checkpoint(kGpuResource, {gpu_});
  ManualRequest asked({gpu_});
  handler();
  prepare(asked);
  EXPECT_TRUE(asked.is_ready());
}

TEST_F(PreStart, OneThatWaitsDoesNotKeepTheNextBack) {
  write_checkpoint(kGpuResource, {other_gpu_}, "u2");
  ManualRequest first({gpu_});
  ManualRequest second({other_gpu_});
  handler();
  prepare(first);
  prepare(second);
  EXPECT_FALSE(first.answered());
  EXPECT_TRUE(second.is_ready());
  write_checkpoint(kGpuResource, {gpu_}, "u1");
  EXPECT_TRUE(until([&] { return first.is_ready(); }));
}

TEST_F(PreStart, LetsAContainerStartWithoutAGrantIfTheCheckpointNeverNamesIt) {
  ManualRequest asked({gpu_});
  handler({.pause = 1ms, .looks = 3});
  prepare(asked);
  ASSERT_TRUE(until([&] { return asked.answered(); }));
  EXPECT_TRUE(asked.is_ready());
  EXPECT_THAT(*grants::list(host_), IsEmpty());
  EXPECT_THAT(lines_.text(), AllOf(HasSubstr("the container starts without a grant"),
                                   HasSubstr("no container with " + gpu_ + " of nvidia.com/gpu")));
}

TEST_F(PreStart, LooksAsOftenAsConfigured) {
  ManualRequest asked({gpu_});
  handler({.pause = 1h, .looks = 1});
  prepare(asked);
  EXPECT_TRUE(asked.is_ready()) << "the first look was the last";
}

TEST_F(PreStart, DoesNotStartASlotThatTheCheckpointNeverNames) {
  offering_ = current_offer_of(shared_machine_for_test(), shares_for_test());
  ManualRequest asked({"gib-0"});
  handler({.pause = 1ms, .looks = 3});
  handler_->prepare(kShareMemory, asked.request(), offering_);
  ASSERT_TRUE(until([&] { return asked.answered(); }));
  EXPECT_EQ(asked.error().code(), Errc::Busy) << "the kubelet tries again";
  EXPECT_THAT(asked.error().text(), HasSubstr("no container with gib-0 of aliyun.com/gpu-mem"));
}

TEST_F(PreStart, OfAKubeletThatGaveUpIsForgottenWithoutAGrant) {
  ManualRequest asked({gpu_});
  handler();
  prepare(asked);
  asked.stop_waiting();
  write_checkpoint(kGpuResource, {gpu_});
  ASSERT_TRUE(until([&] { return asked.dropped(); }));
  EXPECT_THAT(*grants::list(host_), IsEmpty());
}

TEST_F(PreStart, ThatWaitsWhenTheAgentEndsIsDroppedWithoutAnAnswer) {
  ManualRequest first({gpu_});
  ManualRequest second({other_gpu_});
  handler();
  prepare(first);
  prepare(second);
  handler_.reset();
  EXPECT_TRUE(first.dropped() && second.dropped());
  write_checkpoint(kGpuResource, {gpu_});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop_->turn(1ms).ok());
  EXPECT_FALSE(first.answered() || second.answered());
  EXPECT_EQ(first.looks(), 1);
}

TEST_F(PreStart, UsesTheOfferAtTheTimeOfTheRequest) {
  ManualRequest asked({gpu_});
  handler();
  prepare(asked);
  offering_ = current_offer_of(shared_machine_for_test(), shares_for_test());
  write_checkpoint(kGpuResource, {gpu_});
  ASSERT_TRUE(until([&] { return asked.answered(); }));
  EXPECT_TRUE(asked.is_ready());
  EXPECT_THAT(grants::read(host_, "u1", "main")->devices, ElementsAre(model::GpuUuid{gpu_}));
}

// The checkpoint has no names; the share was made from the pod itself.
TEST_F(PreStart, KeepsTheShareOfTheContainerAndTheNameOfItsPod) {
  const model::Grant known{
      .pod = {.uid = "u1", .name_space = "ml", .name = "train"},
      .share = model::GrantShare{.name = "slot-1", .parts = {{"GPU-x", 1, 64}}}};
  ASSERT_TRUE(grants::write(host_, "main", known).ok());
  write_checkpoint(kGpuResource, {gpu_});
  ManualRequest asked({gpu_});
  handler();
  prepare(asked);
  ASSERT_TRUE(asked.is_ready());
  const auto now = grants::read(host_, "u1", "main");
  ASSERT_TRUE(now.ok());
  EXPECT_THAT(now->devices, ElementsAre(model::GpuUuid{gpu_}));
  EXPECT_EQ(now->share, known.share);
  EXPECT_EQ(now->pod, known.pod);
}

}  // namespace
}  // namespace gantry::agent
