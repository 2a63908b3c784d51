// SPDX-License-Identifier: Apache-2.0
// With a share daemon on a simulated machine, and an API server in this process.
#include "node/agent/pod_shares.hpp"

#include "container/grants/grants.hpp"
#include "node/agent/kubelet_fixture_for_test.hpp"
#include "node/agent/pre_start_handler.hpp"
#include "node/pod_shares/node_snapshot_for_test.hpp"
#include "sharing/daemon/client.hpp"
#include "support/eventually.hpp"
#include "support/fake_api_server.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// NOLINTNEXTLINE(readability-identifier-naming): constant, though not constexpr
const std::string kMemory{resources::kMemoryResource};

// Holds the worker at the moment when it asks how to write the specification of a share.
class Gate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Every share fails with this from now on.
  void refuse(Error error) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }
  void wait_for_visitors(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return visitors_ >= count; });
  }
  Result<publish::ShareSpecOptions> pass() {
    std::unique_lock lock(mutex_);
    ++visitors_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    if (refusal_) return *refusal_;
    return publish::ShareSpecOptions{.cuda_library = "/f.so", .nvml_library = "/n.so"};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int visitors_ = 0;
  std::optional<Error> refusal_;
};

class PodSharesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    auto machine = pod_shares::read_snapshot(host_);
    ASSERT_TRUE(machine.ok()) << machine.error().text();
    machine_ = *std::move(machine);
  }
  void TearDown() override {
    gate_.open();
    shares_.reset();
    pod_shares::ShareProvisioner cleaner({.host = host_,
                                          .share_daemon = daemon_,
                                          .spec = [this] { return gate_.pass(); },
                                          .note = [](const pod_shares::ShareNote&) {}});
    cleaner.remove_all_except([](const auto&) { return false; });  // the share daemon exits
  }

  enum class ApiServer : std::uint8_t { Present, Absent };
  PodShares& begin(ApiServer api = ApiServer::Present) {
    PodShares::Options options{.node = "n",
                               .share_daemon = daemon_,
                               .spec = [this](const sys::Host&) { return gate_.pass(); }};
    if (api == ApiServer::Present) {
      options.access.emplace();
      options.access->server = *http::parse_url(server_.url());
    }
    auto& shares = shares_.emplace(*loop_, host_, std::move(options), log_);
    shares.set_machine(machine_);
    return shares;
  }

  // A pod on this node that asks for so many GiB of a GPU.
  void put_pod(const std::string& uid, std::size_t gpu, std::uint64_t gib = 4) {
    const podspec::Placement placement{{"c",
                                        {{machine_.inventory.gpus[gpu].uuid.text,
                                          static_cast<std::uint32_t>(gpu), gib * 1024, 0}}}};
    server_.put(
        path_of(uid),
        fmt::format(
            R"({{"metadata":{{"name":"p-{0}","namespace":"d","uid":"{0}","annotations":{{)"
            R"("gantry.dev/placement":{1}}}}},"spec":{{"nodeName":"n","containers":[{{"name":"c",)"
            R"("resources":{{"limits":{{"{2}":"{3}"}}}}}}]}}}})",
            uid, json::quote(podspec::to_json(placement)), kMemory, gib));
  }
  static std::string path_of(const std::string& uid) {
    return "/api/v1/namespaces/d/pods/p-" + uid;
  }

  static pod_shares::ContainerStart start(const std::string& uid, const std::string& id) {
    return {.pod = {.uid = uid}, .containers = {{"c", {{kMemory, {id}}}}}};
  }
  // Fills a slot and waits for the answer.
  ManualRequest filled(const std::string& uid, const std::string& id) {
    ManualRequest asked({id});
    shares_->fill(start(uid, id), asked.request());
    EXPECT_TRUE(until([&] { return asked.answered(); }));
    return asked;
  }
  // Ends shares and waits until that is done.
  void end(const std::set<std::string>& gone, const std::set<std::string>& remembered) {
    shares_->end(gone, remembered);
    settle();
  }
  // Waits until the worker has done all it was given: it answers in order.
  void settle() { filled("nobody", "none"); }

  std::vector<std::string> granted_pods() const {
    std::vector<std::string> uids;
    const auto granted = grants::list(host_);
    EXPECT_TRUE(granted.ok());
    for (const auto& grant : *granted) uids.push_back(grant.grant.pod.uid);
    return uids;
  }

  template <class Condition>
  bool until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!condition() && std::chrono::steady_clock::now() < end)
      EXPECT_TRUE(loop_->turn(10ms).ok());
    return condition();
  }

  test::Machine simulated_{"h200x8"};
  sys::Host host_ = simulated_.host();
  test::FakeApiServer server_;
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  LogLines lines_;
  Log log_ = lines_.log();
  std::vector<std::string> daemon_{test::built("test-programs/share_daemon_program")};
  pod_shares::NodeSnapshot machine_;
  Gate gate_;
  std::optional<PodShares> shares_;
};

