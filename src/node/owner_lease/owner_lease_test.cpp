// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/change_lock.hpp"
#include "node/owner_lease/agent_for_test.hpp"
#include "node/owner_lease/lease_socket.hpp"
#include "node/owner_lease/local_usage.hpp"
#include "node/owner_lease/protocol.hpp"
#include "node/owner_lease/with_ownership.hpp"
#include "sharing/daemon/share_record.hpp"
#include "sharing/policy/share.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace gantry::owner_lease {
namespace {

using namespace std::chrono_literals;
using model::AllocationMode;
using ownership::ActOutcome;
using ownership::GpuUsage;
using ownership::Owner;
using ownership::OwnershipStore;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const model::PciAddress leased_gpu{.bus = 0x3b};
const ownership::OwnerChange to_vm{.gpu = leased_gpu,
                                   .to = Owner::Vm,
                                   .use = AllocationMode::Vm,
                                   .what = "gantry vfio bind 0000:3b:00.0"};
const ownership::OwnerChange reset{.gpu = leased_gpu,
                                   .to = Owner::Plugin,
                                   .use = AllocationMode::Whole,
                                   .what = "gantry gpu reset 0000:3b:00.0"};

class OwnerLease : public testing::Test {
 protected:
  OwnerLease() { tree_.directory("run/gantry"); }
  ownership::OwnershipState state() const { return *OwnershipStore::peek(host_); }
  Owner owner() const { return state().find(leased_gpu)->owner; }
  Status change(const ownership::OwnerChange& change, const std::function<Status()>& act,
                std::chrono::milliseconds wait = 0ms) {
    return with_ownership(
        host_, change,
        {.wait = wait, .progress = [this](const auto& text) { progress_.push_back(text); }}, act);
  }

