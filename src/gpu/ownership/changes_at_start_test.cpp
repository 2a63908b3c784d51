// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/changes_at_start.hpp"

#include "gpu/ownership/change_lock.hpp"
#include "gpu/ownership/owner_change.hpp"
#include "gpu/ownership/start_lock.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace gantry::ownership {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const model::PciAddress started_gpu{.bus = 0x3b};
const OwnerChange bind_started{.gpu = started_gpu,
                               .to = Owner::Vm,
                               .use = model::AllocationMode::Vm,
                               .what = "gantry vfio bind 0000:3b:00.0"};

// A machine on which a program starts while a command changes the owner of a GPU.
class StartedMidway : public testing::Test {
 protected:
  void begin() {
    lock_.emplace(*ChangeLock::take(host_, started_gpu));
    auto ledger = OwnershipStore::open(host_);
    ASSERT_TRUE(ledger->adopt(started_gpu, {}, Owner::Plugin, model::AllocationMode::Whole).ok());
    ASSERT_TRUE(ledger->begin(intent_, {.withdrawn = true}).ok());
  }
  bool ends_within(std::chrono::milliseconds limit) {
    for (const auto until = std::chrono::steady_clock::now() + limit;
         ended_ == 0 && std::chrono::steady_clock::now() < until;)
      (void)loop_->turn(10ms);
    return ended_ > 0;
  }

  test::Tree tree_;
  sys::Host host_ = tree_.host();
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  OwnerIntent intent_ = intent_of(bind_started);
  std::optional<ChangeLock> lock_;
  int ended_ = 0;
};

TEST_F(StartedMidway, NothingIsUnderWayOnAQuietMachine) {
  const ChangesAtStart changes(*loop_, host_, [&] { ++ended_; });
  EXPECT_EQ(changes.why(), "");
  EXPECT_FALSE(ends_within(500ms));
}

TEST_F(StartedMidway, WaitsUntilTheCommandHasSettled) {
  begin();
  const ChangesAtStart changes(*loop_, host_, [&] { ++ended_; });
  EXPECT_THAT(changes.why(), HasSubstr("gantry vfio bind 0000:3b:00.0"));
  EXPECT_FALSE(ends_within(500ms));
  ASSERT_TRUE(settle_change(host_, intent_, ActOutcome::Done).ok());
  EXPECT_TRUE(ends_within(10s));
  for (int i = 0; i < 30; ++i) (void)loop_->turn(20ms);
  EXPECT_EQ(ended_, 1);
}

TEST_F(StartedMidway, ACommandThatDiedIsNotWaitedFor) {
  begin();
  const ChangesAtStart changes(*loop_, host_, [&] { ++ended_; });
  EXPECT_NE(changes.why(), "");
  lock_.reset();
  EXPECT_TRUE(ends_within(10s));
  EXPECT_THAT(changes_under_way(host_), IsEmpty());
  EXPECT_THAT(abandoned_changes(host_, *OwnershipStore::peek(host_)), SizeIs(1));
}

TEST_F(StartedMidway, NoChangeBeginsWhileAnAgentStarts) {
  auto ledger = OwnershipStore::open(host_);
  ASSERT_TRUE(ledger->adopt(started_gpu, {}, Owner::Plugin, model::AllocationMode::Whole).ok());
  {
    const auto starting = StartLock::take(host_);
    const auto another = StartLock::take(host_);
    ASSERT_TRUE(starting.ok() && another.ok());
    const auto begun = ledger->begin(intent_, {.withdrawn = true});
    ASSERT_FALSE(begun.ok());
    EXPECT_EQ(begun.error().code(), Errc::Busy);
    EXPECT_THAT(begun.error().text(), HasSubstr("an agent starts"));
    EXPECT_THAT(ledger->state().intents, IsEmpty());
  }
  EXPECT_TRUE(ledger->begin(intent_, {.withdrawn = true}).ok());
}

}  // namespace
}  // namespace gantry::ownership
