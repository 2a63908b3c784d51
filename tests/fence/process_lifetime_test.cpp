// SPDX-License-Identifier: Apache-2.0
// Processes start, fork and end in every way, and so do share daemons. Nothing leaks and nothing
// hangs.
#include "fence/share_under_test.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace gantry::fence::test {
namespace {

using sim::cuda::ready;

constexpr std::uint64_t kProcessLimit = 4096 * kMiB;

// Allocates and frees at random, `count` times; it holds at most `most`. Returns non-zero if a step
// failed.
struct Churn {
  std::uint64_t most = kProcessLimit;
  int count = 200;
  bool may_be_refused = true;
  std::atomic<std::uint64_t>* live = nullptr;  // of all processes
  std::uint64_t limit = kProcessLimit;

  int operator()(const CudaLibrary& cuda, unsigned int seed) const {
    std::mt19937 random(seed);
    std::vector<std::pair<CUdeviceptr, std::uint64_t>> mine;
    std::uint64_t held = 0;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t bytes = (1 + random() % 64) * kGranule;
      if (!mine.empty() && (held + bytes > most || random() % 3 == 0)) {
        const auto [pointer, size] = mine.back();
        mine.pop_back();
        if (live != nullptr)
          *live -= size;  // before the free, so that it is never more than the held memory
        if (cuda.cuMemFree_v2(pointer) != CUDA_SUCCESS) return 2;
        held -= size;
        continue;
      }
      if (held + bytes > most) continue;
      CUdeviceptr pointer = 0;
      const CUresult result = cuda.cuMemAlloc_v2(&pointer, bytes);
      if (result == CUDA_ERROR_OUT_OF_MEMORY && may_be_refused) continue;
      if (result != CUDA_SUCCESS) return 3;
      mine.emplace_back(pointer, bytes);
      held += bytes;
      if (live != nullptr && (*live += bytes) > limit) return 4;  // more than the share has
    }
    if (live != nullptr) *live -= held;
    for (const auto& [pointer, size] : mine) cuda.cuMemFree_v2(pointer);
    return 0;
  }
};

int start_and(const ShareUnderTest& share, const std::function<int(const CudaLibrary&)>& work) {
  const CudaLibrary cuda(share.fence());
  ready(cuda);
  return work(cuda);
}

void expect_all_well(const std::vector<pid_t>& children) {
  for (const pid_t child : children) EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
}

TEST(Race, SixtyFourProcessesTogetherNeverHoldMoreThanTheLimit) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  const SharedCount live;
  std::vector<pid_t> children;
  for (unsigned int i = 0; i < 64; ++i) {
    children.push_back(share.process([&] {
      return start_and(share, [&](const CudaLibrary& cuda) {
        return Churn{.most = kProcessLimit, .count = 60, .live = &*live}(cuda, i);
      });
    }));
  }
  expect_all_well(children);
  EXPECT_TRUE(ShareUnderTest::until([&] { return share.held() == 0; }));
}

TEST(Race, NoRequestThatFitsIsRefused) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  std::vector<pid_t> children;
  constexpr unsigned int kMany = 16;
  for (unsigned int i = 0; i < kMany; ++i) {
    children.push_back(share.process([&] {
      return start_and(share, [&](const CudaLibrary& cuda) {
        return Churn{.most = kProcessLimit / kMany, .count = 300, .may_be_refused = false}(cuda, i);
      });
    }));
  }
  expect_all_well(children);
}

TEST(Race, ThreadsOfOneProcessToo) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  const pid_t child = share.process([&] {
    const CudaLibrary cuda(share.fence());
    ready(cuda);
    CUcontext context = nullptr;
    if (cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS) return 10;
    std::atomic<std::uint64_t> live = 0;
    std::atomic<int> worst = 0;
    std::vector<std::thread> threads;
    for (unsigned int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        cuda.cuCtxSetCurrent(context);
        const int result = Churn{.live = &live}(cuda, i);
        if (result != 0) worst = result;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return worst.load();
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
}

TEST(Death, KilledAtAnyMomentAProcessLeavesNothing) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  std::mt19937 random(20);
  for (int round = 0; round < 12; ++round) {
    std::vector<pid_t> children;
    for (unsigned int i = 0; i < 4; ++i) {
      children.push_back(share.process([&] {
        return start_and(share,
                         [&](const CudaLibrary& cuda) { return Churn{.count = 1 << 30}(cuda, i); });
      }));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 150'000));
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 1000 + SIGKILL);
    }
    EXPECT_TRUE(ShareUnderTest::until([&] { return share.held() == 0 && share.processes() == 0; }));
  }
  const pid_t after = share.process([&] {
    return start_and(share, [](const CudaLibrary& cuda) {
      CUdeviceptr pointer = 0;
      return cuda.cuMemAlloc_v2(&pointer, kProcessLimit) == CUDA_SUCCESS ? 0 : 1;
    });
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(after), 0) << "all of it is free again";
}

TEST(Fork, AChildIsNotItsParent) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  const CudaLibrary cuda(share.fence());
  ready(cuda);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 100 * kMiB), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    const pid_t child = share.process([&] {
      CUdeviceptr mine = 0;
      if (cuda.cuMemFree_v2(pointer) != CUDA_ERROR_NOT_INITIALIZED) return 1;
      if (cuda.cuMemAlloc_v2(&mine, kGranule) != CUDA_ERROR_NOT_INITIALIZED) return 2;
      if (cuda.cuInit(0) != CUDA_ERROR_NOT_INITIALIZED) return 3;
      return 0;
    });
    EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
    EXPECT_EQ(share.held(), 100 * kMiB);
  }
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(share.held(), 0U);
}