  test::Tree tree_;
  sys::Host host_ = tree_.host();
  std::vector<std::string> progress_;
};

Status succeed() {
  return {};
}

TEST_F(OwnerLease, WithoutAnAgentTakesTheLedgerItself) {
  const auto status = change(to_vm, succeed);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(owner(), Owner::Vm);
}

TEST_F(OwnerLease, WithoutAnAgentWaitsForUsers) {
  int looks = 0;
  const auto status = with_ownership(host_, to_vm,
                                     {.wait = 10s,
                                      .progress = [this](const auto& t) { progress_.push_back(t); },
                                      .usage = [&]() -> Result<GpuUsage> {
                                        if (++looks > 1) return GpuUsage{.withdrawn = true};
                                        return GpuUsage{.withdrawn = true, .holders = {"pod a/b"}};
                                      }},
                                     succeed);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_THAT(progress_, ElementsAre("waiting for pod a/b"));
}

TEST_F(OwnerLease, TheAgentWithdrawsGrantsAndOffersAgain) {
  TestAgent agent(host_);
  agent.set_usage({{.withdrawn = false}, {.withdrawn = false}, {.withdrawn = true}});
  const auto status = change(to_vm, [&]() -> Status {
    EXPECT_THAT(agent.notes(), ElementsAre(HasSubstr("withdraw: its owner is being changed")));
    EXPECT_THAT(state().intents, SizeIs(1));
    EXPECT_EQ(owner(), Owner::Plugin);
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(owner(), Owner::Vm);
  EXPECT_THAT(state().intents, IsEmpty());
  ASSERT_TRUE(agent.wait_for_notes(2));
  EXPECT_EQ(agent.notes()[1], "offer again");
}

TEST_F(OwnerLease, AHolderIsNamedAndTheGpuOfferedAgain) {
  TestAgent agent(host_);
  agent.set_usage({{.withdrawn = true, .holders = {"pod default/train"}}});
  bool acted = false;
  const auto status = change(to_vm, [&]() -> Status {
    acted = true;
    return {};
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_THAT(status.error().text(), HasSubstr("held by pod default/train"));
  EXPECT_FALSE(acted);
  EXPECT_TRUE(agent.wait_for_notes(2));
  EXPECT_THAT(state().intents, IsEmpty());
}

TEST_F(OwnerLease, WaitsForHoldersIfAsked) {
  TestAgent agent(host_);
  agent.set_usage({{.withdrawn = true, .holders = {"pod a/b", "pod a/c"}},
                   {.withdrawn = true, .holders = {"pod a/c"}},
                   {.withdrawn = true}});
  const auto status = change(to_vm, succeed, 30s);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_THAT(progress_, ElementsAre("waiting for pod a/b and 1 more", "waiting for pod a/c"));
}

// The wait for the lease takes all of it, so nothing is left to wait for a process that the agent
// did not see.
TEST_F(OwnerLease, TheTimeIsForTheLeaseAndTheProcessesTogether) {
  tree_.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
             "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  tree_.file("proc/4711/comm", "python3\n").link("proc/4711/fd/3", "/dev/nvidia0");
  TestAgent agent(host_);
  agent.set_usage({{.withdrawn = true, .holders = {"pod a/b"}}, {.withdrawn = true}});
  const auto slow = [this](const std::string& text) {
    progress_.push_back(text);
    std::this_thread::sleep_for(600ms);
  };
  const auto status = with_ownership(host_, to_vm, {.wait = 500ms, .progress = slow}, succeed);
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_THAT(status.error().text(), HasSubstr("process 4711"));
  EXPECT_THAT(progress_, ElementsAre("waiting for pod a/b"));
}

TEST_F(OwnerLease, OneGpuHasOneLease) {
  TestAgent agent(host_);
  const auto status = change(reset, [&]() -> Status {
    const auto second = change(to_vm, succeed);
    EXPECT_EQ(second.error().code(), Errc::Busy);
    EXPECT_THAT(second.error().text(), HasSubstr("gantry gpu reset"));
    return {};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(owner(), Owner::Plugin);
}

TEST_F(OwnerLease, AFailedActThatUndidItselfLeavesNoIntent) {
  TestAgent agent(host_);
  const auto status = change(to_vm, [] { return Status(Error(Errc::Denied, "no IOMMU")); });
  EXPECT_EQ(status.error().text(), "no IOMMU");
  EXPECT_THAT(state().intents, IsEmpty());
  EXPECT_TRUE(change(to_vm, succeed).ok());
}

TEST_F(OwnerLease, AnActThatHangsKeepsTheGpuWithdrawn) {
  TestAgent agent(host_);
  const auto status =
      change(to_vm, [] { return Status(Error(Errc::Timeout, "stuck in the kernel")); });
  EXPECT_EQ(status.error().code(), Errc::Timeout);
  EXPECT_THAT(state().intents, SizeIs(1));
  EXPECT_TRUE(change(to_vm, succeed).ok()) << "it can be repeated";
  EXPECT_THAT(state().intents, IsEmpty());
}

TEST_F(OwnerLease, ACommandThatDiesLeavesItsIntent) {
  TestAgent agent(host_);
  {
    const auto lock = ownership::ChangeLock::take(host_, leased_gpu);
    const auto socket = connect(host_.outside(kOwnerSocket));
    ASSERT_TRUE(socket.ok());
    ASSERT_TRUE(
        send(socket->get(), to_json(OwnerRequest{.intent = ownership::intent_of(to_vm)})).ok());
    const auto reply = receive(socket->get(), 5s);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(parse_reply(*reply)->kind, OwnerReply::Kind::Granted);
  }
  ASSERT_TRUE(agent.wait_for_notes(2)) << "the lease ended with the connection";
  EXPECT_THAT(ownership::abandoned_changes(host_, state()), SizeIs(1));
  EXPECT_TRUE(change(to_vm, succeed).ok());
  EXPECT_EQ(owner(), Owner::Vm);
}

TEST_F(OwnerLease, TheActSurvivesTheEndOfItsAgent) {
  auto agent = std::make_unique<TestAgent>(host_);
  const auto status = change(to_vm, [&]() -> Status {
    agent.reset();
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(owner(), Owner::Vm);
  EXPECT_THAT(state().intents, IsEmpty());
}

TEST_F(OwnerLease, TheNextAgentRecordsTheResult) {
  auto agent = std::make_unique<TestAgent>(host_);
  const auto status = change(to_vm, [&]() -> Status {
    agent.reset();
    agent = std::make_unique<TestAgent>(host_);
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(owner(), Owner::Vm);
  ASSERT_TRUE(agent->wait_for_notes(1));
  EXPECT_THAT(agent->notes(), ElementsAre("offer again"));
}

// The last act of an agent: it writes the intent of the first request that it gets.
void write_intent_and_die(const sys::Host& host, const sys::UniqueFd& listener) {
  std::optional<sys::UniqueFd> client;
  for (int i = 0; i < 500 && !client; ++i) {
    client = accept(listener.get());
    if (!client) std::this_thread::sleep_for(10ms);
  }
  ASSERT_TRUE(client);
  const auto request = parse_request(*receive(client->get(), 5s));
  ASSERT_TRUE(request.ok());
  auto ledger = *OwnershipStore::open(host);
  ASSERT_TRUE(
      ledger.adopt(request->intent.gpu, request->uuid, Owner::Plugin, AllocationMode::Whole).ok());
  ASSERT_TRUE(ledger.begin(request->intent, {.withdrawn = true}).ok());
}

TEST_F(OwnerLease, AnAgentThatDiesBeforeItsAnswerLeavesNoIntent) {
  auto listener = *listen(host_.outside(kOwnerSocket));
  std::jthread agent([&] {
    write_intent_and_die(host_, listener);
    listener.reset();
  });
  bool acted = false;
  const auto status = change(to_vm, [&]() -> Status {
    acted = true;
    return {};
  });
  agent.join();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(acted);
  EXPECT_THAT(state().intents, IsEmpty()) << "nothing was done";
  EXPECT_EQ(owner(), Owner::Plugin);
}

TEST_F(OwnerLease, ACommandThatDiesBeforeItsGrantLeavesNoIntent) {
  const auto loop = *sys::Loop::make();
  const Log log(LogForm::Klog, 0, [](std::string_view) {});
  auto ledger = *OwnershipStore::open(host_);
  LeaseServer::UsageFound found;
  int offers = 0;
  LeaseServer server(*loop, log,
                     {.ledger = [&] { return &ledger; },
                      .withdraw = [](const auto&, const auto&) {},
                      .offer_again = [&](const auto&) { ++offers; },
                      .find_usage = [&](const auto&, auto then) { found = then; }});
  ASSERT_TRUE(server.listen(host_.outside(kOwnerSocket)).ok());
  {
    const auto socket = connect(host_.outside(kOwnerSocket));
    ASSERT_TRUE(socket.ok());
    ASSERT_TRUE(
        send(socket->get(), to_json(OwnerRequest{.intent = ownership::intent_of(to_vm)})).ok());
    for (int i = 0; i < 100 && !found; ++i) (void)loop->turn(20ms);
    ASSERT_TRUE(found);
  }
  found(GpuUsage{.withdrawn = true});  // before the loop sees the end of the command
  EXPECT_THAT(ledger.state().intents, IsEmpty());
  EXPECT_GE(offers, 1);
}

TEST_F(OwnerLease, ARepeatedChangeThatDoesNothingKeepsTheIntentOfTheFirst) {
  for (const bool with_agent : {false, true}) {
    const auto agent = with_agent ? std::make_unique<TestAgent>(host_) : nullptr;
    const auto stuck = [] { return Status(Error(Errc::Timeout, "stuck")); };
    EXPECT_EQ(change(to_vm, stuck).error().code(), Errc::Timeout);
    const auto busy = [] { return Status(Error(Errc::Busy, "another Gantry is at work")); };
    EXPECT_EQ(change(to_vm, busy).error().code(), Errc::Busy);
    EXPECT_THAT(state().intents, SizeIs(1)) << "the GPU is still in between";
    EXPECT_TRUE(change(reset, succeed).ok());
    EXPECT_THAT(state().intents, IsEmpty());
    EXPECT_EQ(change(to_vm, busy).error().code(), Errc::Busy);
    EXPECT_THAT(state().intents, IsEmpty()) << "there was nothing unfinished";
  }
}

TEST_F(OwnerLease, TheAgentLearnsTheUuidOfAGpuThatItDoesNotOffer) {
  tree_.file("proc/driver/nvidia/gpus/0000:3b:00.0/information", "GPU UUID: \t GPU-a\n");
  TestAgent agent(host_);
  ASSERT_TRUE(change(to_vm, succeed).ok());
  const auto now = state();
  ASSERT_NE(now.find(model::GpuUuid{"GPU-a"}), nullptr) << "shares are refused by UUID";
  EXPECT_EQ(now.find(model::GpuUuid{"GPU-a"})->gpu, leased_gpu);
}

TEST_F(OwnerLease, AResultOfAnotherConnectionDoesNotEndALease) {
  TestAgent agent(host_);
  const auto status = change(reset, [&]() -> Status {
    const auto other = connect(host_.outside(kOwnerSocket));
    EXPECT_TRUE(other.ok());
    EXPECT_TRUE(send(other->get(), to_json(OwnerRequest{.kind = OwnerRequest::Kind::Settle,
                                                        .intent = ownership::intent_of(to_vm),
                                                        .outcome = ActOutcome::Undone}))
                    .ok());
    EXPECT_TRUE(receive(other->get(), 5s).ok());
    EXPECT_THAT(agent.notes(), SizeIs(1)) << "it is not offered again";
    return {};
  });
  EXPECT_TRUE(status.ok());
}

// The NVML process that the agent cannot see, or a share that was created at the same moment.
TEST_F(OwnerLease, WithoutAnAgentUsersAreCountedAgainAfterTheIntent) {
  tree_.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
             "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  bool acted = false;
  const auto status = with_ownership(
      host_, to_vm, {.usage = [this]() -> Result<GpuUsage> {
        tree_.file("proc/4711/comm", "python3\n").link("proc/4711/fd/3", "/dev/nvidia0");
        return GpuUsage{.withdrawn = true};
      }},
      [&]() -> Status {
        acted = true;
        return {};
      });
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_THAT(status.error().text(), HasSubstr("process 4711"));
  EXPECT_FALSE(acted);
  EXPECT_THAT(state().intents, IsEmpty());
}

TEST_F(OwnerLease, AnAgentThatStartsDuringTheActRecordsTheResult) {
  std::unique_ptr<TestAgent> agent;
  const auto status = change(to_vm, [&]() -> Status {
    agent = std::make_unique<TestAgent>(host_);
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(owner(), Owner::Vm);
  EXPECT_THAT(state().intents, IsEmpty());
}

const model::PciAddress second_gpu{.bus = 0x86};

std::vector<ownership::OwnerChange> both_to_vm() {
  auto second = to_vm;
  second.gpu = second_gpu;
  second.what = "gantry vfio bind 0000:86:00.0";
  return {to_vm, second};
}

TEST_F(OwnerLease, OneActChangesSeveralGpus) {
  for (const bool with_agent : {false, true}) {
    const auto agent = with_agent ? std::make_unique<TestAgent>(host_) : nullptr;
    const auto status = with_ownership(host_, both_to_vm(), {}, [&] {
      EXPECT_THAT(state().intents, SizeIs(2));
      return JointOutcome{};
    });
    ASSERT_TRUE(status.ok()) << status.error().text();
    EXPECT_EQ(owner(), Owner::Vm);
    EXPECT_EQ(state().find(second_gpu)->owner, Owner::Vm);
    EXPECT_THAT(state().intents, IsEmpty());
  }
}

TEST_F(OwnerLease, AnActThatFailsKeepsTheOwnersOfAllGpus) {
  const auto undone = [] { return JointOutcome{Error(Errc::Denied, "no IOMMU")}; };
  const auto status = with_ownership(host_, both_to_vm(), {}, undone);
  EXPECT_EQ(status.error().text(), "no IOMMU");
  EXPECT_THAT(state().intents, IsEmpty());
  const auto stuck = [] { return JointOutcome{Error(Errc::Timeout, "stuck")}; };
  EXPECT_EQ(with_ownership(host_, both_to_vm(), {}, stuck).error().code(), Errc::Timeout);
  EXPECT_THAT(state().intents, SizeIs(2));
  EXPECT_EQ(owner(), Owner::Plugin);
}

TEST_F(OwnerLease, OneGpuThatIsStuckDoesNotKeepTheOther) {
  for (const auto& [stuck, free] : {std::pair(leased_gpu, second_gpu), {second_gpu, leased_gpu}}) {
    const auto status = with_ownership(host_, both_to_vm(), {}, [&free = free] {
      return JointOutcome{Error(Errc::Timeout, "stuck"), {{free, Error(Errc::Denied, "free")}}};
    });
    EXPECT_EQ(status.error().code(), Errc::Timeout);
    EXPECT_EQ(status.error().text(), "stuck");
    ASSERT_THAT(state().intents, SizeIs(1));
    EXPECT_EQ(state().intents.front().gpu, stuck);
    ASSERT_TRUE(with_ownership(host_, both_to_vm(), {},
                               [] { return JointOutcome{Error(Errc::Denied, "undone")}; })
                    .error()
                    .code() == Errc::Denied);
    ASSERT_THAT(state().intents, IsEmpty());
  }
}

TEST_F(OwnerLease, AnActMayFailForOneGpuAlone) {
  for (const auto& [failed, done] : {std::pair(leased_gpu, second_gpu), {second_gpu, leased_gpu}}) {
    const auto status = with_ownership(host_, both_to_vm(), {}, [&failed = failed] {
      return JointOutcome{.of = {{failed, Error(Errc::Internal, "in between")}}};
    });
    EXPECT_TRUE(status.ok()) << status.error().text();
    EXPECT_EQ(state().find(done)->owner, Owner::Vm);
    ASSERT_THAT(state().intents, SizeIs(1));
    EXPECT_EQ(state().intents.front().gpu, failed);
    ASSERT_TRUE(with_ownership(host_, both_to_vm(), {}, [] { return JointOutcome{}; }).ok());
    EXPECT_THAT(state().intents, IsEmpty());
  }
}

TEST_F(OwnerLease, IfOneGpuCannotBeHadNoneIsChanged) {
  const auto taken = ownership::ChangeLock::take(host_, second_gpu);
  bool acted = false;
  const auto status = with_ownership(host_, both_to_vm(), {}, [&] {
    acted = true;
    return JointOutcome{};
  });
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_THAT(status.error().text(), HasSubstr("0000:86:00.0"));
  EXPECT_FALSE(acted);
  EXPECT_THAT(state().intents, IsEmpty());
  EXPECT_EQ(owner(), Owner::Plugin);
}

TEST_F(OwnerLease, TheAgentLearnsWhichProgramsDoNotCount) {
  TestAgent agent(host_);
  ASSERT_TRUE(with_ownership(host_, to_vm, {.yielding = {"nvidia-persiste"}}, succeed).ok());
  EXPECT_THAT(agent.notes(), testing::Contains("yields: nvidia-persiste"));
}

TEST_F(OwnerLease, TheSocketIsForItsOwnerAlone) {
  TestAgent agent(host_);
  EXPECT_EQ(host_.info(kOwnerSocket)->mode, 0600U);
}

TEST_F(OwnerLease, ABadMessageIsRefusedAndTheAgentGoesOn) {
  TestAgent agent(host_);
  const auto socket = connect(host_.outside(kOwnerSocket));
  ASSERT_TRUE(socket.ok());
  for (const auto* text : {"", "{", R"({"version":99})", R"({"version":1,"request":"x"})"}) {
    if (*text == '\0') continue;  // an empty message is the end of the connection
    ASSERT_TRUE(send(socket->get(), text).ok());
    const auto reply = receive(socket->get(), 5s);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(parse_reply(*reply)->kind, OwnerReply::Kind::Refused) << text;
  }
  EXPECT_TRUE(change(to_vm, succeed).ok());
}

TEST(OwnerProtocol, MessagesReadBackUnchanged) {
  const OwnerRequest request{.kind = OwnerRequest::Kind::Settle,
                             .intent = ownership::intent_of(to_vm),
                             .wait = 5s,
                             .yielding = {"nv-hostengine"},
                             .uuid = {"GPU-a"},
                             .outcome = ActOutcome::Undone};
  const auto read = parse_request(to_json(request));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, request);
  const OwnerReply reply{.kind = OwnerReply::Kind::Refused, .code = Errc::Busy, .text = "held"};
  EXPECT_EQ(*parse_reply(to_json(reply)), reply);
}

TEST(LocalUsage, NamesProcessesAndPods) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
            "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  tree.file("proc/4711/comm", "python3\n").link("proc/4711/fd/3", "/dev/nvidia0");
  tree.file("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
            R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"main",)"
            R"("ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["GPU-a::2"]},"AllocResp":""}],)"
            R"("RegisteredDevices":{}},"Checksum":1})");
  const auto usage = local_usage(tree.host(), leased_gpu);
  ASSERT_TRUE(usage.ok()) << usage.error().text();
  EXPECT_TRUE(usage->withdrawn);
  EXPECT_THAT(usage->holders, ElementsAre("process 4711 (python3) with /dev/nvidia0 open",
                                          "pod uid-1 (container main)"));
}

daemon::ShareRecord stored_share(const std::string& name, const std::string& gpu) {
  return {.share = *policy::parse_share({.name = name, .memory = "10GiB"}),
          .cards = {{.uuid = {gpu}, .memory_bytes = std::uint64_t{80} << 30}}};
}

// The next `gantry share` command starts another daemon, which serves them again.
TEST(LocalUsage, NamesSharesOfADaemonThatDoesNotRun) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
            "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  const auto host = tree.host();
  ASSERT_TRUE(daemon::write_record(host, stored_share("train", "GPU-a")).ok());
  ASSERT_TRUE(daemon::write_record(host, stored_share("other", "GPU-b")).ok());
  auto ended = stored_share("ended", "GPU-a");
  ended.holder = {.pid = 1, .started = 1};  // another process has this pid now
  ASSERT_TRUE(daemon::write_record(host, ended).ok());
  const auto usage = local_usage(host, leased_gpu);
  ASSERT_TRUE(usage.ok()) << usage.error().text();
  EXPECT_THAT(usage->holders, ElementsAre("share train"));
  tree.file("run/gantry/shares/bad/share.json", "{");
  EXPECT_THAT(local_usage(host, leased_gpu).error().text(), HasSubstr("bad/share.json"));
}

// The ids of GKE name the node of the GPU, those of MIG instances name no GPU.
TEST(LocalUsage, NamesPodsWithOtherKindsOfDevices) {
  for (const auto* id : {"nvidia0", "nvidia0/vgpu1", "MIG-5c89852c"}) {
    test::Tree tree;
    tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
              "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
    tree.file("proc/driver/nvidia/gpus/0000:5e:00.0/information",
              "GPU UUID: \t GPU-b\nDevice Minor: \t 1\n");
    tree.directory("proc/driver/nvidia/capabilities/gpu0/mig/gi1");
    tree.file(
        "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
        fmt::format(
            R"({{"Data":{{"PodDeviceEntries":[{{"PodUID":"uid-1","ContainerName":"main",)"
            R"("ResourceName":"nvidia.com/gpu","DeviceIDs":{{"-1":["{}"]}},"AllocResp":""}}],)"
            R"("RegisteredDevices":{{}}}},"Checksum":1}})",
            id));
    EXPECT_THAT(local_usage(tree.host(), leased_gpu)->holders,
                ElementsAre("pod uid-1 (container main)"))
        << id;
    EXPECT_THAT(local_usage(tree.host(), {.bus = 0x5e})->holders, IsEmpty()) << id;
  }
}

// Of a card with MIG, only the instances that go must be unused.
TEST(LocalUsage, OfPartsLeavesOutTheUsersOfOthers) {
  const ownership::ChangedParts parts{.kept = {"MIG-kept"},
                                      .going = {"MIG-going", "nvidia0/gi2"},
                                      .nodes = {"/dev/nvidia-caps/nvidia-cap21"}};
  const auto holders_with = [&](const std::string& id) {
    test::Tree tree;
    tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
              "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
    tree.directory("proc/driver/nvidia/capabilities/gpu0/mig/gi1");
    tree.file("proc/70/comm", "train\n")
        .link("proc/70/fd/3", "/dev/nvidia0")
        .link("proc/70/fd/4", "/dev/nvidia-caps/nvidia-cap12");
    tree.file(
        "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
        fmt::format(
            R"({{"Data":{{"PodDeviceEntries":[{{"PodUID":"uid-1","ContainerName":"main",)"
            R"("ResourceName":"nvidia.com/gpu","DeviceIDs":{{"-1":["{}"]}},"AllocResp":""}}],)"
            R"("RegisteredDevices":{{}}}},"Checksum":1}})",
            id));
    return local_usage(tree.host(), leased_gpu, {}, parts)->holders;
  };
  for (const auto* id : {"MIG-kept", "MIG-kept::1", "nvidia0/gi1", "nvidia0/gi1/vgpu0"})
    EXPECT_THAT(holders_with(id), IsEmpty()) << id;
  for (const auto* id : {"MIG-going", "MIG-going::1", "nvidia0/gi2", "nvidia0/gi2/vgpu0", "GPU-a"})
    EXPECT_THAT(holders_with(id), ElementsAre("pod uid-1 (container main)")) << id;
}

TEST(LocalUsage, OfPartsNamesTheProcessesOnTheirNodes) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
            "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  tree.file("proc/70/comm", "train\n").link("proc/70/fd/4", "/dev/nvidia-caps/nvidia-cap21");
  tree.file("proc/71/comm", "other\n").link("proc/71/fd/4", "/dev/nvidia0");
  const ownership::ChangedParts parts{.going = {"MIG-going"},
                                      .nodes = {"/dev/nvidia-caps/nvidia-cap21"}};
  EXPECT_THAT(local_usage(tree.host(), leased_gpu, {}, parts)->holders,
              ElementsAre(HasSubstr("process 70")));
}

TEST(OwnerProtocol, CarriesThePartsOfACard) {
  const ownership::ChangedParts parts{
      .kept = {"MIG-a"}, .going = {"MIG-b"}, .nodes = {"/dev/nvidia-caps/nvidia-cap21"}};
  auto change = to_vm;
  change.parts = parts;
  OwnerRequest request{.intent = ownership::intent_of(change), .parts = parts};
  EXPECT_EQ(request.intent.kept, parts.kept);
  EXPECT_EQ(*parse_request(to_json(request)), request);
  request.parts->going.resize(kMaxParts + 1, "MIG-c");
  EXPECT_FALSE(parse_request(to_json(request)).ok());
}

TEST(OwnerProtocol, ALongOrWrongListOfProgramsIsRefused) {
  OwnerRequest request{.intent = ownership::intent_of(to_vm),
                       .yielding = std::vector<std::string>(kMaxYielding + 1, "x")};
  EXPECT_FALSE(parse_request(to_json(request)).ok());
  for (const auto* name : {"", "sixteen-letters!"}) {
    request.yielding = {name};
    EXPECT_FALSE(parse_request(to_json(request)).ok()) << name;
  }
}

TEST(LocalUsage, LeavesOutProgramsThatTheCommandStopsItself) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
            "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  tree.file("proc/70/comm", "nvidia-persiste\n").link("proc/70/fd/3", "/dev/nvidia0");
  tree.file("proc/71/comm", "nvidia-persiste\n").link("proc/71/fd/3", "/dev/nvidia0");
  tree.file("proc/71/cgroup",
            "0::/kubepods.slice/kubepods-pod6f9c1d1e_0000_4000_8000_000000000001.slice/x\n");
  tree.file("proc/72/comm", "python3\n").link("proc/72/fd/3", "/dev/nvidia0");
  const std::vector<std::string> stopped{"nvidia-persiste"};
  EXPECT_THAT(local_usage(tree.host(), leased_gpu, stopped)->holders,
              ElementsAre(HasSubstr("process 71"), HasSubstr("process 72")));
  const std::vector<std::string> any{std::string(kAnyProgram)};
  EXPECT_THAT(local_usage(tree.host(), leased_gpu, any)->holders,
              ElementsAre(HasSubstr("process 71")));
}

TEST(LocalUsage, SaysHowThePersistenceDaemonLetsGo) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
            "GPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  tree.file("proc/70/comm", "nvidia-persiste\n").link("proc/70/fd/3", "/dev/nvidia0");
  tree.file("proc/72/comm", "python3\n").link("proc/72/fd/3", "/dev/nvidia0");
  EXPECT_THAT(local_usage(tree.host(), leased_gpu)->holders,
              ElementsAre(HasSubstr("sudo systemctl stop nvidia-persistenced"),
                          testing::Not(HasSubstr("sudo"))));
}

}  // namespace
}  // namespace gantry::owner_lease
