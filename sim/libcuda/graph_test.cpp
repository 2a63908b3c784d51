// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/cuda_under_test.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <vector>

namespace gantry::sim::cuda {
namespace {

constexpr const char* kTwoKernels =
    ".version 3.0\n.target sm_30\n.address_size 64\n"
    ".visible .entry spin(.param .u64 nanoseconds)\n{ ret; }\n"
    ".visible .entry vectorAdd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{ ret; }\n";

// A context with a stream that does not wait for the default one.
class CudaGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    spin_ = ready(cuda, "spin", kTwoKernels);
    ASSERT_EQ(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  CUresult spin(unsigned long long nanoseconds, CUstream in) {
    void* arguments[] = {&nanoseconds};
    return cuda.cuLaunchKernel(spin_, 1, 1, 1, 1, 1, 1, 0, in, arguments, nullptr);
  }
  CUgraphNode spin_node(CUgraph graph, unsigned long long nanoseconds,
                        const std::vector<CUgraphNode>& after = {}) {
    void* arguments[] = {&nanoseconds};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = spin_;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuda.cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &params),
              CUDA_SUCCESS);
    return node;
  }
  CUgraphExec executable(CUgraph graph, unsigned long long flags = 0) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, flags), CUDA_SUCCESS);
    return exec;
  }
  // How long the GPU takes for it, by its own clock.
  float duration(CUgraphExec exec) {
    CUevent start = nullptr;
    CUevent end = nullptr;
    float milliseconds = 0;
    EXPECT_EQ(cuda.cuEventCreate(&start, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuEventCreate(&end, 0), CUDA_SUCCESS);
    EXPECT_EQ(spin(20000000, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuEventRecord(start, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuEventRecord(end, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
    return milliseconds;
  }
  CUstreamCaptureStatus status(CUstream of) {
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuda.cuStreamIsCapturing(of, &found), CUDA_SUCCESS);
    return found;
  }
  std::size_t node_count(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_EQ(cuda.cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    return count;
  }
  std::uint64_t graph_memory(CUgraphMem_attribute which) {
    std::uint64_t value = 0;
    EXPECT_EQ(cuda.cuDeviceGetGraphMemAttribute(0, which, &value), CUDA_SUCCESS);
    return value;
  }
  CUdeviceptr alloc_node(CUgraph graph, std::size_t bytes, CUgraphNode& node) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = bytes;
    EXPECT_EQ(cuda.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
    return params.dptr;
  }

  const LoadedCuda cuda;
  CUstream stream = nullptr;
  CUstream other = nullptr;
  CUfunction spin_ = nullptr;
};

TEST_F(CudaGraphs, BranchesTakeTheirTimeSideBySide) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  const CUgraphNode first = spin_node(graph, 10000000);
  const CUgraphNode left = spin_node(graph, 20000000, {first});
  const CUgraphNode right = spin_node(graph, 5000000, {first});
  spin_node(graph, 10000000, {left, right});
  EXPECT_FLOAT_EQ(duration(executable(graph)), 40.0F);
}

TEST_F(CudaGraphs, AnExecutableKeepsWhatTheGraphWas) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  const CUgraphNode node = spin_node(graph, 10000000);
  const CUgraphExec exec = executable(graph);
  CUDA_KERNEL_NODE_PARAMS params{};
  ASSERT_EQ(cuda.cuGraphKernelNodeGetParams_v2(node, &params), CUDA_SUCCESS);
  unsigned long long longer = 30000000;
  unsigned long long was = 0;
  std::memcpy(&was, params.kernelParams[0], sizeof was);
  EXPECT_EQ(was, 10000000U);
  void* arguments[] = {&longer};
  params.kernelParams = arguments;
  EXPECT_EQ(cuda.cuGraphKernelNodeSetParams_v2(node, &params), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(duration(exec), 10.0F);
  EXPECT_EQ(cuda.cuGraphExecKernelNodeSetParams_v2(exec, node, &params), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(duration(exec), 30.0F);
  EXPECT_EQ(cuda.cuGraphNodeSetEnabled(exec, node, 0), CUDA_SUCCESS);
  EXPECT_LT(duration(exec), 1.0F);
  EXPECT_EQ(cuda.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS) << "it does not need the graph";
  EXPECT_EQ(cuda.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaGraphs, NodesCopyFillAndCallInTheirOrder) {
  CUdeviceptr from = 0;
  CUdeviceptr to = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&from, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&to, 4096), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraph child = nullptr;
  CUgraphNode fill = nullptr;
  CUgraphNode copy = nullptr;
  CUgraphNode inner = nullptr;
  CUgraphNode call = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphCreate(&child, 0), CUDA_SUCCESS);
  const CUDA_MEMSET_NODE_PARAMS set = {from, 0, 0x5a, 1, 4096, 1};
  ASSERT_EQ(cuda.cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &set, nullptr), CUDA_SUCCESS);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  CUDA_MEMCPY3D& box = params.of.memcpy.copyParams;
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from;
  box.dstDevice = to;
  box.WidthInBytes = 4096;
  box.Height = box.Depth = 1;
  ASSERT_EQ(cuda.cuGraphAddNode_v2(&copy, child, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphAddChildGraphNode(&inner, graph, &fill, 1, child), CUDA_SUCCESS);
  int calls = 0;
  const CUDA_HOST_NODE_PARAMS host = {[](void* count) { ++*static_cast<int*>(count); }, &calls};
  ASSERT_EQ(cuda.cuGraphAddHostNode(&call, graph, &inner, 1, &host), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphDestroy(child), CUDA_SUCCESS) << "the node has a copy";
  EXPECT_EQ(cuda.cuGraphLaunch(executable(graph), stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamSynchronize(stream), CUDA_SUCCESS);
  std::vector<unsigned char> out(4096);
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(out.data(), to, out.size()), CUDA_SUCCESS);
  EXPECT_THAT(out, ::testing::Each(0x5a));
  EXPECT_EQ(calls, 1);
}

TEST_F(CudaGraphs, BranchesByConditionAreRefusedAndLeaveTheGraphAsItWas) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  EXPECT_EQ(cuda.cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &params),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(node, nullptr);
  std::size_t count = 99;
  EXPECT_EQ(cuda.cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 0U);
}

TEST_F(CudaGraphs, NodesThatWaitForEachOtherAreNoGraph) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  const CUgraphNode one = spin_node(graph, 1);
  const CUgraphNode two = spin_node(graph, 1, {one});
  EXPECT_EQ(cuda.cuGraphAddDependencies(graph, &two, &one, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuGraphRemoveDependencies_v2(graph, &two, &one, nullptr, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  std::size_t edges = 1;
  CUgraphNode from = nullptr;
  CUgraphNode to = nullptr;
  EXPECT_EQ(cuda.cuGraphGetEdges(graph, &from, &to, &edges), CUDA_SUCCESS);
  EXPECT_EQ(from, one);
  EXPECT_EQ(to, two);
  EXPECT_EQ(cuda.cuGraphDestroyNode(one), CUDA_SUCCESS);
  EXPECT_EQ(node_count(graph), 1U);
  EXPECT_EQ(cuda.cuGraphGetEdges(graph, nullptr, nullptr, &edges), CUDA_SUCCESS);
  EXPECT_EQ(edges, 0U);
}

TEST_F(CudaGraphs, AnUpdateTakesTheSameGraphWithOtherParametersOnly) {
  CUgraph graph = nullptr;
  CUgraph longer = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphCreate(&longer, 0), CUDA_SUCCESS);
  spin_node(graph, 10000000);
  spin_node(longer, 25000000);
  const CUgraphExec exec = executable(graph);
  CUgraphExecUpdateResultInfo info{};
  EXPECT_EQ(cuda.cuGraphExecUpdate_v2(exec, longer, &info), CUDA_SUCCESS);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_FLOAT_EQ(duration(exec), 25.0F);
  spin_node(longer, 1);
  EXPECT_EQ(cuda.cuGraphExecUpdate_v2(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(CudaGraphs, MemoryNodesAreChargedFromTheLaunchOnUntilTheyAreTrimmed) {
  const std::uint64_t before = free_bytes(cuda);
  CUgraph graph = nullptr;
  CUgraphNode alloc = nullptr;
  CUgraphNode free = nullptr;
  CUgraph clone = nullptr;
  CUgraphExec second = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  const CUdeviceptr pointer = alloc_node(graph, 10 * kMiB, alloc);
  ASSERT_EQ(cuda.cuGraphAddMemFreeNode(&free, graph, &alloc, 1, pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
  const CUgraphExec exec = executable(graph);
  EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(free_bytes(cuda), before) << "an address is not memory";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(cuda), 32 * kMiB) << "it grows in steps";
  EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0U);
  EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 10 * kMiB);
  EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  EXPECT_EQ(cuda.cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(cuda), before);
}

TEST_F(CudaGraphs, MemoryThatAGraphLeavesIsTheProgramsToFree) {
  CUgraph graph = nullptr;
  CUgraphNode alloc = nullptr;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  const CUdeviceptr pointer = alloc_node(graph, 3 * kMiB, alloc);
  EXPECT_EQ(cuda.cuMemsetD8_v2(pointer, 1, 1), CUDA_ERROR_INVALID_VALUE) << "not yet";
  const CUgraphExec exec = executable(graph);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemsetD8_v2(pointer, 1, 3 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 4 * kMiB) << "in granules";
  EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE) << "it is allocated";
  EXPECT_EQ(cuda.cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  const CUgraphExec freeing = executable(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  EXPECT_EQ(cuda.cuGraphLaunch(freeing, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(freeing, stream), CUDA_SUCCESS);
  EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 4 * kMiB);
}

TEST_F(CudaGraphs, CaptureRecordsInsteadOfDoing) {
  const std::uint64_t before = free_bytes(cuda);
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  cuuint64_t id = 0;
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  std::size_t tails = 0;
  EXPECT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(status(other), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(spin(15000000, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemAllocAsync(&pointer, 5 * kMiB, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemsetD8Async(pointer, 7, 5 * kMiB, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(cuda), before);
  EXPECT_EQ(cuda.cuStreamGetCaptureInfo_v3(stream, &found, &id, nullptr, nullptr, nullptr, &tails),
            CUDA_SUCCESS);
  EXPECT_NE(id, 0U);
  EXPECT_EQ(tails, 1U);
  ASSERT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamQuery(stream), CUDA_SUCCESS) << "nothing was done";
  EXPECT_EQ(node_count(graph), 4U);
  EXPECT_GT(duration(executable(graph)), 14.9F);
  EXPECT_EQ(before - free_bytes(cuda), 32 * kMiB);
}

TEST_F(CudaGraphs, AnEventCarriesACaptureIntoAnotherStreamAndBack) {
  CUgraph graph = nullptr;
  CUevent fork = nullptr;
  CUevent join = nullptr;
  ASSERT_EQ(cuda.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  auto begin = [&] {
    ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    EXPECT_EQ(spin(5000000, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuEventRecord(fork, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
    EXPECT_EQ(status(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(spin(20000000, stream), CUDA_SUCCESS);
    EXPECT_EQ(spin(20000000, other), CUDA_SUCCESS);
  };
  begin();
  EXPECT_EQ(cuda.cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status(other), CU_STREAM_CAPTURE_STATUS_NONE);
  begin();
  EXPECT_EQ(cuda.cuEventRecord(join, other), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamWaitEvent(stream, join, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(duration(executable(graph)), 25.0F);
}

TEST_F(CudaGraphs, CallsThatCannotBeRecordedEndAStrictCapture) {
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  auto begin = [&](CUstreamCaptureMode mode) {
    ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, mode), CUDA_SUCCESS);
  };
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(spin(1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(cuda.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

TEST_F(CudaGraphs, TheLegacyStreamCannotBeUsedBesideABlockingCapture) {
  CUstream blocking = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.cuStreamCreate(&blocking, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(spin(1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(cuda.cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CudaGraphs, AContextTakesItsCapturesWithIt) {
  CUcontext context = nullptr;
  ASSERT_EQ(cuda.cuCtxGetCurrent(&context), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(spin(1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gantry::sim::cuda
