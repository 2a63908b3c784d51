// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/cuda_under_test.hpp"
#include "support/paths.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

namespace gantry::sim::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StrEq;

void* proc_address(const Api& cuda, const char* name, int version, cuuint64_t flags = 0,
                   CUdriverProcAddressQueryResult wanted = CU_GET_PROC_ADDRESS_SUCCESS) {
  void* function = nullptr;
  auto status = static_cast<CUdriverProcAddressQueryResult>(3);
  EXPECT_EQ(cuda.cuGetProcAddress_v2(name, &function, version, flags, &status), CUDA_SUCCESS)
      << name;
  EXPECT_EQ(status, wanted) << name << " " << version;
  return function;
}

TEST(CudaEntryPoints, AreAllExportedAndFoundByNameAndVersion) {
  const LoadedCuda cuda;
#define CUDA_ENTRY(symbol_, name, since, parameters, arguments) \
  EXPECT_NE(cuda.symbol(#symbol_), nullptr) << #symbol_;        \
  EXPECT_EQ(proc_address(cuda, #name, since), cuda.symbol(#symbol_)) << #symbol_;
#define CUDA_ENTRY_PTSZ(symbol_, name, since, parameters, arguments)              \
  EXPECT_EQ(proc_address(cuda, #name, since), cuda.symbol(#symbol_)) << #symbol_; \
  EXPECT_EQ(proc_address(cuda, #name, since < 7000 ? 7000 : since, 2),            \
            cuda.symbol(#symbol_ "_ptsz"));
#define CUDA_ENTRY_PTDS(symbol_, name, since, parameters, arguments)              \
  EXPECT_EQ(proc_address(cuda, #name, since), cuda.symbol(#symbol_)) << #symbol_; \
  EXPECT_EQ(proc_address(cuda, #name, since < 7000 ? 7000 : since, 2),            \
            cuda.symbol(#symbol_ "_ptds"));
#include "gpu/abi/cuda_entries.def"
}

TEST(CudaEntryPoints, MeanWhatTheCallersVersionMeans) {
  const LoadedCuda cuda;
  EXPECT_EQ(proc_address(cuda, "cuMemAlloc", 3010), cuda.symbol("cuMemAlloc"));
  EXPECT_EQ(proc_address(cuda, "cuMemAlloc", 13000), cuda.symbol("cuMemAlloc_v2"));
  EXPECT_EQ(proc_address(cuda, "cuCtxCreate", 11030), cuda.symbol("cuCtxCreate_v2"));
  EXPECT_EQ(proc_address(cuda, "cuCtxCreate", 11040), cuda.symbol("cuCtxCreate_v3"));
  EXPECT_EQ(proc_address(cuda, "cuCtxCreate", 13000), cuda.symbol("cuCtxCreate_v4"));
  EXPECT_EQ(proc_address(cuda, "cuGetProcAddress", 11030), cuda.symbol("cuGetProcAddress"));
}

TEST(CudaEntryPoints, AbsentOnesAreReportedAsTheRealDriverDoes) {
  const LoadedCuda cuda;
  EXPECT_EQ(proc_address(cuda, "cuNoSuch", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
            nullptr);
  EXPECT_EQ(proc_address(cuda, "cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
            nullptr)
      << "a symbol is not a name";
  EXPECT_EQ(
      proc_address(cuda, "cuMemAllocAsync", 11010, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
      nullptr);
  EXPECT_EQ(
      proc_address(cuda, "cuLaunchKernel", 4000, 2, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
      nullptr);
  void* function = &function;
  EXPECT_EQ(cuda.cuGetProcAddress("cuNoSuch", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(function, &function) << "the first version leaves the pointer alone";
  EXPECT_EQ(cuda.cuGetProcAddress("cuInit", &function, 13010, 0), CUDA_ERROR_INVALID_VALUE)
      << "newer than the driver";
  EXPECT_EQ(cuda.cuGetProcAddress("cuInit", &function, 13000, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaStart, NothingButAFewAnswersBeforeIt) {
  const LoadedCuda cuda;
  int value = 0;
  const char* text = nullptr;
  EXPECT_EQ(cuda.cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuda.cuDriverGetVersion(&value), CUDA_SUCCESS);
  EXPECT_EQ(value, 13000);
  EXPECT_EQ(cuda.cuGetErrorName(CUDA_ERROR_NO_DEVICE, &text), CUDA_SUCCESS);
  EXPECT_THAT(text, StrEq("CUDA_ERROR_NO_DEVICE"));
  EXPECT_EQ(cuda.cuGetErrorString(CUDA_ERROR_NO_DEVICE, &text), CUDA_SUCCESS);
  EXPECT_THAT(text, StrEq("no CUDA-capable device is detected"));
  EXPECT_EQ(cuda.cuGetErrorName(static_cast<CUresult>(1000), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(cuda.cuInit(1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetCount(&value), CUDA_SUCCESS);
  EXPECT_EQ(value, 1);
}

TEST(CudaStart, FailsAsTheMachineFails) {
  struct Case {
    const char* machine;
    CUresult result;
  };
  for (const Case& wanted :
       {Case{"mismatch", CUDA_ERROR_SYSTEM_DRIVER_MISMATCH},
        Case{"fabric-down", CUDA_ERROR_SYSTEM_NOT_READY}, Case{"no-nodes", CUDA_ERROR_NO_DEVICE}}) {
    const test::Machine machine(wanted.machine);
    EXPECT_EQ(CudaInTree(machine).cuInit(0), wanted.result) << wanted.machine;
  }
}

TEST(CudaStart, WithoutAMachineAtItsEndThereIsNoDevice) {
  void* handle = ::dlopen(test::built("lib/gantry/sim/libcuda.so").c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(reinterpret_cast<decltype(&::cuInit)>(::dlsym(handle, "cuInit"))(0),
            CUDA_ERROR_NO_DEVICE);
  ::dlclose(handle);
}

TEST(CudaStart, NeedsTheControlNodeAndShowsGpusWhoseNodesAreThere) {
  LoadedCuda cuda("h200x8");
  const auto uvm = cuda.nodes({}).substr(cuda.nodes({}).find("/dev/nvidia-uvm"));
  const std::string control =
      "/dev/nvidiactl c 195 255 0666 0 0\n/dev/nvidia3 c 195 3 0666 0 0\n"
      "/dev/nvidia5 c 195 5 0666 0 0\n";
  cuda.tree.file("dev.table", control + uvm.substr(0, uvm.find('\n') + 1));
  int count = 0;
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  LoadedCuda blind("h200x8");
  blind.tree.file("dev.table", "/dev/nvidia3 c 195 3 0666 0 0\n");
  EXPECT_EQ(blind.cuInit(0), CUDA_ERROR_NO_DEVICE);
  LoadedCuda without_uvm("h200x8");
  without_uvm.tree.file("dev.table", control);
  EXPECT_EQ(without_uvm.cuInit(0), CUDA_ERROR_UNKNOWN);
}

TEST(CudaStart, HonoursVisibleDevices) {
  const ScopedEnvironment visible("CUDA_VISIBLE_DEVICES", "2,GPU-");
  LoadedCuda cuda("h200x8");
  int count = 0;
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1) << "the second word names no device, or eight";
  const ScopedEnvironment none("CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(LoadedCuda("h200x8").cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST(CudaStart, AForkedChildHasNoDriver) {
  const LoadedCuda cuda;
  ready(cuda);
  const pid_t child = ::fork();
  if (child == 0) {
    int count = 0;
    CUdeviceptr pointer = 0;
    const bool right = cuda.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                       cuda.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                       cuda.cuMemAlloc_v2(&pointer, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                       cuda.cuDriverGetVersion(&count) == CUDA_SUCCESS;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_SUCCESS) << "the parent goes on";
}

TEST(CudaDevice, AnswersWhatARealH200Answers) {
  const LoadedCuda cuda;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  std::ifstream golden(test::source_dir() + "/tests/golden/h200/cuda-attributes.txt");
  int number = 0;
  int value = 0;
  int count = 0;
  while (golden >> number >> value) {
    int answered = -12345;
    EXPECT_EQ(cuda.cuDeviceGetAttribute(&answered, static_cast<CUdevice_attribute>(number), 0),
              CUDA_SUCCESS);
    EXPECT_EQ(answered, value) << "attribute " << number;
    ++count;
  }
  EXPECT_EQ(count, 147);
  EXPECT_EQ(cuda.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(148), 0),
            CUDA_ERROR_INVALID_VALUE)
      << "a driver of CUDA 13.0 does not know it";
}

TEST(CudaDevice, HasNameUuidAndAddress) {
  const LoadedCuda cuda;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  char text[64] = "";
  EXPECT_EQ(cuda.cuDeviceGetName(text, sizeof text, 0), CUDA_SUCCESS);
  EXPECT_THAT(text, StrEq("NVIDIA H200"));
  EXPECT_EQ(cuda.cuDeviceGetName(text, 8, 0), CUDA_SUCCESS);
  EXPECT_THAT(text, StrEq("NVIDIA "));
  EXPECT_EQ(cuda.cuDeviceGetPCIBusId(text, sizeof text, 0), CUDA_SUCCESS);
  EXPECT_THAT(text, StrEq("0000:00:06.0"));
  EXPECT_EQ(cuda.cuDeviceGetPCIBusId(text, 5, 0), CUDA_ERROR_INVALID_VALUE);
  CUdevice device = -1;
  EXPECT_EQ(cuda.cuDeviceGetByPCIBusId(&device, "00:06.0"), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuda.cuDeviceGetByPCIBusId(&device, "0000:77:00.0"), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuda.cuDeviceGetByPCIBusId(&device, "x"), CUDA_ERROR_INVALID_VALUE);
  CUuuid uuid{};
  EXPECT_EQ(cuda.cuDeviceGetUuid_v2(&uuid, 0), CUDA_SUCCESS);
  EXPECT_EQ(uuid.bytes[0], 0x11);
  EXPECT_EQ(uuid.bytes[15], 0x55);
  EXPECT_EQ(cuda.cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuda.cuDeviceGetName(text, sizeof text, -1), CUDA_ERROR_INVALID_DEVICE);
}

TEST(CudaDevice, OlderDriversKnowFewerAttributes) {
  const LoadedCuda cuda("k80");
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  int value = 0;
  EXPECT_EQ(cuda.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(cuda.cuDeviceGetAttribute(&value,
                                      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 114688);
  EXPECT_EQ(cuda.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0),
            CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaDevice, OfAMigMachineIsItsFirstComputeInstance) {
  const test::Machine machine("a100x8");
  const CudaInTree cuda(machine);
  int count = 0;
  char name[96] = "";
  std::size_t bytes = 0;
  CUuuid own{};
  CUuuid parents{};
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1) << "one instance, and no whole GPU beside it";
  EXPECT_EQ(cuda.cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
  EXPECT_THAT(name, HasSubstr(" MIG 1g.5gb"));
  EXPECT_EQ(cuda.cuDeviceTotalMem_v2(&bytes, 0), CUDA_SUCCESS);
  EXPECT_LT(bytes, 5120 * kMiB);
  int value = 0;
  EXPECT_EQ(cuda.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 14);
  EXPECT_EQ(cuda.cuDeviceGetUuid(&parents, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetUuid_v2(&own, 0), CUDA_SUCCESS);
  EXPECT_NE(std::string(own.bytes, 16), std::string(parents.bytes, 16));
}

TEST(CudaDevice, OfAMigMachineCanBeAWholeGpuThatIsAskedFor) {
  const ScopedEnvironment visible("CUDA_VISIBLE_DEVICES", "2,3");
  const test::Machine machine("a100x8");
  const CudaInTree cuda(machine);
  int count = 0;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
}

TEST(CudaStart, DoesNotWaitForAFifoInPlaceOfTheDeviceTable) {
  const test::Machine machine("h200");
  for (const char* path : {"/dev.table", "/dev/nvidiactl"}) ::unlink(machine.path(path).c_str());
  ASSERT_EQ(::mkfifo(machine.path("/dev.table").c_str(), 0600), 0);
  EXPECT_NE(CudaInTree(machine).cuInit(0), CUDA_SUCCESS);
}

TEST(CudaFaults, AreReturnedByTheEntryPointTheyNameUntilTheyAreTakenBack) {
  const LoadedCuda cuda;
  ready(cuda);
  cuda.change([](gantry_sim_state& state) {
    state.fault_count = 1;
    std::strcpy(state.fault[0].function, "cuMemAlloc_v2");
    state.fault[0].result = CUDA_ERROR_ECC_UNCORRECTABLE;
  });
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  cuda.change([](gantry_sim_state& state) { state.fault_count = 0; });
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_SUCCESS);
}

TEST(CudaFaults, ALostGpuDoesNoWork) {
  const LoadedCuda cuda;
  ready(cuda);
  cuda.change([](gantry_sim_state& state) { state.gpu[0].lost = 1; });
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
  const LoadedCuda later("h200", [](gantry_sim_image& image) { image.state.gpu[0].lost = 1; });
  EXPECT_EQ(later.cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST(CudaFaults, AGpuThatMustBeResetDoesNoWorkUntilThen) {
  const LoadedCuda cuda;
  ready(cuda);
  cuda.change([](gantry_sim_state& state) {
    state.gpu[0].reset_required = 1;
    state.gpu[0].ecc_uncorrected_volatile = 1;
  });
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
  cuda.change([](gantry_sim_state& state) { state.gpu[0].ecc_uncorrected_volatile = 0; });
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED) << "as after a GSP timeout";
  CUcontext another = nullptr;
  EXPECT_EQ(cuda.cuCtxCreate_v2(&another, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  cuda.change([](gantry_sim_state& state) { state.gpu[0].reset_required = 0; });
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_SUCCESS);
}

TEST(CudaFaults, AnUnloadedDriverHasNoDevice) {
  const LoadedCuda cuda("h200", [](gantry_sim_image& image) { image.state.driver_unloaded = 1; });
  EXPECT_EQ(cuda.cuInit(0), CUDA_ERROR_NO_DEVICE);
  cuda.change([](gantry_sim_state& state) { state.driver_unloaded = 0; });
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS) << "and back";
}

}  // namespace
}  // namespace gantry::sim::cuda