TEST_F(PodSharesTest, AContainerIsReadyWhenItsShareIsThereAndThePodIsMarked) {
  put_pod("a", 5);
  begin();
  const auto asked = filled("a", "gib-0");
  ASSERT_TRUE(asked.is_ready()) << asked.error().text();
  const auto grant = grants::read(host_, "a", "c");
  ASSERT_TRUE(grant.ok() && grant->share);
  EXPECT_EQ(grant->share->parts[0].uuid, machine_.inventory.gpus[5].uuid);
  EXPECT_TRUE(host_.exists(publish::slot_spec_path(grant->share->name)));
  EXPECT_TRUE(test::eventually([&] {
    return server_.get(path_of("a")).find(R"("ALIYUN_COM_GPU_MEM_ASSIGNED":"true")") !=
           std::string::npos;
  }));
  EXPECT_THAT(lines_.text(), HasSubstr(R"(share is ready pod_uid="a" containers=["c"])"));
}

TEST_F(PodSharesTest, RequestsAreAnsweredInTheirOrderAndTheLoopDoesNotWait) {
  for (const auto* uid : {"a", "b", "c"}) put_pod(uid, 1);
  begin();
  gate_.refuse(Error(Errc::NotFound, "the fence is not installed"));
  gate_.close();
  std::vector<std::string> order;
  std::vector<ManualRequest> asked;
  for (const auto* uid : {"a", "b", "c"}) {
    asked.emplace_back(kubelet::DeviceIds{uid});
    shares_->fill(start(uid, uid),
                  asked.back().request([&order, uid] { order.emplace_back(uid); }));
  }
  gate_.wait_for_visitors(1);
  bool turned = false;
  const auto timer = loop_->after(0ms, [&] { turned = true; });
  ASSERT_TRUE(until([&] { return turned; }));
  EXPECT_THAT(order, IsEmpty());
  gate_.open();
  ASSERT_TRUE(until([&] { return order.size() == 3; }));
  EXPECT_THAT(order, ElementsAre("a", "b", "c"));
  for (const auto& one : asked) {
    EXPECT_THAT(one.error().text(), HasSubstr("the fence is not installed"));
    EXPECT_TRUE(one.dropped());
  }
  EXPECT_THAT(granted_pods(), IsEmpty()) << "what failed leaves no grant";
}

TEST_F(PodSharesTest, ARequestThatFailsDoesNotKeepTheNextBack) {
  put_pod("a", 1);
  begin();
  ManualRequest unknown({"gib-0"});
  shares_->fill(start("unknown", "gib-0"), unknown.request());
  EXPECT_TRUE(filled("a", "gib-1").is_ready());
  EXPECT_EQ(unknown.error().code(), Errc::Busy);
  EXPECT_THAT(unknown.error().text(), HasSubstr("the API server has no pod unknown on node n"));
}

TEST_F(PodSharesTest, APodThatTheWatchHasNotReportedIsReadFromTheApiServer) {
  server_.override_answers([](const http::Request& request) -> std::unique_ptr<http::Response> {
    if (request.target.find("watch=true") == std::string::npos) return nullptr;
    return std::make_unique<http::Response>(
        http::Response{.status = 503, .headers = {}, .body = ""});
  });
  begin();
  ASSERT_TRUE(test::eventually(
      [&] { return lines_.text().find("cannot read the pods") != std::string::npos; }));
  put_pod("a", 1);
  const auto asked = filled("a", "gib-0");
  EXPECT_TRUE(asked.is_ready()) << asked.error().text();
}

TEST_F(PodSharesTest, WhileTheApiServerFailsTheKubeletIsAskedToTryAgain) {
  put_pod("a", 1);
  server_.override_answers([](const http::Request&) {
    return std::make_unique<http::Response>(
        http::Response{.status = 503, .headers = {}, .body = ""});
  });
  begin();
  const auto refused = filled("a", "gib-0");
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_THAT(refused.error().text(), HasSubstr("the agent cannot read the pod"));
  server_.override_answers(nullptr);
  const auto again = filled("a", "gib-0");
  EXPECT_TRUE(again.is_ready()) << again.error().text();
}

