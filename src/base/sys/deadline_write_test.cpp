// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_write.hpp"

#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A write to a FIFO that has no reader does not return.
struct StuckFile {
  test::Tree tree;
  StuckFile() {
    tree.directory("sys");
    EXPECT_EQ(::mkfifo(tree.path("sys/unbind").c_str(), 0600), 0);
  }
  Status write(std::chrono::milliseconds deadline) const {
    return write_with_deadline(tree.host(), "/sys/unbind", "0000:01:00.0", deadline);
  }
};

TEST(DeadlineWrite, WritesTheWholeTextOverTheOldOne) {
  test::Tree tree;
  tree.file("sys/driver_override", "a much longer name\n");
  const auto status = write_with_deadline(tree.host(), "/sys/driver_override", "vfio-pci\n", 10s);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(*tree.host().read("/sys/driver_override"), "vfio-pci\n");
}

TEST(DeadlineWrite, FollowsLinksInsideTheRoot) {
  test::Tree tree;
  tree.file("sys/bus/pci/drivers/nvidia/unbind");
  tree.link("sys/bus/pci/devices/0000:01:00.0/driver", "/sys/bus/pci/drivers/nvidia");
  ASSERT_TRUE(write_with_deadline(tree.host(), "/sys/bus/pci/devices/0000:01:00.0/driver/unbind",
                                  "0000:01:00.0", 10s)
                  .ok());
  EXPECT_EQ(*tree.host().read("/sys/bus/pci/drivers/nvidia/unbind"), "0000:01:00.0");
}

TEST(DeadlineWrite, NeverCreatesAFile) {
  test::Tree tree;
  const auto status = write_with_deadline(tree.host(), "/sys/unbind", "x", 10s);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::NotFound);
  EXPECT_FALSE(tree.host().exists("/sys/unbind"));
}

TEST(DeadlineWrite, BringsTheErrnoOfTheWriteBack) {
  const auto host = Host::at("/");
  ASSERT_TRUE(host.ok());
  const auto full = write_with_deadline(*host, "/dev/full", "x", 10s);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().sys_errno(), ENOSPC);
  EXPECT_THAT(full.error().text(), HasSubstr("write /dev/full"));
}

TEST(DeadlineWrite, BringsTheErrnoOfTheOpenBack) {
  test::Tree tree;
  tree.directory("sys/reset");
  const auto status = write_with_deadline(tree.host(), "/sys/reset", "1", 10s);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().sys_errno(), EISDIR);
  EXPECT_THAT(status.error().text(), HasSubstr("open "));
}

TEST(DeadlineWrite, RefusesMoreThanTheKernelTakes) {
  test::Tree tree;
  tree.file("sys/x", "old");
  const auto status =
      write_with_deadline(tree.host(), "/sys/x", std::string(kMaxKernelWrite + 1, 'x'), 10s);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Invalid);
  EXPECT_EQ(*tree.host().read("/sys/x"), "old");
}

TEST(DeadlineWrite, GivesUpAtTheDeadlineAndSaysSo) {
  const StuckFile file;
  const auto start = std::chrono::steady_clock::now();
  const auto status = file.write(200ms);
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Timeout);
  EXPECT_THAT(status.error().text(), HasSubstr("stuck in the kernel"));
  EXPECT_THAT(status.error().text(), HasSubstr(file.tree.path("sys/unbind")));
  EXPECT_THAT(status.error().remedy(), HasSubstr("/stack"));
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, 5s);
}

TEST(DeadlineWrite, LeavesNoChildBehind) {
  const StuckFile file;
  ASSERT_FALSE(file.write(100ms).ok());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(DeadlineWrite, StuckWriterHoldsNoneOfOurLocksAndPipes) {
  const StuckFile file;
  const auto path = file.tree.path("lock");
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ASSERT_FALSE(file.write(100ms).ok());
  lock.reset();
  const UniqueFd again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::flock(again.get(), LOCK_EX | LOCK_NB), 0) << "the writer has our lock";
  writer.reset();
  ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0) << "the writer has our pipe";
}

TEST(DeadlineWrite, WriterThatCanBeInterruptedEndsByItself) {
  const StuckFile file;
  const auto status = file.write(100ms);
  ASSERT_FALSE(status.ok());
  const auto remedy = status.error().remedy();
  const auto begin = remedy.find("/proc/");
  ASSERT_NE(begin, std::string::npos);
  const auto process = remedy.substr(begin, remedy.rfind('/') - begin);
  // Where pid 1 collects nothing, the writer stays as a zombie, which has no descriptors.
  const auto ended = [&] {
    return ::access((process + "/fd/0").c_str(), F_OK) != 0 &&
           ::access((process + "/exe").c_str(), F_OK) != 0;
  };
  for (int i = 0; i < 100 && !ended(); ++i) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(ended()) << process;
}

TEST(DeadlineWrite, ManyThreadsMayWrite) {
  test::Tree tree;
  constexpr int kThreads = 8;
  for (int i = 0; i < kThreads; ++i) tree.file("sys/" + std::to_string(i), "old");
  const auto host = tree.host();
  std::array<bool, kThreads> done{};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&host, &done, i] {
        done[static_cast<std::size_t>(i)] =
            write_with_deadline(host, "/sys/" + std::to_string(i), "new", 30s).ok();
      });
  }
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_TRUE(done[static_cast<std::size_t>(i)]) << i;
    EXPECT_EQ(*host.read("/sys/" + std::to_string(i)), "new");
  }
}

}  // namespace
}  // namespace gantry::sys
