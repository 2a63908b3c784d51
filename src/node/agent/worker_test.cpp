// SPDX-License-Identifier: Apache-2.0
#include "node/agent/worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <vector>

namespace gantry::agent {
namespace {

using testing::ElementsAre;

TEST(Worker, RunsTasksOneAfterTheOtherInTheOrderTheyWereGiven) {
  std::vector<int> done;  // without a lock: tasks do not overlap
  std::promise<void> last;
  Worker worker;
  for (int i = 0; i < 3; ++i) worker.give([&done, i] { done.push_back(i); });
  worker.give([&last] { last.set_value(); });
  last.get_future().wait();
  EXPECT_THAT(done, ElementsAre(0, 1, 2));
}

TEST(Worker, RunsTasksInAThreadOfItsOwn) {
  std::promise<std::thread::id> where;
  Worker worker;
  worker.give([&where] { where.set_value(std::this_thread::get_id()); });
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
}

TEST(Worker, ATaskMayGiveAnother) {
  std::promise<void> second;
  Worker worker;
  worker.give([&] { worker.give([&second] { second.set_value(); }); });
  second.get_future().wait();
}

TEST(Worker, FinishesTheTaskThatRunsWhenItEnds) {
  std::promise<void> started;
  bool finished = false;
  {
    Worker worker;
    worker.give([&] {
      started.set_value();
      std::this_thread::yield();
      finished = true;
    });
    started.get_future().wait();
  }
  EXPECT_TRUE(finished);
}

TEST(Worker, ReleasesTasksThatItDidNotRun) {
  std::promise<void> started;
  std::promise<void> release;
  const auto held = std::make_shared<int>();
  auto worker = std::make_unique<Worker>();
  worker->give([&] {
    started.set_value();
    release.get_future().wait();
  });
  worker->give([held] {});
  started.get_future().wait();
  EXPECT_EQ(held.use_count(), 2);
  release.set_value();
  worker.reset();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace gantry::agent
