// SPDX-License-Identifier: Apache-2.0
// Both libraries of the fence with one share daemon: NVML shows the memory that a process takes
// through CUDA.
#include "gpu/abi/nvml.h"

#include "fence/share_under_test.hpp"
#include "support/paths.hpp"

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#define NVML_CALL(function) reinterpret_cast<decltype(&::function)>(symbol(#function))

namespace gantry::fence::test {
namespace {

constexpr std::uint64_t kShownLimit = 4096 * kMiB;

// The fence's NVML in a share's directory, in front of the machine's NVML.
class FencedNvml {
 public:
  explicit FencedNvml(const ShareUnderTest& share) {
    const std::filesystem::path directory = share.directory();
    const auto cuda = std::filesystem::canonical(share.driver());
    std::string name = cuda.filename();
    name.replace(0, std::string("libcuda").size(), "libnvidia-ml");
    std::filesystem::create_symlink(cuda.parent_path() / name, directory / "nvml");
    const auto file = directory / "libnvidia-ml.so.1";
    std::ifstream in(gantry::test::built("lib/libgantry-fence-nvml.so"), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const std::string usual = FENCE_DIRECTORY;
    for (auto at = bytes.find(usual); at != std::string::npos; at = bytes.find(usual, at + 1))
      bytes.replace(at, usual.size(), share.directory());
    std::ofstream(file, std::ios::binary) << bytes;
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
    EXPECT_EQ(NVML_CALL(nvmlInit_v2)(), NVML_SUCCESS);
    EXPECT_EQ(NVML_CALL(nvmlDeviceGetHandleByIndex_v2)(0, &device_), NVML_SUCCESS);
  }
  nvmlMemory_t memory() const {
    nvmlMemory_t now{};
    EXPECT_EQ(NVML_CALL(nvmlDeviceGetMemoryInfo)(device_, &now), NVML_SUCCESS);
    return now;
  }
  std::vector<nvmlProcessInfo_t> processes() const {
    unsigned int count = 16;
    std::vector<nvmlProcessInfo_t> rows(count);
    const auto list = NVML_CALL(nvmlDeviceGetComputeRunningProcesses_v3);
    EXPECT_EQ(list(device_, &count, rows.data()), NVML_SUCCESS);
    rows.resize(count);
    return rows;
  }

 private:
  void* symbol(const char* name) const { return ::dlsym(handle_, name); }
  void* handle_ = nullptr;
  nvmlDevice_t device_ = nullptr;
};

// Holds memory through the fence until it is killed.
pid_t holder(ShareUnderTest& share, std::uint64_t bytes) {
  return share.process([&share, bytes] {
    const CudaLibrary cuda(share.fence());
    CUcontext context = nullptr;
    CUdeviceptr pointer = 0;
    if (cuda.cuInit(0) != CUDA_SUCCESS || cuda.cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
        cuda.cuMemAlloc_v2(&pointer, bytes) != CUDA_SUCCESS)
      return 1;
    for (;;) ::pause();
  });
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  EXPECT_EQ(ShareUnderTest::wait_for_exit(pid), 1000 + SIGKILL);
}

TEST(FencedNvml, ShowsWhatTheSharesProcessesHold) {
  ShareUnderTest share({.memory_limit = kShownLimit});
  const FencedNvml nvml(share);
  EXPECT_EQ(nvml.memory().total, kShownLimit);
  EXPECT_EQ(nvml.memory().used, 0U);
  const pid_t first = holder(share, 100 * kMiB);
  const pid_t second = holder(share, 200 * kMiB);
  ASSERT_TRUE(ShareUnderTest::until([&] { return share.held() == 300 * kMiB; }));
  EXPECT_EQ(nvml.memory().used, 300 * kMiB);
  EXPECT_EQ(nvml.memory().free, kShownLimit - 300 * kMiB);
  std::uint64_t sum = 0;
  for (const auto& row : nvml.processes()) {
    EXPECT_TRUE(row.pid == static_cast<unsigned>(first) ||
                row.pid == static_cast<unsigned>(second));
    sum += row.usedGpuMemory;
  }
  EXPECT_EQ(sum, 300 * kMiB);
  end(first);
  EXPECT_TRUE(ShareUnderTest::until([&] { return nvml.memory().used == 200 * kMiB; }));
  EXPECT_TRUE(ShareUnderTest::until([&] { return nvml.processes().size() == 1; }));
  end(second);
  EXPECT_TRUE(ShareUnderTest::until([&] { return nvml.processes().empty(); }));
}

TEST(FencedNvml, FollowsTheLimitAndTheDaemon) {
  ShareUnderTest share({.memory_limit = kShownLimit});
  const FencedNvml nvml(share);
  EXPECT_EQ(nvml.memory().total, kShownLimit);
  share.set_limit(kShownLimit / 2);
  EXPECT_EQ(nvml.memory().total, kShownLimit / 2) << "the page is the same";
  share.stop_daemon();
  EXPECT_EQ(nvml.memory().total, kShownLimit / 2) << "the last that was known";
  share.start_daemon();
  share.set_limit(kShownLimit / 4);
  EXPECT_TRUE(ShareUnderTest::until([&] { return nvml.memory().total == kShownLimit / 4; }))
      << "once the old daemon's heartbeat has stopped";
}

}  // namespace
}  // namespace gantry::fence::test
