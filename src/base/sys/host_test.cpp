// SPDX-License-Identifier: Apache-2.0
#include "base/sys/host.hpp"

#include "support/tree.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace gantry::sys {
namespace {

using test::Tree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Makes openat2 fail in this process: with ENOSYS, as kernels before 5.6 do, or with EPERM, as
// container engines of that time do.
void block_openat2(unsigned err) {
  std::array<sock_filter, 4> program = {{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_openat2},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | err},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

// Each path test runs three times: with openat2, and with the walk that replaces it.
template <class Body>
void with_and_without_openat2(const Body& body) {
  body();
  for (const int err : {ENOSYS, EPERM}) {
    const pid_t pid = fork();
    if (pid == 0) {
      block_openat2(static_cast<unsigned>(err));
      body();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << "failed without openat2: " << strerror(err);
  }
}

TEST(Host, ReadsBelowItsRoot) {
  Tree tree;
  tree.file("proc/driver/nvidia/version", "NVRM version: x\n");
  with_and_without_openat2([&] {
    EXPECT_EQ(*tree.host().read("/proc/driver/nvidia/version"), "NVRM version: x\n");
    EXPECT_EQ(tree.host().read_value("/proc/driver/nvidia/version"), "NVRM version: x");
    EXPECT_FALSE(tree.host().exists("/proc/driver/nvidia/gpus"));
  });
}

TEST(Host, AbsoluteLinksStayInTheRoot) {
  Tree tree;
  tree.file("etc/passwd", "inside").link("a", "/etc/passwd").link("b", "../../../../etc/passwd");
  with_and_without_openat2([&] {
    EXPECT_EQ(*tree.host().read("/a"), "inside");
    EXPECT_EQ(*tree.host().read("/b"), "inside");
    EXPECT_EQ(*tree.host().resolve("/a"), "/etc/passwd");
    EXPECT_EQ(*tree.host().link("/a"), "/etc/passwd");
    EXPECT_EQ(*tree.host().read("/../../../../a"), "inside");
  });
}

TEST(Host, LinkLoopsAreErrors) {
  Tree tree;
  tree.link("x", "y").link("y", "x");
  with_and_without_openat2([&] { EXPECT_EQ(tree.host().read("/x").error().sys_errno(), ELOOP); });
}

TEST(Host, HugeFilesAreRefusedNotTruncated) {
  Tree tree;
  tree.file("big", std::string(1000, 'x'));
  auto read = tree.host().read("/big", 100);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::Corrupt);
  EXPECT_THAT(read.error().text(), HasSubstr("larger than 100 bytes"));
}

TEST(Host, OnlyRegularFilesAreReadAndAFifoDoesNotBlock) {
  Tree tree;
  ASSERT_EQ(mkfifo(tree.path("pipe").c_str(), 0600), 0);
  for (const char* path : {"/pipe", "/"}) {
    const auto read = tree.host().read(path);
    ASSERT_FALSE(read.ok()) << path;
    EXPECT_EQ(read.error().code(), Errc::Invalid) << path;
    EXPECT_THAT(read.error().text(), HasSubstr("is not a regular file")) << path;
  }
}

TEST(Host, DeviceTableStandsInForNodes) {
  Tree tree;
  tree.file("dev/null-ish", "")
      .file("dev.table",
            "/dev/nvidia0 c 195 0 0666 0 0\n"
            "/dev/nvidia-caps/nvidia-cap1 c 241 1 0400 0 0\n"
            "nonsense\n");
  const auto host = tree.host();
  const auto node = host.device("/dev/nvidia0");
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->major, 195U);
  EXPECT_EQ(node->mode, 0666U);
  EXPECT_FALSE(host.device("/dev/null-ish").ok());
  EXPECT_THAT(host.device_paths("/dev"), ElementsAre("/dev/nvidia0"));
}

TEST(Host, RootMustBeADirectory) {
  Tree tree;
  tree.file("f", "");
  EXPECT_FALSE(Host::at(tree.path("f")).ok());
  EXPECT_EQ(Host::at(tree.path("none")).error().code(), Errc::NotFound);
}

}  // namespace
}  // namespace gantry::sys
