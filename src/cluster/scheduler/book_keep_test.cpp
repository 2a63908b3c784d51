// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/book.hpp"
#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;

constexpr std::int64_t kNow = 1'800'000'000;  // 2027-01-15T08:00:00Z
constexpr const char* kGoing = "2027-01-15T08:00:20Z";
constexpr const char* kOverdue = "2027-01-15T07:00:00Z";

// A node of two cards of 40 GiB with a pod of 30 on each.
class KeepTest : public ::testing::Test {
 protected:
  KeepTest() {
    EXPECT_TRUE(book.set_node(node_object("n", {40, 40}).root()).ok());
    tell(on("a", 0, 30));
    tell(on("b", 1, 30));
  }
  static PodSketch on(const std::string& uid, int card, std::uint64_t gib) {
    return {.uid = uid,
            .gpu_mem = fmt::to_string(gib),
            .node = "n",
            .placement = on_card(fmt::format("GPU-n-{}", card), gib)};
  }
  void tell(const PodSketch& sketch) {
    EXPECT_TRUE(book.set_pod(pod_object(sketch).root(), now).ok());
  }
  void going(PodSketch sketch, const char* by = kGoing) {
    sketch.gone_by = by;
    tell(sketch);
  }
  static podspec::PodAsk ask(const PodSketch& sketch) {
    return **podspec::ask_of(pod_object(sketch).root());
  }
  Result<Room> room(const podspec::PodAsk& asked) const {
    const std::vector<std::string> nodes{"n"};
    return book.room_for(asked, nodes, {}, kNow);
  }
  bool fits(const PodSketch& sketch) const {
    const std::string_view node = "n";
    std::vector<placement::Fit> answer;
    book.fit(ask(sketch), std::span(&node, 1), answer);
    return answer[0].refusal == placement::Refusal::None;
  }

  Book book;
  Moment now;
  PodSketch first{.uid = "first", .gpu_mem = "20", .priority = 100};
  PodSketch late{.uid = "late", .gpu_mem = "25"};
};

TEST_F(KeepTest, OneOfLowerPriorityHasToGo) {
  const auto found = room(ask(first));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->node, "n");
  ASSERT_EQ(found->victims.size(), 1U);
  EXPECT_EQ(found->victims[0].name, "pod-a");
  first.priority = 0;
  EXPECT_EQ(room(ask(first)).error().code(), Errc::NotFound);
}

TEST_F(KeepTest, WhoeverIsBeingDeletedIsEnough) {
  going(on("b", 1, 30));
  const auto found = room(ask(first));
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->victims, IsEmpty());
  EXPECT_THAT(found->going, testing::ElementsAre("b"));
}

TEST_F(KeepTest, WhoDoesNotGoInTimeIsNotCountedOn) {
  going(on("b", 1, 30), kOverdue);
  const auto found = room(ask(first));
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->victims.size(), 1U);
  EXPECT_EQ(found->victims[0].uid, "a");
}

TEST_F(KeepTest, StaticPodsAndThoseOfOtherSchedulersAreNoVictims) {
  Book other;
  EXPECT_TRUE(other.set_node(node_object("n", {40}).root()).ok());
  auto fixed = on("static", 0, 30);
  fixed.annotations = R"("kubernetes.io/config.mirror":"x")";
  EXPECT_TRUE(other.set_pod(pod_object(fixed).root(), now).ok());
  const std::vector<std::string> nodes{"n"};
  EXPECT_FALSE(other.room_for(ask(first), nodes, {}, kNow).ok());
  other.remove_pod("static", now);
  PodSketch legacy{.uid = "old", .gpu_mem = "30", .node = "n"};
  legacy.annotations = R"("ALIYUN_COM_GPU_MEM_IDX":"0","ALIYUN_COM_GPU_MEM_POD":"30")";
  EXPECT_TRUE(other.set_pod(pod_object(legacy).root(), now).ok());
  EXPECT_FALSE(other.room_for(ask(first), nodes, {}, kNow).ok());
}

TEST_F(KeepTest, RoomIsForThePodAloneUntilItIsThere) {
  tell(first);
  const auto found = room(ask(first));
  ASSERT_TRUE(book.keep(ask(first), *found, now).ok());
  EXPECT_FALSE(fits(first));
  book.remove_pod("a", now);
  EXPECT_FALSE(fits(late));
  ASSERT_TRUE(fits(first));
  ASSERT_TRUE(book.promise(ask(first), "n", 1, now).ok());
  book.release("first");  // its Binding was refused
  EXPECT_TRUE(book.kept("first"));
  EXPECT_FALSE(fits(late));
  auto there = on("first", 0, 20);
  there.priority = 100;
  tell(there);
  EXPECT_FALSE(book.kept("first"));
  EXPECT_EQ(book.view("n").cards[0].used_mib, 20U * 1024);
}

TEST_F(KeepTest, RoomIsNotKeptForAPodThatIsGone) {
  tell(first);
  ASSERT_TRUE(book.keep(ask(first), *room(ask(first)), now).ok());
  book.remove_pod("a", now);
  book.remove_pod("first", now);
  EXPECT_TRUE(fits(late));
}

TEST_F(KeepTest, RoomThatNobodyTakesIsForAllAfterAMinute) {
  tell(first);
  ASSERT_TRUE(book.keep(ask(first), *room(ask(first)), now).ok());
  book.end_old_keeps(now + minutes(5));
  EXPECT_TRUE(book.kept("first")) << "a is not gone yet";
  book.remove_pod("a", now);
  book.end_old_keeps(now + minutes(6));
  book.end_old_keeps(now + minutes(6) + seconds(50));
  EXPECT_TRUE(book.kept("first"));
  book.end_old_keeps(now + minutes(7) + seconds(1));
  EXPECT_FALSE(book.kept("first"));
  EXPECT_TRUE(fits(late));
}

TEST_F(KeepTest, NothingIsKeptForEver) {
  tell(first);
  ASSERT_TRUE(book.keep(ask(first), *room(ask(first)), now).ok());
  book.end_old_keeps(now + minutes(10) + seconds(1));
  EXPECT_FALSE(book.kept("first"));
}

TEST_F(KeepTest, TheCardThatKubeSchedulerHasFreedIsForThePodThatItNominated) {
  auto nominated = first;
  nominated.nominated = "n";
  tell(nominated);
  EXPECT_FALSE(book.kept("first")) << "nobody goes yet";
  going(on("a", 0, 30));
  ASSERT_TRUE(book.kept("first"));
  book.remove_pod("a", now);
  EXPECT_FALSE(fits(late));
  EXPECT_TRUE(fits(first));
}

TEST_F(KeepTest, TheSameWhenTheVictimIsGoneAtOnce) {
  auto nominated = first;
  nominated.nominated = "n";
  tell(nominated);
  book.remove_pod("a", now);
  EXPECT_FALSE(fits(late));
  tell(first);  // kube-scheduler has thought better of it
  EXPECT_TRUE(fits(late));
}

TEST_F(KeepTest, KubeSchedulersVictimsAreNotMoreForThoseWhoGoAnyway) {
  going(on("b", 1, 30));
  const std::vector<std::string> chosen{"without-gpu"};
  const auto all = book.victims(ask(first), "n", chosen);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, chosen);
}

}  // namespace
}  // namespace gantry::scheduler