// The agent's supervisor replaces such a daemon. Until then the kubelet must not wait for its own
// deadline of 30 s.
TEST_F(PodSharesTest, AStoppedShareDaemonIsNamedInTimeWithTheCommandThatHelps) {
  for (const auto* uid : {"a", "b"}) put_pod(uid, 1);
  begin();
  ASSERT_TRUE(filled("a", "gib-0").is_ready());
  const auto daemon = daemon::Client::connect(host_)->daemon_pid();
  ASSERT_GT(daemon, 1);
  ASSERT_EQ(::kill(daemon, SIGSTOP), 0);
  const auto begun = std::chrono::steady_clock::now();
  const auto refused = filled("b", "gib-1");
  const auto took = std::chrono::steady_clock::now() - begun;
  ::kill(daemon, SIGCONT);
  ASSERT_TRUE(refused.answered());
  EXPECT_LT(took, daemon::kAnswerWithin + 5s);
  EXPECT_THAT(refused.error().text(), AllOf(HasSubstr(fmt::format("share daemon (pid {})", daemon)),
                                            HasSubstr("is stopped")));
  EXPECT_THAT(refused.error().remedy(), HasSubstr(fmt::format("kill -9 {}", daemon)));
  EXPECT_THAT(granted_pods(), ElementsAre("a")) << "what failed leaves no grant";
  const auto again = filled("b", "gib-1");
  EXPECT_TRUE(again.is_ready()) << again.error().text();
}

TEST_F(PodSharesTest, WithoutAnApiServerARequestSaysWhatToDoAndStartsNoDaemon) {
  begin(ApiServer::Absent);
  const auto asked = filled("a", "gib-0");
  EXPECT_EQ(asked.error().code(), Errc::Busy);
  EXPECT_THAT(asked.error().text(), HasSubstr("give the agent a --kubeconfig"));
  EXPECT_FALSE(host_.exists(daemon::kControlSocket));
}

TEST_F(PodSharesTest, ThePlaceOfAPodIsJudgedByTheNewestMachine) {
  put_pod("a", 5);
  begin();
  auto smaller = machine_;
  smaller.facts.cards.resize(4);
  shares_->set_machine(smaller);
  EXPECT_FALSE(filled("a", "gib-0").is_ready());
  shares_->set_machine(machine_);
  const auto asked = filled("a", "gib-0");
  EXPECT_TRUE(asked.is_ready()) << asked.error().text();
}

TEST_F(PodSharesTest, AKubeletThatGaveUpIsNotAnswered) {
  put_pod("a", 1);
  begin();
  gate_.refuse(Error(Errc::NotFound, "the fence is not installed"));
  gate_.close();
  ManualRequest asked({"gib-0"});
  shares_->fill(start("a", "gib-0"), asked.request());
  asked.stop_waiting();
  gate_.open();
  ASSERT_TRUE(until([&] { return asked.dropped(); }));
  EXPECT_FALSE(asked.answered());
}

TEST_F(PodSharesTest, RequestsThatWaitWhenTheAgentEndsAreDroppedWithoutAnAnswer) {
  for (const auto* uid : {"a", "b", "c"}) put_pod(uid, 1);
  begin();
  gate_.refuse(Error(Errc::NotFound, "the fence is not installed"));
  std::vector<ManualRequest> asked;
  for (const auto* uid : {"a", "b", "c"}) {
    asked.emplace_back(kubelet::DeviceIds{uid});
    shares_->fill(start(uid, uid), asked.back().request());
  }
  gate_.wait_for_visitors(2);  // the answer to the first is on its way to the loop
  shares_.reset();
  for (const auto& one : asked) EXPECT_TRUE(one.dropped());
  bool turned = false;
  loop_->post([&] { turned = true; });
  ASSERT_TRUE(until([&] { return turned; }));
  for (const auto& one : asked) EXPECT_FALSE(one.answered());
}

TEST_F(PodSharesTest, ThePodsThatAreGoneLoseTheirShares) {
  for (const auto* uid : {"gone", "known", "listed"}) put_pod(uid, 1);
  begin();
  ASSERT_TRUE(filled("gone", "gib-0").is_ready());
  ASSERT_TRUE(filled("known", "gib-1").is_ready());
  ASSERT_TRUE(filled("listed", "gib-2").is_ready());
  const auto slot = grants::read(host_, "gone", "c")->share->name;
  server_.remove(path_of("gone"));
  server_.remove(path_of("listed"));
  // The kubelet lists one of the two that the API server has deleted.
  ASSERT_TRUE(test::eventually([&] {
    end({"gone", "known"}, {"gone", "known", "listed"});
    return granted_pods().size() < 3;
  }));
  EXPECT_THAT(granted_pods(), ElementsAre("known", "listed"));
  EXPECT_FALSE(host_.exists(publish::slot_spec_path(slot)));
  EXPECT_THAT(lines_.text(), HasSubstr(R"(removed a share pod_uid="gone" container="c")"));
}

