// SPDX-License-Identifier: Apache-2.0
#include "base/sys/network_namespace.hpp"

#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <thread>

namespace gantry::sys {
namespace {

ino_t network_here() {
  struct stat info {};
  EXPECT_EQ(::stat("/proc/thread-self/ns/net", &info), 0);
  return info.st_ino;
}

// A namespace that no process is in any more.
UniqueFd new_network() {
  UniqueFd made;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0)
      made = UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }).join();
  return made;
}

TEST(NetworkNamespace, OnlyTheWorkIsInIt) {
  const auto other = new_network();
  if (!other.valid()) GTEST_SKIP() << "needs CAP_SYS_ADMIN to create a network namespace";
  const auto before = network_here();
  ino_t during = 0;
  ASSERT_TRUE(in_network_namespace(other.get(), [&] { during = network_here(); }).ok());
  struct stat info {};
  ASSERT_EQ(::fstat(other.get(), &info), 0);
  EXPECT_EQ(during, info.st_ino);
  EXPECT_NE(during, before);
  EXPECT_EQ(network_here(), before);
}

TEST(NetworkNamespace, NothingRunsOutsideOfIt) {
  const UniqueFd file(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  bool ran = false;
  EXPECT_FALSE(in_network_namespace(file.get(), [&] { ran = true; }).ok());
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace gantry::sys
