// SPDX-License-Identifier: Apache-2.0
// A false share daemon, and a hostile process in the same share that writes arbitrary values into
// the shared page: no crash, no endless wait, and never more memory than the share has.
#include "fence/share_under_test.hpp"
#include "sharing/daemon/peer_for_test.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

namespace gantry::fence::test {
namespace {

using sim::cuda::ready;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTenantLimit = 200 * kMiB;

// A neighbour's view of the page.
class Scribble {
 public:
  explicit Scribble(const ShareUnderTest& share) : peer_(share.directory() + "/socket") {
    EXPECT_TRUE(peer_.valid());
  }

  FenceUsage& page() { return *static_cast<FenceUsage*>(peer_.usage()); }
  FenceUsageRow& row() { return peer_.row(); }
  std::uint64_t words() const { return peer_.usage_size() / 8; }
  void put(std::uint64_t word, std::uint64_t value) {
    __atomic_store_n(static_cast<std::uint64_t*>(peer_.usage()) + word, value, __ATOMIC_RELAXED);
  }

 private:
  daemon::AttachedPeer peer_;
};

TEST(HostileNeighbour, OneThatIsForeverInTheMiddleIsNotWaitedForForever) {
  ShareUnderTest share({.memory_limit = kTenantLimit});
  Scribble neighbour(share);
  // As if it had been stopped during a reservation while it held the lock.
  __atomic_store_n(&neighbour.row().pending, kTenantLimit, __ATOMIC_SEQ_CST);
  __atomic_store_n(&neighbour.page().lock, 1000, __ATOMIC_SEQ_CST);
  const pid_t child = share.process([&] {
    const CudaLibrary cuda(share.fence());
    ready(cuda);
    CUdeviceptr pointer = 0;
    const auto start = Clock::now();
    const CUresult result = cuda.cuMemAlloc_v2(&pointer, 10 * kMiB);
    if (Clock::now() - start > std::chrono::seconds(15)) return 1;
    return result == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 2;
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
}

TEST(HostileNeighbour, WhateverIsInThePageTheProgramGoesOn) {
  ShareUnderTest share({.memory_limit = kTenantLimit});
  Scribble neighbour(share);
  const SharedCount started;
  const pid_t child = share.process([&] {
    const CudaLibrary cuda(share.fence());
    ready(cuda);
    *started = 1;
    for (int i = 0; i < 3; ++i) {
      CUdeviceptr pointer = 0;
      const CUresult result =
          cuda.cuMemAlloc_v2(&pointer, (1 + static_cast<std::uint64_t>(i) % 20) * kMiB);
      if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) return 1;
      if (result == CUDA_SUCCESS && cuda.cuMemFree_v2(pointer) != CUDA_SUCCESS) return 2;
      std::size_t free = 0;
      std::size_t total = 0;
      if (cuda.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS || total != kTenantLimit ||
          free > total)
        return 3;
    }
    return 0;
  });
  EXPECT_TRUE(ShareUnderTest::until([&] { return *started != 0; }));
  std::atomic<bool> end = false;
  std::thread writer([&] {
    std::mt19937_64 random(7);
    while (!end) {
      for (int i = 0; i < 1000; ++i) neighbour.put(random() % neighbour.words(), random());
    }
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
  end = true;
  writer.join();
}

// The answer of a false daemon to a hello.
struct Answer {
  const char* what = nullptr;
  FenceWelcome welcome = {FENCE_MAGIC, FENCE_VERSION,       FENCE_ACCEPTED,
                          0,           sizeof(FenceLimits), fence_usage_size(1)};
  std::size_t bytes = sizeof(FenceWelcome);
  int descriptors = 2;
  bool sealed = true;
  std::uint32_t gpu_count = 1;
  std::uint64_t usage_bytes = fence_usage_size(1);
};

int page_file(std::uint64_t bytes, const Answer& answer) {
  const int fd = ::memfd_create("false", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), 0);
  const std::uint32_t start[] = {FENCE_MAGIC, FENCE_VERSION, 0, answer.gpu_count};
  EXPECT_EQ(::pwrite(fd, start, sizeof start, 0), static_cast<ssize_t>(sizeof start));
  if (answer.sealed) {
    EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  }
  return fd;
}

void answer_one(int listener, const Answer& answer) {
  const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  FenceHello hello{};
  (void)!::recv(client, &hello, sizeof hello, 0);
  const int fds[] = {page_file(sizeof(FenceLimits), answer), page_file(answer.usage_bytes, answer)};
  iovec part = {const_cast<FenceWelcome*>(&answer.welcome), answer.bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const std::size_t length = sizeof(int) * static_cast<std::size_t>(answer.descriptors);
  if (length != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(length);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(header), fds, length);
  }
  (void)!::sendmsg(client, &message, MSG_NOSIGNAL);
  ::close(client);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(FalseDaemon, NoAnswerButTheRightOneStartsCuda) {
  ShareUnderTest share;
  share.stop_daemon();
  const std::string path = share.directory() + "/socket";
  ::unlink(path.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 8), 0);

  std::vector<Answer> answers(9);
  answers[0].what = "another magic";
  answers[0].welcome.magic = 1;
  answers[1].what = "another version";
  answers[1].welcome.version = FENCE_VERSION + 1;
  answers[2].what = "a refusal";
  answers[2].welcome.refusal = FENCE_NO_SLOT;
  answers[3].what = "a slot that there is not";
  answers[3].welcome.slot = FENCE_MAX_PROCESSES;
  answers[4].what = "half a message";
  answers[4].bytes = sizeof(FenceWelcome) / 2;
  answers[5].what = "no pages";
  answers[5].descriptors = 0;
  answers[6].what = "pages that can shrink";
  answers[6].sealed = false;
  answers[7].what = "more GPUs than a page has";
  answers[7].gpu_count = FENCE_MAX_GPUS + 1;
  answers[8].what = "a page that is too short";
  answers[8].usage_bytes = 4096;
  const CudaLibrary cuda(share.fence());
  for (const Answer& answer : answers) {
    std::thread daemon([&] { answer_one(listener, answer); });
    EXPECT_EQ(cuda.cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY) << answer.what;
    daemon.join();
  }
  std::thread daemon([&] { answer_one(listener, Answer{.what = "the right one"}); });
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  daemon.join();
  ::close(listener);
}

}  // namespace
}  // namespace gantry::fence::test