TEST_F(PodSharesTest, UntilTheApiServerAnswersPodsOfTheCheckpointKeepTheirShares) {
  for (const auto* uid : {"ended", "remembered"}) put_pod(uid, 1);
  begin();
  ASSERT_TRUE(filled("ended", "gib-0").is_ready());
  ASSERT_TRUE(filled("remembered", "gib-1").is_ready());
  shares_.reset();
  begin(ApiServer::Absent);
  end({"ended", "remembered"}, {"remembered"});
  EXPECT_THAT(granted_pods(), ElementsAre("remembered"));
}

TEST_F(PodSharesTest, SharesAreEndedByOneRunAtATime) {
  for (const auto* uid : {"a", "b"}) put_pod(uid, 1);
  begin();
  ASSERT_TRUE(filled("a", "gib-0").is_ready());
  ASSERT_TRUE(filled("b", "gib-1").is_ready());
  shares_.reset();
  begin(ApiServer::Absent);
  shares_->end({"a"}, {});
  shares_->end({"b"}, {});  // the first run has not finished: the loop has not turned
  settle();
  EXPECT_THAT(granted_pods(), ElementsAre("b"));
  end({"b"}, {});
  EXPECT_THAT(granted_pods(), IsEmpty());
}

TEST_F(PodSharesTest, AStartOfTheKubeletIsAnsweredWithTheShareOfItsPod) {
  put_pod("u1", 3);
  begin();
  const auto offering = current_offer_of(shared_machine_for_test(), shares_for_test());
  simulated_.file(
      "/dp/kubelet_internal_checkpoint",
      fmt::format(R"({{"Data":{{"PodDeviceEntries":[{{"PodUID":"u1","ContainerName":"c",)"
                  R"("ResourceName":"{}","DeviceIDs":{{"-1":["gib-0"]}},"AllocResp":""}}],)"
                  R"("RegisteredDevices":{{}}}},"Checksum":1}})",
                  kMemory));
  PreStartHandler handler(*loop_, host_, "/dp", log_);
  handler.set_pod_shares(&*shares_);
  ManualRequest asked({"gib-0"});
  handler.prepare(kMemory, asked.request(), offering);
  EXPECT_FALSE(asked.answered());
  ASSERT_TRUE(until([&] { return asked.answered(); }));
  EXPECT_TRUE(asked.is_ready()) << asked.error().text();
  EXPECT_THAT(granted_pods(), ElementsAre("u1"));
  // Its pod is deleted: the kubelet lists it no more, and the second look ends the share.
  server_.remove(path_of("u1"));
  EXPECT_TRUE(test::eventually([&] {
    handler.remove_grants_of_gone_pods({});
    settle();
    return granted_pods().empty();
  }));
}

model::DeviceAllocation allocation(std::string uid, std::string container, std::string resource,
                                   std::vector<std::string> ids) {
  return {.pod = {.uid = std::move(uid)},
          .container = std::move(container),
          .resource = std::move(resource),
          .ids = std::move(ids)};
}

TEST(ContainerStartOf, NamesAllSlotsOfTheContainerAndNoOtherDevice) {
  const kubelet::Checkpoint checkpoint{
      .holders = {allocation("u1", "c", "nvidia.com/gpu", {"GPU-a"}),
                  allocation("u1", "c", "slots/a", {"s-0", "s-1"}),
                  allocation("u1", "c", "slots/b", {"t-0"}),
                  allocation("u1", "other", "slots/a", {"s-2"}),
                  allocation("u2", "c", "slots/a", {"s-3"})}};
  const auto start =
      container_start(checkpoint, {checkpoint.holders[1]},
                      [](const std::string& resource) { return resource.starts_with("slots/"); });
  EXPECT_EQ(start.pod.uid, "u1");
  ASSERT_EQ(start.containers.size(), 1U);
  EXPECT_EQ(start.containers[0].name, "c");
  EXPECT_THAT(start.containers[0].ids, ElementsAre(Pair("slots/a", ElementsAre("s-0", "s-1")),
                                                   Pair("slots/b", ElementsAre("t-0"))));
}

TEST(ContainerStartOf, NamesEveryContainerThatHasTheIds) {
  const kubelet::Checkpoint checkpoint{.holders = {allocation("u1", "init", "slots/a", {"s-0"}),
                                                   allocation("u1", "main", "slots/a", {"s-0"})}};
  const auto start =
      container_start(checkpoint, checkpoint.holders, [](const std::string&) { return true; });
  ASSERT_EQ(start.containers.size(), 2U);
  EXPECT_EQ(start.containers[0].name, "init");
  EXPECT_EQ(start.containers[1].name, "main");
}

}  // namespace
}  // namespace gantry::agent
