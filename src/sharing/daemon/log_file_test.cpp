// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/log_file.hpp"

#include "support/tree.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

namespace gantry::daemon {
namespace {

class LogFile : public ::testing::Test {
 protected:
  void add(std::string_view text) {
    const auto file = open_log(path_, kTestLogBytes);
    ASSERT_TRUE(file.ok()) << file.error().text();
    ASSERT_EQ(::write(file->get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string text(const std::string& name = "run/keeper.log") {
    return tree_.host().read(name).value_or("(absent)");
  }

  static constexpr std::uint64_t kTestLogBytes = 10;
  test::Tree tree_;
  std::string path_ = tree_.path("run/keeper.log");
};

TEST_F(LogFile, IsAddedToByTheNextDaemon) {
  add("first\n");
  add("second\n");
  EXPECT_EQ(text(), "first\nsecond\n");
}

TEST_F(LogFile, ThatIsLargeIsPutAsideOnce) {
  add("0123456789\n");
  add("new\n");
  EXPECT_EQ(text(), "new\n");
  EXPECT_EQ(text("run/keeper.log.1"), "0123456789\n");
}

TEST_F(LogFile, StaysSmallWhileItIsWritten) {
  auto file = *open_log(path_, kTestLogBytes);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(::write(file.get(), "line\n", 5), 5);
    rotate_if_large(file.get(), path_, kTestLogBytes);
  }
  EXPECT_LT(text().size() + text("run/keeper.log.1").size(), 3 * kTestLogBytes);
}

TEST_F(LogFile, OfAnotherUserIsLeftAlone) {
  add("x");
  const auto other = *open_log(tree_.path("run/other"), kTestLogBytes);
  ASSERT_EQ(::write(other.get(), "0123456789", 10), 10);
  rotate_if_large(other.get(), path_, kTestLogBytes);
  EXPECT_EQ(text("run/other"), "0123456789");
  EXPECT_EQ(text("run/other.1"), "(absent)");
}

TEST_F(LogFile, WordsOfAFormerDaemonAreNotTheReasonOfThisOne) {
  add("old\n");
  const auto begin = text().size();
  add("why\n");
  EXPECT_EQ(log_tail(path_, begin), "why");
  EXPECT_EQ(log_tail(path_, 1000), "old\\x0awhy") << "another file by now";
}

TEST_F(LogFile, IsNotWrittenThroughALink) {
  tree_.file("secret", "s").link("run/keeper.log", "../secret");
  EXPECT_FALSE(open_log(path_, kTestLogBytes).ok());
}

}  // namespace
}  // namespace gantry::daemon
