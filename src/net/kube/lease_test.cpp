// SPDX-License-Identifier: Apache-2.0
#include "net/kube/lease.hpp"

#include "base/json/patch.hpp"
#include "support/eventually.hpp"
#include "support/fake_api_server.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>

namespace gantry::kube {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A lease on a server with slow answers, and replicas that all act at the same time.
class World {
 public:
  class Replica : public LeaseStore {
   public:
    Replica(World& world, std::string identity, LeaseTime offset)
        : world_(world),
          offset_(offset),
          candidate({.name = "l", .identity = std::move(identity)}, *this,
                    [this] { return world_.now + offset_; }) {}

    Result<json::Document> read() override {
      world_.travel();
      auto answer = world_.text.empty() ? Result<json::Document>(Error(Errc::NotFound, "none"))
                                        : json::Document::parse(world_.text);
      return hear(std::move(answer));
    }
    Result<json::Document> create(const std::string& lease) override {
      world_.travel();
      if (world_.loses()) return Error(Errc::Timeout, "lost on its way");
      if (!world_.text.empty()) return hear(Error(Errc::Exists, "there"));
      return hear(world_.store(lease));
    }
    Result<json::Document> replace(const std::string& lease) override {
      world_.travel();
      if (world_.loses()) return Error(Errc::Timeout, "lost on its way");
      if (world_.text.empty()) return hear(Error(Errc::NotFound, "none"));
      const auto sent = json::Document::parse(lease);
      const auto have = json::Document::parse(world_.text);
      if ((*sent)["metadata"]["resourceVersion"].raw() !=
          (*have)["metadata"]["resourceVersion"].raw())
        return hear(Error(Errc::Exists, "newer"));
      return hear(world_.store(lease));
    }

    World& world_;
    LeaseTime offset_;
    LeaseCandidate candidate;
    LeaseTime next{};   // when it steps again
    bool busy = false;  // in the middle of a step
    bool alive = true;

   private:
    Result<json::Document> hear(Result<json::Document> answer) {
      world_.travel();
      if (world_.loses()) return Error(Errc::Timeout, "the answer is lost");
      return answer;
    }
  };

  explicit World(unsigned seed, int on_error = 0) : on_error_(on_error), random_(seed) {}

  Replica& add(const std::string& identity) {
    // The clocks of the replicas are unrelated.
    replicas.push_back(
        std::make_unique<Replica>(*this, identity, std::chrono::hours(random_() % 999)));
    return *replicas.back();
  }

  Result<json::Document> store(const std::string& lease) {
    json::Patch patch;
    patch.set({"metadata", "resourceVersion"}, fmt::format("\"{}\"", ++version_));
    text = *patch.apply(*json::Document::parse(lease));
    return json::Document::parse(text);
  }

  void travel() {
    if (on_error_ == 0) return;
    const auto slow = random_() % 20 == 0;
    pass(std::chrono::milliseconds(random_() % (slow ? 6000 : 50)));
  }
  bool loses() { return on_error_ != 0 && random_() % 100 < static_cast<unsigned>(on_error_); }

  void pass(LeaseTime time) {
    const auto end = now + time;
    while (now < end) {
      now = std::min(end, now + 100ms);
      for (auto& replica : replicas) act(*replica);
      check();
    }
  }

  void act(Replica& replica) {
    if (!replica.alive || replica.busy || now < replica.next) return;
    replica.busy = true;
    (void)replica.candidate.step().ok();
    replica.busy = false;
    replica.next = now + 2s;
    if (on_error_ != 0 && random_() % 40 == 0) replica.next = now + 20s;  // stopped for a while
  }

  // There are never two leaders, and a leader holds the lease as long as valid_for() said.
  void check() {
    std::vector<const Replica*> leading;
    for (const auto& replica : replicas) {
      const auto time = replica->alive ? replica->candidate.valid_for() : 0ms;
      if (time.count() == 0) continue;
      leading.push_back(replica.get());
      promised_[replica.get()] = now + time;
    }
    ASSERT_LE(leading.size(), 1U) << "two leaders at " << now.count();
    if (leading.empty()) return;
    ++led[leading[0]];
    for (const auto& [who, until] : promised_) {
      ASSERT_TRUE(who == leading[0] || until <= now) << "a leader before the other's time was over";
    }
  }

  LeaseTime now = 1000h;
  std::string text;
  std::vector<std::unique_ptr<Replica>> replicas;
  std::map<const Replica*, int> led;

