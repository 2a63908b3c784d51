// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_read.hpp"

#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

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
  // Lets the reader go, so that the test leaves no process.
  const int writer = ::open(tree.path("sys/locked").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_GE(writer, 0);
  ::close(writer);
}

}  // namespace
}  // namespace gantry::sys
