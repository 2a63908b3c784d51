// SPDX-License-Identifier: Apache-2.0
// Memory that one process allocates and another uses.
#include "sim/libcuda/cuda_under_test.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace gantry::sim::cuda {
namespace {

// Runs `work` in another process, which first receives some data; 0 on success.
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
  const LoadedCuda cuda;
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

struct SharedPool {
  CUmemPoolPtrExportData pointer;
  pid_t from;
  int pool;
};

// The descriptor as SCM_RIGHTS would bring it.
int borrowed(const SharedPool& sent) {
  const std::string path =
      "/proc/" + std::to_string(sent.from) + "/fd/" + std::to_string(sent.pool);
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

TEST(CudaIpc, APoolAndItsAllocationsAreSharedAndChargedToWhoMadeThem) {
  const LoadedCuda cuda;
  constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  Peer peer([&](int pipe) {
    SharedPool sent{};
    STEP(1, ::read(pipe, &sent, sizeof sent) == static_cast<ssize_t>(sizeof sent));
    ready(cuda);
    const std::uint64_t before = free_bytes(cuda);
    CUmemoryPool pool = nullptr;
    CUdeviceptr pointer = 0;
    auto* const handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(borrowed(sent)));
    STEP(2, cuda.cuMemPoolImportFromShareableHandle(&pool, handle, kFile, 0) == CUDA_SUCCESS);
    STEP(3, cuda.cuMemPoolImportPointer(&pointer, pool, &sent.pointer) == CUDA_SUCCESS);
    unsigned word = 0;
    STEP(4, cuda.cuMemcpyDtoH_v2(&word, pointer, sizeof word) == CUDA_SUCCESS && word == 4711);
    STEP(5, cuda.cuMemsetD32_v2(pointer, 77, 1) == CUDA_SUCCESS);
    STEP(6, free_bytes(cuda) == before);
    CUdeviceptr more = 0;
    STEP(7, cuda.cuMemAllocFromPoolAsync(&more, 64, pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
    STEP(8, cuda.cuDeviceSetMemPool(0, pool) == CUDA_ERROR_INVALID_VALUE);
    STEP(9, cuda.cuIpcCloseMemHandle(pointer) == CUDA_ERROR_INVALID_VALUE);
    STEP(10, cuda.cuMemFreeAsync(pointer, nullptr) == CUDA_SUCCESS);
    STEP(11, cuda.cuMemFreeAsync(pointer, nullptr) == CUDA_ERROR_INVALID_VALUE);
    STEP(12, cuda.cuMemPoolDestroy(pool) == CUDA_SUCCESS);
    return 0;
  });
  ready(cuda);
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.handleTypes = kFile;
  CUmemoryPool pool = nullptr;
  CUdeviceptr mine = 0;
  SharedPool sent{{}, ::getpid(), -1};
  ASSERT_EQ(cuda.cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAllocFromPoolAsync(&mine, 10000, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemsetD32_v2(mine, 4711, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemPoolExportPointer(&sent.pointer, mine), CUDA_ERROR_INVALID_VALUE)
      << "the pool itself goes first";
  ASSERT_EQ(cuda.cuMemPoolExportToShareableHandle(&sent.pool, pool, kFile, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemPoolExportPointer(&sent.pointer, mine), CUDA_SUCCESS);
  EXPECT_EQ(peer.tell(sent), 0);
  unsigned word = 0;
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(&word, mine, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(word, 77U) << "what the other wrote";
  EXPECT_EQ(cuda.cuMemFreeAsync(mine, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemPoolDestroy(pool), CUDA_SUCCESS);
  ::close(sent.pool);
}

TEST(CudaIpc, APoolThatWasNotMadeForItIsNotShared) {
  const LoadedCuda cuda;
  ready(cuda);
  CUmemoryPool pool = nullptr;
  int file = -1;
  ASSERT_EQ(cuda.cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT_EQ(cuda.cuMemPoolExportToShareableHandle(&file, pool, kFile, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemPoolImportFromShareableHandle(&pool, nullptr, kFile, 0),
            CUDA_ERROR_INVALID_VALUE)
      << "descriptor 0 is not a pool";
}

TEST(CudaIpc, NonsenseIsNoHandle) {
  const LoadedCuda cuda;
  ready(cuda);
  CUipcMemHandle handle{};
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuIpcOpenMemHandle_v2(&pointer, handle, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuIpcGetMemHandle(&handle, 12345), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaIpc, MappedMemoryTravelsAsADescriptor) {
  const LoadedCuda cuda;
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