 private:
  int on_error_;  // percentage of lost messages
  std::mt19937 random_;
  int version_ = 0;
  std::map<const Replica*, LeaseTime> promised_;
};

TEST(Lease, TheFirstTakesItAndTheSecondWaitsForItsWholeDuration) {
  World world(1);
  auto& first = world.add("a");
  ASSERT_TRUE(first.candidate.step().ok());
  EXPECT_EQ(first.candidate.valid_for(), 15s);
  auto& second = world.add("b");
  ASSERT_TRUE(second.candidate.step().ok());
  EXPECT_EQ(second.candidate.valid_for(), 0s);
  EXPECT_EQ(second.candidate.holder(), "a");

  first.alive = false;
  world.now += 14s;
  ASSERT_TRUE(second.candidate.step().ok());
  EXPECT_EQ(second.candidate.valid_for(), 0s);
  world.now += 1s;
  ASSERT_TRUE(second.candidate.step().ok());
  EXPECT_EQ(second.candidate.valid_for(), 15s);
  const auto lease = test::parsed(world.text);
  EXPECT_EQ(lease["spec"]["holderIdentity"].string(), "b");
  EXPECT_EQ(lease["spec"]["leaseTransitions"].u64(), 1U);
  EXPECT_EQ(lease["spec"]["leaseDurationSeconds"].u64(), 15U);
}

TEST(Lease, TimeStampsOfOthersAreIgnored) {
  World world(1);
  world.text =
      R"({"metadata":{"resourceVersion":"1"},"spec":{"holderIdentity":"old","leaseDurationSeconds":15,"renewTime":"1999-01-01T00:00:00.000000Z"}})";
  auto& one = world.add("a");
  ASSERT_TRUE(one.candidate.step().ok());
  EXPECT_EQ(one.candidate.valid_for(), 0s);  // seen for the first time now
  world.now += 15s;
  ASSERT_TRUE(one.candidate.step().ok());
  EXPECT_GT(one.candidate.valid_for(), 0s);
}

TEST(Lease, KeepsWhatOthersWroteIntoTheObject) {
  World world(1);
  world.text =
      R"({"metadata":{"resourceVersion":"1","labels":{"x":"y"}},"spec":{"holderIdentity":"","strategy":"OldestEmulationVersion"}})";
  auto& one = world.add("a");
  ASSERT_TRUE(one.candidate.step().ok());
  EXPECT_GT(one.candidate.valid_for(), 0s);
  EXPECT_THAT(world.text, HasSubstr("OldestEmulationVersion"));
  EXPECT_THAT(world.text, HasSubstr(R"("x":"y")"));
}

TEST(Lease, LeadsNoMoreWhenItCouldNotRenewInTime) {
  World world(1);
  auto& one = world.add("a");
  ASSERT_TRUE(one.candidate.step().ok());
  world.now += 9s;
  EXPECT_EQ(one.candidate.valid_for(), 6s);
  world.now += 1s;
  EXPECT_EQ(one.candidate.valid_for(), 0s);
  // It leads again as soon as it can, if no other replica took the lease in between.
  ASSERT_TRUE(one.candidate.step().ok());
  EXPECT_EQ(one.candidate.valid_for(), 15s);
  EXPECT_EQ(test::parsed(world.text)["spec"]["leaseTransitions"].u64(), 0U);
}

TEST(Lease, GivenUpItIsTakenAtOnce) {
  World world(1);
  auto& first = world.add("a");
  auto& second = world.add("b");
  ASSERT_TRUE(first.candidate.step().ok());
  ASSERT_TRUE(second.candidate.step().ok());
  ASSERT_TRUE(first.candidate.release().ok());
  EXPECT_EQ(first.candidate.valid_for(), 0s);
  EXPECT_EQ(test::parsed(world.text)["spec"]["holderIdentity"].string(), "");
  ASSERT_TRUE(second.candidate.step().ok());
  EXPECT_EQ(second.candidate.valid_for(), 15s);
  ASSERT_TRUE(first.candidate.release().ok());  // no longer ours, so it is not changed
  EXPECT_EQ(test::parsed(world.text)["spec"]["holderIdentity"].string(), "b");
}

// Suspended in the middle of a step while another replica led and released: its actions are unknown
// here.
TEST(Lease, TakenBackWithinOneStepItIsANewTerm) {
  World world(1);
  auto& first = world.add("a");
  auto& second = world.add("b");
  EXPECT_EQ(first.candidate.term(), 0U);
  ASSERT_TRUE(first.candidate.step().ok());
  ASSERT_TRUE(first.candidate.step().ok());
  EXPECT_EQ(first.candidate.term(), 1U) << "renewed";
  ASSERT_TRUE(second.candidate.step().ok());
  world.now += 15s;
  ASSERT_TRUE(second.candidate.step().ok());
  ASSERT_TRUE(second.candidate.release().ok());
  ASSERT_TRUE(first.candidate.step().ok());
  EXPECT_EQ(first.candidate.valid_for(), 15s);
  EXPECT_EQ(first.candidate.term(), 2U);
}

TEST(Lease, AnObjectDeletedByHandIsRecreatedByItsHolderAndByOthersOnlyInTime) {
  World world(1);
  auto& first = world.add("a");
  auto& second = world.add("b");
  ASSERT_TRUE(first.candidate.step().ok());
  ASSERT_TRUE(second.candidate.step().ok());
  world.text.clear();
  world.now += 2s;
  ASSERT_TRUE(second.candidate.step().ok());
  EXPECT_EQ(second.candidate.valid_for(), 0s);
  ASSERT_TRUE(first.candidate.step().ok());
  EXPECT_EQ(first.candidate.valid_for(), 15s);
  world.text.clear();
  world.now += 15s;
  ASSERT_TRUE(second.candidate.step().ok());
  EXPECT_EQ(second.candidate.valid_for(), 15s);
}

class LeaseWorld : public testing::TestWithParam<unsigned> {};

TEST_P(LeaseWorld, NeverHasTwoLeadersWhateverIsLostOrLate) {
  World world(GetParam(), static_cast<int>(GetParam() % 4) * 8 + 1);
  for (const auto* name : {"a", "b", "c"}) world.add(name);
  for (int hour = 0; hour < 2 && !HasFatalFailure(); ++hour) {
    world.pass(8min);
    world.replicas[static_cast<std::size_t>(hour)]->alive = hour % 2 != 0;  // one is killed
    world.pass(8min);
    world.replicas[0]->alive = true;
  }
  EXPECT_GE(world.led.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LeaseWorld, testing::Range(1U, 6U));

// ---- with threads, on a server

ClientConfig access_of(const test::FakeApiServer& server) {
  ClientConfig access;
  access.server = *http::parse_url(server.url());
  return access;
}

TEST(LeaderElector, OneOfTwoLeadsAndTheOtherFollowsWhenItStops) {
  const test::FakeApiServer server;
  std::mutex mutex;
  std::vector<std::string> told;
  const auto tell = [&](bool leading, const std::string& holder) {
    const std::lock_guard lock(mutex);
    told.push_back(fmt::format("{} {}", leading, holder));
  };
  LeaderElector first(access_of(server), {.identity = "one"}, tell);
  ASSERT_TRUE(test::eventually([&] { return first.leading(); }));
  EXPECT_GT(first.valid_for(), 5s);
  LeaderElector second(access_of(server), {.identity = "two"});
  ASSERT_TRUE(test::eventually([&] { return second.holder() == "one"; }));
  EXPECT_FALSE(second.leading());
  first.stop();
  EXPECT_FALSE(first.leading());
  EXPECT_TRUE(test::eventually([&] { return second.leading(); }));
  EXPECT_THAT(
      server.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/gantry-scheduler"),
      HasSubstr(R"("holderIdentity":"two")"));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(told, testing::ElementsAre("true one", "false "));
}

TEST(LeaderElector, WithoutANameItMakesAUniqueOne) {
  const test::FakeApiServer server;
  const LeaderElector first(access_of(server), {});
  const LeaderElector second(access_of(server), {});
  EXPECT_NE(first.identity(), second.identity());
}

TEST(LeaderElector, StopsAtOnceWhileTheServerDoesNotAnswer) {
  std::atomic<bool> enough = false;  // both outlive the server's threads
  std::atomic<bool> asked = false;
  test::FakeApiServer server;
  server.override_answers([&](const http::Request&) -> std::unique_ptr<http::Response> {
    asked = true;
    test::eventually([&] { return enough.load(); });
    return nullptr;
  });
  LeaderElector elector(access_of(server), {.identity = "one"});
  ASSERT_TRUE(test::eventually([&] { return asked.load(); }));
  const auto begin = std::chrono::steady_clock::now();
  elector.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);  // a call has five seconds
  enough = true;
}

}  // namespace
}  // namespace gantry::kube