TEST(Fork, AChildThatStartsCudaItselfIsAProcessOfTheShare) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  const CudaLibrary cuda(share.fence());  // opened by the parent, started by the children
  std::vector<pid_t> children;
  children.reserve(8);
  const SharedCount started;
  const SharedCount end;
  for (int i = 0; i < 8; ++i) {
    children.push_back(share.process([&] {
      ready(cuda);
      CUdeviceptr pointer = 0;
      if (cuda.cuMemAlloc_v2(&pointer, 10 * kMiB) != CUDA_SUCCESS) return 1;
      ++*started;
      while (*end == 0) ::usleep(1000);
      return 0;
    }));
  }
  EXPECT_TRUE(ShareUnderTest::until([&] { return *started == 8; }));
  EXPECT_EQ(share.held(), 80 * kMiB);
  EXPECT_EQ(share.processes(), 8U);
  *end = 1;
  expect_all_well(children);
  EXPECT_TRUE(ShareUnderTest::until([&] { return share.held() == 0; }));
}

TEST(Fork, WithManyThreadsAtWork) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  const pid_t busy = share.process([&] {
    const CudaLibrary cuda(share.fence());
    ready(cuda);
    CUcontext context = nullptr;
    cuda.cuCtxGetCurrent(&context);
    std::atomic<bool> end = false;
    std::vector<std::thread> threads;
    for (unsigned int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        cuda.cuCtxSetCurrent(context);
        while (!end) Churn{.count = 20}(cuda, i);
      });
    }
    int worst = 0;
    for (int i = 0; i < 50; ++i) {
      // _exit at once, or exec: no descriptor is inherited.
      const pid_t child = ::fork();
      if (child == 0) {
        if (i % 2 == 0) ::execl("/bin/true", "true", nullptr);
        ::_exit(0);
      }
      worst = std::max(worst, ShareUnderTest::wait_for_exit(child));
    }
    end = true;
    for (std::thread& thread : threads) thread.join();
    return worst;
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(busy), 0);
  EXPECT_TRUE(ShareUnderTest::until([&] { return share.held() == 0; }));
}

TEST(Daemon, AfterARestartTheRowsAreThereAgain) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  const CudaLibrary cuda(share.fence());
  ready(cuda);
  CUdeviceptr pointer = 0;
  CUdeviceptr more = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 100 * kMiB), CUDA_SUCCESS);
  share.stop_daemon();
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 200 * kMiB), CUDA_SUCCESS) << "without a daemon";
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, kProcessLimit), CUDA_ERROR_OUT_OF_MEMORY) << "limits stay";
  share.start_daemon();
  EXPECT_EQ(share.held(), 0U) << "it does not know yet";
  EXPECT_TRUE(ShareUnderTest::until([&] {
    CUdeviceptr small = 0;
    EXPECT_EQ(cuda.cuMemAlloc_v2(&small, kGranule), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuMemFree_v2(small), CUDA_SUCCESS);
    return share.held() == 300 * kMiB;
  }));
  EXPECT_EQ(share.usage(0).contexts, 1U);
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(share.held(), 200 * kMiB);
}

TEST(Daemon, WithoutOneCudaDoesNotStart) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  share.stop_daemon();
  const CudaLibrary cuda(share.fence());
  int count = 0;
  EXPECT_EQ(cuda.cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  share.start_daemon();
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS) << "it may be tried again";
}

TEST(Daemon, UnlessTheHostHasSaidThatItMay) {
  ShareUnderTest share({.memory_limit = kGranule});
  share.stop_daemon();
  std::ofstream(share.directory() + "/pass-through") << "";
  const CudaLibrary cuda(share.fence());
  ready(cuda);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 100 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
}

bool is_socket(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

TEST(Descriptors, AProgramMayCloseWhatItDoesNotKnow) {
  ShareUnderTest share({.memory_limit = kProcessLimit});
  const SharedCount heard;
  const pid_t child = share.process([&] {
    const CudaLibrary cuda(share.fence());
    ready(cuda);
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return 1;
    // A new file that gets the descriptor number of our socket is not written to.
    for (int fd = 3; fd < 2048; ++fd) {
      if (is_socket(fd)) ::dup2(ends[1], fd);
    }
    CUdeviceptr pointer = 0;
    if (cuda.cuMemAlloc_v2(&pointer, 10 * kMiB) != CUDA_SUCCESS) return 2;
    while (*heard == 0) {
      if (cuda.cuMemAlloc_v2(&pointer, kProcessLimit) != CUDA_ERROR_OUT_OF_MEMORY) return 3;
      ::usleep(10'000);
    }
    char byte = 0;
    return ::read(ends[0], &byte, 1) < 0 ? 0 : 4;
  });
  EXPECT_TRUE(ShareUnderTest::until([&] { return share.reports(FENCE_REFUSED) > 0; }))
      << "over a new connection, which is tried once a second";
  *heard = 1;
  EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
}

}  // namespace
}  // namespace gantry::fence::test
