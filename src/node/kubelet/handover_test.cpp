// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/handover.hpp"

#include "net/grpc/socket.hpp"
#include "support/plugin_fixture.hpp"

#include <sys/socket.h>

namespace gantry::kubelet {
namespace {

using std::chrono::milliseconds;
using sys::UniqueFd;
using test::FakeKubelet;
using test::kGpuResource;

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  // Whether the other end is still open somewhere.
  bool open() const {
    char byte = 0;
    return ::recv(ours.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0;
  }
  UniqueFd ours;
  UniqueFd theirs;
};

class HandoverTest : public test::PluginFixture {
 protected:
  HandoverServer::Callbacks callbacks() {
    return {.connections = [this] { return give_; },
            .quiet = [this] { return quiet_; },
            .given = [this] { given_ = true; }};
  }
  std::unique_ptr<Takeover> take_over(milliseconds deadline = milliseconds{30'000}) {
    return std::make_unique<Takeover>(
        *loop_, tree_.path("h.sock"), deadline,
        [this](Result<std::vector<TakenConnection>> taken) { result_.emplace(std::move(taken)); });
  }
  static std::vector<LentConnection> handed(const Plugin& plugin) {
    std::vector<LentConnection> all;
    for (const int fd : plugin.connections()) all.push_back({plugin.resource(), fd});
    return all;
  }
  std::vector<LentConnection> give_;
  bool quiet_ = true;
  bool given_ = false;
  std::optional<Result<std::vector<TakenConnection>>> result_;
};

TEST_F(HandoverTest, TheNewOneHasTheConnectionsBeforeTheOldOneLetsGo) {
  std::vector<Pair> pairs(300);  // more than one message takes
  for (const auto& pair : pairs) give_.push_back({kGpuResource, pair.theirs.get()});
  HandoverServer old(*loop_, callbacks());
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());
  const auto taking = take_over();
  ASSERT_TRUE(until([&] { return given_ && result_; }));
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ((*result_)->size(), 300U);

  IdleConnections kept(*loop_);
  kept.keep(**std::move(result_));
  for (auto& pair : pairs) pair.theirs.reset();  // the old process ends
  run_loop_for(milliseconds{20});
  EXPECT_EQ(kept.count(), 300U);
  EXPECT_TRUE(pairs[0].open());
  EXPECT_EQ(::send(pairs[0].ours.get(), "ping", 4, MSG_NOSIGNAL), 4);  // is read and dropped
  pairs[1].ours.reset();                                               // the kubelet closes one
  EXPECT_TRUE(until([&] { return kept.count() == 299; }));
}

TEST_F(HandoverTest, EachConnectionComesWithItsResource) {
  const Pair gpu;
  const Pair mig;
  give_ = {{"nvidia.com/gpu", gpu.theirs.get()}, {"nvidia.com/mig-1g.18gb", mig.theirs.get()}};
  HandoverServer old(*loop_, callbacks());
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());
  const auto taking = take_over();
  ASSERT_TRUE(until([&] { return given_ && result_; }));
  ASSERT_EQ((*result_)->size(), 2U);
  EXPECT_EQ((**result_)[0].resource, "nvidia.com/gpu");
  EXPECT_EQ((**result_)[1].resource, "nvidia.com/mig-1g.18gb");
}

TEST_F(HandoverTest, TheOldOneWaitsForAGoodMoment) {
  quiet_ = false;
  HandoverServer old(*loop_, callbacks());
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());
  const auto taking = take_over();
  run_loop_for(milliseconds{100});
  EXPECT_FALSE(result_);
  quiet_ = true;
  EXPECT_TRUE(until([&] { return given_ && result_; }));
}

TEST_F(HandoverTest, ButNotForEver) {
  quiet_ = false;
  HandoverServer old(*loop_, callbacks(), {.max_wait = milliseconds{50}});
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());
  const auto taking = take_over();
  EXPECT_TRUE(until([&] { return given_ && result_; }));
}

