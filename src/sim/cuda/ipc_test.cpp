// SPDX-License-Identifier: Apache-2.0
// Memory that one process allocates and another uses.
#include "sim/cuda/cuda_under_test.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace gantry::sim::cuda {
namespace {

// Runs `work` in another process, which is told something first; 0 when all of it went well.
class Peer {
 public:
  explicit Peer(const std::function<int(int pipe)>& work) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[1]);
      ::_exit(work(ends[0]));
    }
    ::close(ends[0]);
    pipe_ = ends[1];
  }
  ~Peer() {
    if (pipe_ >= 0) ::close(pipe_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  template <class T>
  int tell(const T& what) {
    EXPECT_EQ(::write(pipe_, &what, sizeof what), static_cast<ssize_t>(sizeof what));
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

 private:
  pid_t pid_ = 0;
  int pipe_ = -1;
};

#define STEP(number, condition) \
  if (!(condition)) return number

TEST(CudaIpc, MemoryIsSharedAndChargedToWhoMadeIt) {
  const Loaded cuda;
  Peer peer([&](int pipe) {
    CUipcMemHandle handle{};
    CUdeviceptr pointer = 0;
    CUdeviceptr again = 0;
    STEP(1, ::read(pipe, &handle, sizeof handle) == static_cast<ssize_t>(sizeof handle));
    ready(cuda);
    const std::uint64_t before = free_bytes(cuda);
    STEP(2, cuda.cuIpcOpenMemHandle_v2(&pointer, handle, 1) == CUDA_SUCCESS);
    STEP(3, free_bytes(cuda) == before);
    unsigned word = 0;
    STEP(4, cuda.cuMemcpyDtoH_v2(&word, pointer, sizeof word) == CUDA_SUCCESS);
    STEP(5, word == 0x12345678);
    STEP(6, cuda.cuMemsetD32_v2(pointer, 77, 1) == CUDA_SUCCESS);
    STEP(7, cuda.cuIpcOpenMemHandle_v2(&again, handle, 1) == CUDA_SUCCESS && again == pointer);
    STEP(8, cuda.cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
    STEP(9, cuda.cuIpcCloseMemHandle(pointer) == CUDA_SUCCESS);
    STEP(10, cuda.cuIpcCloseMemHandle(pointer) == CUDA_SUCCESS);
    STEP(11, cuda.cuIpcCloseMemHandle(pointer) == CUDA_ERROR_INVALID_VALUE);
    return 0;
  });
  ready(cuda);
  CUdeviceptr small = 0;
  CUdeviceptr mine = 0;
  CUipcMemHandle handle{};
  ASSERT_EQ(cuda.cuMemAlloc_v2(&small, 1000), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&mine, 1000), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemsetD32_v2(mine, 0x12345678, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuIpcGetMemHandle(&handle, mine), CUDA_SUCCESS);
  CUdeviceptr own = 0;
  EXPECT_EQ(cuda.cuIpcOpenMemHandle_v2(&own, handle, 1), CUDA_ERROR_INVALID_CONTEXT)
      << "it is for others";
  EXPECT_EQ(peer.tell(handle), 0);
  unsigned word = 0;
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(&word, mine, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(word, 77U) << "what the other wrote";
  EXPECT_EQ(cuda.cuMemFree_v2(mine), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(small), CUDA_SUCCESS);
}

TEST(CudaIpc, NonsenseIsNoHandle) {
  const Loaded cuda;
  ready(cuda);
  CUipcMemHandle handle{};
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuIpcOpenMemHandle_v2(&pointer, handle, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuIpcGetMemHandle(&handle, 12345), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaIpc, MappedMemoryTravelsAsADescriptor) {
  const Loaded cuda;
  ready(cuda);
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle imported = 0;
  int fd = -1;
  ASSERT_EQ(cuda.cuMemCreate(&handle, 2 * kMiB, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(
      cuda.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_ERROR_INVALID_VALUE)
      << "it was not made for that";
  EXPECT_EQ(cuda.cuMemRelease(handle), CUDA_SUCCESS);
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ASSERT_EQ(cuda.cuMemCreate(&handle, 2 * kMiB, &prop, 0), CUDA_SUCCESS);
  const std::uint64_t before = free_bytes(cuda);
  ASSERT_EQ(
      cuda.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemImportFromShareableHandle(
                &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(cuda), before);
  EXPECT_EQ(cuda.cuMemRelease(imported), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(cuda), before);
  EXPECT_EQ(::close(fd), 0);
  EXPECT_EQ(cuda.cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(cuda), before + 2 * kMiB);
}

}  // namespace
}  // namespace gantry::sim::cuda
