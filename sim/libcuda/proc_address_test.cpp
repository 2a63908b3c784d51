// SPDX-License-Identifier: Apache-2.0
// Which function a name means, by the CUDA version that a program was built for.
#include "sim/libcuda/cuda_under_test.hpp"
#include "support/paths.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace gantry::sim::cuda {
namespace {

struct Meaning {
  const char* name;
  int version;
  const char* symbol;
};

constexpr Meaning kMeanings[] = {
    {"cuMemAlloc", 11080, "cuMemAlloc_v2"},
    {"cuMemAlloc", 13000, "cuMemAlloc_v2"},
    {"cuMemAlloc", 3000, "cuMemAlloc"},
    {"cuCtxCreate", 11030, "cuCtxCreate_v2"},
    {"cuCtxCreate", 11080, "cuCtxCreate_v3"},
    {"cuCtxCreate", 12040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxCreate", 13000, "cuCtxCreate_v4"},
    {"cuMemAdvise", 12010, "cuMemAdvise"},
    {"cuMemAdvise", 12020, "cuMemAdvise_v2"},
    {"cuMemPrefetchAsync", 11080, "cuMemPrefetchAsync"},
    {"cuMemPrefetchAsync", 13000, "cuMemPrefetchAsync_v2"},
    {"cuGraphGetEdges", 12020, "cuGraphGetEdges"},
    {"cuGraphGetEdges", 12030, "cuGraphGetEdges_v2"},
    {"cuGraphNodeGetDependencies", 11080, "cuGraphNodeGetDependencies"},
    {"cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v2"},
    {"cuGraphNodeGetDependentNodes", 13000, "cuGraphNodeGetDependentNodes_v2"},
    {"cuGraphAddDependencies", 12000, "cuGraphAddDependencies"},
    {"cuGraphAddDependencies", 13000, "cuGraphAddDependencies_v2"},
    {"cuGraphRemoveDependencies", 13000, "cuGraphRemoveDependencies_v2"},
    {"cuGraphAddNode", 12020, "cuGraphAddNode"},
    {"cuGraphAddNode", 12030, "cuGraphAddNode_v2"},
    {"cuStreamGetCaptureInfo", 11020, "cuStreamGetCaptureInfo"},
    {"cuStreamGetCaptureInfo", 11080, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuGraphExecUpdate", 11080, "cuGraphExecUpdate"},
    {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"},
    {"cuGetProcAddress", 11080, "cuGetProcAddress"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGraphInstantiate", 11080, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuGraphKernelNodeGetParams", 11080, "cuGraphKernelNodeGetParams"},
    {"cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v2"},
    {"cuGraphAddKernelNode", 12090, "cuGraphAddKernelNode_v2"},
    {"cuEventElapsedTime", 12070, "cuEventElapsedTime"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuDeviceGetUuid", 11030, "cuDeviceGetUuid"},
    {"cuDeviceGetUuid", 11080, "cuDeviceGetUuid_v2"},
    {"cuDevicePrimaryCtxRelease", 11080, "cuDevicePrimaryCtxRelease_v2"},
    {"cuStreamBeginCapture", 11080, "cuStreamBeginCapture_v2"},
    {"cuIpcOpenMemHandle", 11080, "cuIpcOpenMemHandle_v2"},
};

TEST(CudaProcAddress, ANameMeansWhatItMeantToTheProgramsVersion) {
  const LoadedCuda cuda;
  for (const Meaning& meaning : kMeanings) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    EXPECT_EQ(cuda.cuGetProcAddress_v2(meaning.name, &found, meaning.version, 0, &status),
              CUDA_SUCCESS);
    EXPECT_EQ(found, cuda.symbol(meaning.symbol)) << meaning.name << " " << meaning.version;
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    found = nullptr;
    EXPECT_EQ(cuda.cuGetProcAddress(meaning.name, &found, meaning.version, 0), CUDA_SUCCESS);
    EXPECT_EQ(found, cuda.symbol(meaning.symbol)) << "the first form answers the same";
  }
}

TEST(CudaProcAddress, PerThreadStreamsAreFunctionsOfTheirOwn) {
  const LoadedCuda cuda;
  for (const char* name : {"cuLaunchKernel", "cuGraphLaunch", "cuMemAllocAsync", "cuMemcpyAsync",
                           "cuStreamSynchronize", "cuLaunchCooperativeKernel"}) {
    void* found = nullptr;
    EXPECT_EQ(cuda.cuGetProcAddress_v2(name, &found, 12000,
                                       CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(found, cuda.symbol((std::string(name) + "_ptsz").c_str())) << name;
  }
  void* found = nullptr;
  EXPECT_EQ(cuda.cuGetProcAddress_v2("cuMemcpyHtoD", &found, 12000,
                                     CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuMemcpyHtoD_v2_ptds"));
}

TEST(CudaProcAddress, SaysWhetherTheNameOrTheVersionIsMissing) {
  const LoadedCuda cuda;
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(cuda.cuGetProcAddress_v2("cuGraphAddNode", &found, 11080, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(cuda.cuGetProcAddress_v2("cuNothing", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(cuda.cuGetProcAddress("cuNothing", &found, 12000, 0), CUDA_ERROR_NOT_FOUND);
}

TEST(CudaExportTable, ExplainsOnceWhyTheRuntimeDoesNotStart) {
  const LoadedCuda cuda;
  CUuuid runtime = {};
  std::memcpy(runtime.bytes, "\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9",
              sizeof runtime.bytes);
  const CUuuid other = {};
  const void* table = &runtime;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuda.cuGetExportTable(&table, &other), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(table, nullptr);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuda.cuGetExportTable(&table, &runtime), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuda.cuGetExportTable(&table, &runtime), CUDA_ERROR_NOT_FOUND);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("libcudart"), std::string::npos);
  EXPECT_EQ(said.find('\n'), said.size() - 1) << "one line";
}

std::string read_file(const std::string& path) {
  std::ifstream in(test::source_dir() + "/" + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

// The variants with and without a per-thread default stream count as one function.
std::string plain(const std::string& symbol) {
  const auto end = symbol.rfind("_pt");
  return end == std::string::npos ? symbol : symbol.substr(0, end);
}

constexpr Meaning kRefused[] = {
#define CUDA_UNSUPPORTED(exported, name, since) {#name, since, #exported},
#include "sim/libcuda/unsupported.def"
};

TEST(CudaExports, WhatIsRefusedIsFoundAndSaysSo) {
  const LoadedCuda cuda;
  for (const bool initialised : {false, true}) {
    if (initialised) ready(cuda);
    for (const Meaning& row : kRefused) {
      void* found = nullptr;
      ASSERT_NE(cuda.symbol(row.symbol), nullptr) << row.symbol;
      EXPECT_EQ(cuda.cuGetProcAddress(row.name, &found, row.version, 0), CUDA_SUCCESS);
      EXPECT_EQ(found, cuda.symbol(row.symbol)) << row.symbol;
      EXPECT_EQ(cuda.get<CUresult()>(row.symbol)(),
                initialised ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED)
          << row.symbol;
    }
  }
}

TEST(CudaExports, WhatIsRefusedIsInTheDocs) {
  std::set<std::string> refused;
  for (const Meaning& row : kRefused) refused.insert(row.symbol);
  const std::string docs = read_file("docs/simulated-machines.md");
  const std::string start = "```text\n";
  const auto at = docs.find(start, docs.find("## CUDA functions that are refused"));
  ASSERT_NE(at, std::string::npos);
  const auto from = at + start.size();
  EXPECT_EQ(words_of(docs.substr(from, docs.find("```", from) - from)), refused);
}

TEST(CudaExports, WhatTheDriverHasAndTheSimulationHasNotIsInTheDocs) {
  const LoadedCuda cuda;
  const std::set<std::string> exported = words_of(read_file("src/gpu/abi/cuda_exports.txt"));
  ASSERT_GT(exported.size(), 600U);
  std::set<std::string> missing;
  for (const std::string& name : exported) {
    if (cuda.symbol(name.c_str()) == nullptr) missing.insert(plain(name));
  }
  const std::string docs = read_file("docs/simulated-machines.md");
  const std::string start = "```text\n";
  const auto at = docs.rfind(start);
  ASSERT_NE(at, std::string::npos);
  const auto from = at + start.size();
  EXPECT_EQ(words_of(docs.substr(from, docs.find("```", from) - from)), missing);
}

TEST(CudaExports, NothingIsSimulatedThatTheDriverDoesNotHave) {
  const std::set<std::string> exported = words_of(read_file("src/gpu/abi/cuda_exports.txt"));
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) \
  EXPECT_EQ(exported.count(#symbol), 1U) << #symbol;
#include "gpu/abi/cuda_entries.def"
}

}  // namespace
}  // namespace gantry::sim::cuda