TEST_F(HandoverTest, NoOldAgentIsNotFound) {
  auto taking = take_over();
  EXPECT_FALSE(result_);  // never before the constructor is done
  ASSERT_TRUE(until([&] { return result_.has_value(); }));
  EXPECT_EQ(result_->error().code(), Errc::NotFound);
  { const auto dead = *grpc::listen_unix(tree_.path("dead.sock")); }
  result_.reset();
  const Takeover other(
      *loop_, tree_.path("dead.sock"), milliseconds{30'000},
      [this](Result<std::vector<TakenConnection>> taken) { result_.emplace(std::move(taken)); });
  ASSERT_TRUE(until([&] { return result_.has_value(); }));
  EXPECT_FALSE(result_->ok());
}

TEST_F(HandoverTest, ANewOneThatDiesMidwayLeavesTheOldOneInCharge) {
  const Pair pair;
  give_ = {{kGpuResource, pair.theirs.get()}};
  HandoverServer old(*loop_, callbacks());
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());
  quiet_ = false;
  auto taking = take_over();
  run_loop_for(milliseconds{30});
  taking.reset();
  quiet_ = true;
  run_loop_for(milliseconds{50});
  EXPECT_FALSE(given_);
  const auto again = take_over();  // and the next one is served
  EXPECT_TRUE(until([&] { return given_ && result_; }));
}

TEST_F(HandoverTest, AnOldOneThatDoesNotAnswerIsATimeout) {
  quiet_ = false;
  HandoverServer old(*loop_, callbacks());
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());
  const auto taking = take_over(milliseconds{50});
  ASSERT_TRUE(until([&] { return result_.has_value(); }));
  EXPECT_EQ(result_->error().code(), Errc::Timeout);
}

TEST_F(HandoverTest, TheNextAgentTakesThePathsPlace) {
  HandoverServer old(*loop_, callbacks());
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());
  bool second_given = false;
  auto second_side = callbacks();
  second_side.given = [&] { second_given = true; };
  HandoverServer second(*loop_, second_side);
  ASSERT_TRUE(second.listen(tree_.path("h.sock")).ok());
  const auto taking = take_over();
  EXPECT_TRUE(until([&] { return second_given; }));
  EXPECT_FALSE(given_);
}

// The whole upgrade, on the kubelet that would notice: GetAllocatableResources never drops.
TEST_F(HandoverTest, AnUpgradeIsNotNoticedByAKubeletUpTo136) {
  FakeKubelet kubelet(*loop_, kubelet_options(tree_, FakeKubelet::Streams::ByResource));
  ASSERT_TRUE(kubelet.start().ok());
  const RegistrarOptions options{.directory = tree_.path("dp")};
  auto plugin = make_plugin();
  auto registrar = std::make_unique<Registrar>(*loop_, options, nullptr, nullptr);
  registrar->add(*plugin);
  ASSERT_TRUE(registrar->start().ok());
  ASSERT_TRUE(until(
      [&] { return registrar->all_registered() && kubelet.healthy(kGpuResource).size() == 2; }));
  HandoverServer old(*loop_, {.connections = [&] { return handed(*plugin); },
                              .quiet = [&] { return plugin->quiet(); },
                              .given = [&] { given_ = true; }});
  ASSERT_TRUE(old.listen(tree_.path("h.sock")).ok());

  const auto never_dropped = [&] {
    EXPECT_EQ(kubelet.healthy(kGpuResource).size(), 2U);
    EXPECT_EQ(kubelet.allocatable().count(kGpuResource), 1U);
  };
  auto new_plugin = make_plugin();
  Registrar next(*loop_, options, nullptr, nullptr);
  next.add(*new_plugin);
  ASSERT_TRUE(next.start().ok());
  ASSERT_TRUE(until([&] {
    never_dropped();
    return next.all_registered();
  }));
  IdleConnections kept(*loop_);
  const auto taking = take_over();
  ASSERT_TRUE(until([&] {
    never_dropped();
    return given_ && result_;
  }));
  ASSERT_TRUE(result_->ok());
  kept.keep(**std::move(result_));
  registrar.reset();
  plugin.reset();  // the old process ends
  until(
      [&] {
        never_dropped();
        return false;
      },
      milliseconds{150});
  EXPECT_EQ(kept.count(), 1U);
  EXPECT_EQ(kubelet.registrations().size(), 2U);
  EXPECT_TRUE(kubelet.admit(pod("u1", 2)).ok());
  EXPECT_TRUE(kubelet.start_container("u1", "main").ok());
  kubelet.kill();
  EXPECT_TRUE(until([&] { return kept.count() == 0; }));
}

}  // namespace
}  // namespace gantry::kubelet
