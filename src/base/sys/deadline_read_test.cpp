// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_read.hpp"

#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ReadWithDeadline, ReadsAFile) {
  test::Tree tree;
  tree.file("sys/driver_override", "(null)\n").file("sys/empty");
  const auto host = tree.host();
  const auto text = read_with_deadline(host, "/sys/driver_override", 10s);
  ASSERT_TRUE(text.ok()) << text.error().text();
  EXPECT_EQ(*text, "(null)\n");
  EXPECT_EQ(*read_with_deadline(host, "/sys/empty", 10s), "");
}

TEST(ReadWithDeadline, NeverReadsMoreThanAPage) {
  test::Tree tree;
  tree.file("sys/large", std::string(3 * kMaxKernelRead, 'x'));
  EXPECT_EQ(read_with_deadline(tree.host(), "/sys/large", 10s)->size(), kMaxKernelRead);
}

TEST(ReadWithDeadline, ReadsAFileOfTheKernelInAProcessOfItsOwn) {
  const auto host = Host::at("/");
  const auto kernel = read_with_deadline(*host, "/proc/sys/kernel/ostype", 10s);
  ASSERT_TRUE(kernel.ok()) << kernel.error().text();
  EXPECT_EQ(*kernel, "Linux\n");
}

TEST(ReadWithDeadline, AMissingFileIsNotFound) {
  const test::Tree tree;
  const auto text = read_with_deadline(tree.host(), "/sys/none", 10s);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code(), Errc::NotFound);
}

TEST(ReadWithDeadline, ADirectoryIsAnErrorOfTheKernel) {
  test::Tree tree;
  tree.directory("sys/folder");
  const auto text = read_with_deadline(tree.host(), "/sys/folder", 10s);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().sys_errno(), EISDIR);
}

// So that a test leaves no process.
void let_reader_go(const std::string& pipe) {
  const int writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_GE(writer, 0);
  ::close(writer);
}

// A pipe without a writer blocks the open, as the lock of a device blocks the read.
TEST(ReadWithDeadline, GivesUpAtTheDeadlineAndKeepsNothing) {
  test::Tree tree;
  tree.directory("sys");
  ASSERT_EQ(::mkfifo(tree.path("sys/locked").c_str(), 0600), 0);
  const auto begin = std::chrono::steady_clock::now();
  const auto text = read_with_deadline(tree.host(), "/sys/locked", 200ms);
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code(), Errc::Timeout);
  EXPECT_THAT(text.error().text(), HasSubstr("the lock of the device"));
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, 10s);
  let_reader_go(tree.path("sys/locked"));
}

bool some_process_has_open(const std::string& path) {
  const std::filesystem::directory_iterator end;
  std::error_code gone;  // processes and descriptors come and go meanwhile
  for (std::filesystem::directory_iterator process("/proc", gone); process != end;
       process.increment(gone)) {
    for (std::filesystem::directory_iterator fd(process->path() / "fd", gone); fd != end;
         fd.increment(gone)) {
      if (std::filesystem::read_symlink(fd->path(), gone) == path) return true;
    }
  }
  return false;
}

TEST(ReadWithDeadline, AReaderThatAFifoKeepsEndsByItself) {
  test::Tree tree;
  tree.directory("sys");
  const auto fifo = tree.path("sys/locked");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_FALSE(read_with_deadline(tree.host(), "/sys/locked", 10ms).ok());
  EXPECT_TRUE(some_process_has_open(fifo));
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (some_process_has_open(fifo) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(some_process_has_open(fifo));
}

TEST(ReadSeveralWithDeadline, ReturnsTheirTextsInOrder) {
  const auto host = Host::at("/");
  const std::vector<std::string> paths{"/proc/sys/kernel/ostype", "/proc/none", "/proc/version",
                                       "/proc/sys/kernel/ostype"};
  const auto texts = read_with_deadline(*host, paths, 10s, AfterTimeout::GiveUp);
  ASSERT_EQ(texts.size(), 4U);
  EXPECT_EQ(*texts[0], "Linux\n");
  EXPECT_EQ(texts[1].error().code(), Errc::NotFound);
  EXPECT_THAT(*texts[2], HasSubstr("Linux version"));
  EXPECT_EQ(*texts[3], "Linux\n");
  EXPECT_TRUE(read_with_deadline(*host, {}, 10s, AfterTimeout::GiveUp).empty());
}

TEST(ReadSeveralWithDeadline, MoreBytesThanAPipeHolds) {
  const auto host = Host::at("/");
  const std::vector<std::string> paths(100, "/proc/self/status");
  for (const auto& text : read_with_deadline(*host, paths, 10s, AfterTimeout::GiveUp)) {
    ASSERT_TRUE(text.ok()) << text.error().text();
    EXPECT_GT(text->size(), 1000U);
  }
}

// Between two files of the kernel there is one whose reader waits.
class OneIsLocked : public testing::Test {
 protected:
  OneIsLocked() {
    tree_.directory("sys");
    EXPECT_EQ(::mkfifo(tree_.path("sys/locked").c_str(), 0600), 0);
    paths_ = {"/proc/sys/kernel/ostype", tree_.path("sys/locked"), "/proc/sys/kernel/ostype"};
  }
  ~OneIsLocked() override { let_reader_go(paths_[1]); }
  std::vector<Result<std::string>> read(AfterTimeout after_timeout) const {
    return read_with_deadline(*Host::at("/"), paths_, 2s, after_timeout);
  }

  test::Tree tree_;
  std::vector<std::string> paths_;
};

TEST_F(OneIsLocked, FilesWithTheSameLockAreNotTried) {
  const auto texts = read(AfterTimeout::GiveUp);
  EXPECT_EQ(*texts[0], "Linux\n");
  EXPECT_EQ(texts[1].error().code(), Errc::Timeout);
  EXPECT_EQ(texts[2].error().code(), Errc::Timeout);
  EXPECT_EQ(texts[2].error().text(), texts[1].error().text());
}

TEST_F(OneIsLocked, FilesWithALockOfTheirOwnAreRead) {
  const auto texts = read(AfterTimeout::GoOn);
  EXPECT_EQ(*texts[0], "Linux\n");
  EXPECT_EQ(texts[1].error().code(), Errc::Timeout);
  EXPECT_EQ(*texts[2], "Linux\n");
}

}  // namespace
}  // namespace gantry::sys
