// SPDX-License-Identifier: Apache-2.0
#include "sim/libnvidia-ml/library_under_test.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace gantry::sim {
namespace {

using namespace std::chrono_literals;
using testing::StartsWith;

class NvmlDevice : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(NVML(library, nvmlInit_v2)(), NVML_SUCCESS); }

  nvmlDevice_t device(unsigned int index) const {
    nvmlDevice_t handle = nullptr;
    EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByIndex_v2)(index, &handle), NVML_SUCCESS);
    return handle;
  }
  std::string name(nvmlDevice_t handle) const {
    char text[96] = "";
    EXPECT_EQ(NVML(library, nvmlDeviceGetName)(handle, text, sizeof text), NVML_SUCCESS);
    return text;
  }
  void enable_mig(nvmlDevice_t handle) const {
    nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
    ASSERT_EQ(NVML(library, nvmlDeviceSetMigMode)(handle, 1, &activation), NVML_SUCCESS);
    ASSERT_EQ(activation, NVML_SUCCESS);
  }
  // A GPU instance of this profile with one compute instance of `slices`.
  nvmlGpuInstance_t make_instance(nvmlDevice_t handle, unsigned int profile_id,
                                  unsigned int compute) const {
    nvmlGpuInstance_t instance = nullptr;
    nvmlComputeInstance_t part = nullptr;
    EXPECT_EQ(NVML(library, nvmlDeviceCreateGpuInstance)(handle, profile_id, &instance),
              NVML_SUCCESS);
    EXPECT_EQ(NVML(library, nvmlGpuInstanceCreateComputeInstance)(instance, compute, &part),
              NVML_SUCCESS);
    return instance;
  }

  LoadedLibrary library;
};

TEST_F(NvmlDevice, IsFoundByEveryName) {
  nvmlDevice_t found = nullptr;
  char uuid[96];
  nvmlPciInfo_t pci{};
  ASSERT_EQ(NVML(library, nvmlDeviceGetUUID)(device(2), uuid, sizeof uuid), NVML_SUCCESS);
  ASSERT_EQ(NVML(library, nvmlDeviceGetPciInfo_v3)(device(2), &pci), NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByUUID)(uuid, &found), NVML_SUCCESS);
  EXPECT_EQ(found, device(2));
  for (const char* text :
       {static_cast<const char*>(pci.busId), static_cast<const char*>(pci.busIdLegacy)}) {
    found = nullptr;
    EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByPciBusId_v2)(text, &found), NVML_SUCCESS);
    EXPECT_EQ(found, device(2));
  }
  EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByUUID)("GPU-none", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByIndex_v2)(8, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByPciBusId_v2)("rubbish", &found),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlDevice, InventedHandlesAreInvalidArguments) {
  char text[8];
  for (const std::uintptr_t value :
       {std::uintptr_t{0}, std::uintptr_t{0x1234}, ~std::uintptr_t{0}}) {
    const auto invented = std::bit_cast<nvmlDevice_t>(value);
    EXPECT_EQ(NVML(library, nvmlDeviceGetName)(invented, text, 8), NVML_ERROR_INVALID_ARGUMENT);
  }
}

TEST_F(NvmlDevice, BuffersThatAreTooSmallAreNotWritten) {
  char text[4] = "abc";
  EXPECT_EQ(NVML(library, nvmlDeviceGetName)(device(0), text, sizeof text),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_STREQ(text, "abc");
}

TEST_F(NvmlDevice, MemoryOfTheDriverIsUsedInTheFirstFormAndReservedInTheSecond) {
  nvmlMemory_t first{};
  nvmlMemory_v2_t second{};
  second.version = nvmlMemory_v2;
  ASSERT_EQ(NVML(library, nvmlDeviceGetMemoryInfo)(device(0), &first), NVML_SUCCESS);
  ASSERT_EQ(NVML(library, nvmlDeviceGetMemoryInfo_v2)(device(0), &second), NVML_SUCCESS);
  EXPECT_EQ(first.used, second.reserved);
  EXPECT_EQ(second.used, 0U);
  EXPECT_EQ(first.free, second.free);
  second.version = 7;
  EXPECT_EQ(NVML(library, nvmlDeviceGetMemoryInfo_v2)(device(0), &second),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

TEST_F(NvmlDevice, ALostGpuKeepsItsNameAndNothingElse) {
  const auto handle = device(1);
  library.change([](gantry_sim_state& state) { state.gpu[1].lost = 1; });
  unsigned int celsius = 0;
  EXPECT_EQ(NVML(library, nvmlDeviceGetTemperature)(handle, NVML_TEMPERATURE_GPU, &celsius),
            NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(name(handle), "NVIDIA H200");
  EXPECT_EQ(NVML(library, nvmlDeviceGetTemperature)(device(0), NVML_TEMPERATURE_GPU, &celsius),
            NVML_SUCCESS);
  // A program that starts now cannot open it.
  ASSERT_EQ(NVML(library, nvmlShutdown)(), NVML_SUCCESS);
  ASSERT_EQ(NVML(library, nvmlInit_v2)(), NVML_SUCCESS);
  nvmlDevice_t again = nullptr;
  EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByIndex_v2)(1, &again), NVML_ERROR_GPU_IS_LOST);
}

TEST_F(NvmlDevice, LinksOfASwitchedMachineGoToSwitches) {
  nvmlEnableState_t active = NVML_FEATURE_DISABLED;
  nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
  EXPECT_EQ(NVML(library, nvmlDeviceGetNvLinkState)(device(0), 17, &active), NVML_SUCCESS);
  EXPECT_EQ(active, NVML_FEATURE_ENABLED);
  EXPECT_EQ(NVML(library, nvmlDeviceGetNvLinkState)(device(0), 18, &active),
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(library, nvmlDeviceGetNvLinkRemoteDeviceType)(device(0), 0, &type), NVML_SUCCESS);
  EXPECT_EQ(type, NVML_NVLINK_DEVICE_TYPE_SWITCH);
  nvmlGpuFabricInfoV_t fabric{};
  fabric.version = nvmlGpuFabricInfo_v3;
  EXPECT_EQ(NVML(library, nvmlDeviceGetGpuFabricInfoV)(device(0), &fabric), NVML_SUCCESS);
  EXPECT_EQ(fabric.state, NVML_GPU_FABRIC_STATE_COMPLETED);
}

TEST_F(NvmlDevice, MigInstancesAreMadeFoundAndDestroyed) {
  const auto gpu = device(0);
  enable_mig(gpu);
  const auto instance = make_instance(gpu, 9, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE);
  make_instance(gpu, 19, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);

  nvmlDevice_t mig = nullptr;
  ASSERT_EQ(NVML(library, nvmlDeviceGetMigDeviceHandleByIndex)(gpu, 0, &mig), NVML_SUCCESS);
  EXPECT_EQ(name(mig), "NVIDIA H200 MIG 3g.71gb");
  char uuid[96];
  nvmlDevice_t same = nullptr;
  ASSERT_EQ(NVML(library, nvmlDeviceGetUUID)(mig, uuid, sizeof uuid), NVML_SUCCESS);
  EXPECT_THAT(uuid, StartsWith("MIG-"));
  EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByUUID)(uuid, &same), NVML_SUCCESS);
  EXPECT_EQ(same, mig);
  nvmlDeviceAttributes_t attributes{};
  ASSERT_EQ(NVML(library, nvmlDeviceGetAttributes_v2)(mig, &attributes), NVML_SUCCESS);
  EXPECT_EQ(attributes.multiprocessorCount, 60U);
  EXPECT_EQ(attributes.memorySizeMB, 71424U);
  nvmlDevice_t parent = nullptr;
  EXPECT_EQ(NVML(library, nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(mig, &parent),
            NVML_SUCCESS);
  EXPECT_EQ(parent, gpu);

  EXPECT_EQ(NVML(library, nvmlGpuInstanceDestroy)(instance), NVML_ERROR_IN_USE);
  nvmlComputeInstance_t compute = nullptr;
  ASSERT_EQ(NVML(library, nvmlGpuInstanceGetComputeInstanceById)(instance, 0, &compute),
            NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlComputeInstanceDestroy)(compute), NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlGpuInstanceDestroy)(instance), NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlDeviceGetName)(mig, uuid, sizeof uuid), NVML_ERROR_NOT_FOUND);
  ASSERT_EQ(NVML(library, nvmlDeviceGetMigDeviceHandleByIndex)(gpu, 0, &mig), NVML_SUCCESS);
  EXPECT_EQ(name(mig), "NVIDIA H200 MIG 1g.18gb");
}

TEST_F(NvmlDevice, AMigDeviceHasItsIndexItsModeAndItsPartOfBar1) {
  const auto gpu = device(0);
  enable_mig(gpu);
  make_instance(gpu, 9, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE);
  make_instance(gpu, 19, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
  nvmlBAR1Memory_t whole{};
  ASSERT_EQ(NVML(library, nvmlDeviceGetBAR1MemoryInfo)(gpu, &whole), NVML_SUCCESS);
  const unsigned long long mib = 1ULL << 20U;
  const unsigned long long parts[] = {whole.bar1Total / 2 - mib, whole.bar1Total / 8 - mib};
  for (unsigned int i = 0; i < 2; ++i) {
    nvmlDevice_t mig = nullptr;
    ASSERT_EQ(NVML(library, nvmlDeviceGetMigDeviceHandleByIndex)(gpu, i, &mig), NVML_SUCCESS);
    unsigned int index = 99;
    EXPECT_EQ(NVML(library, nvmlDeviceGetIndex)(mig, &index), NVML_SUCCESS);
    EXPECT_EQ(index, i);
    nvmlComputeMode_t mode = NVML_COMPUTEMODE_COUNT;
    EXPECT_EQ(NVML(library, nvmlDeviceGetComputeMode)(mig, &mode), NVML_SUCCESS);
    EXPECT_EQ(mode, NVML_COMPUTEMODE_DEFAULT);
    nvmlBAR1Memory_t part{};
    EXPECT_EQ(NVML(library, nvmlDeviceGetBAR1MemoryInfo)(mig, &part), NVML_SUCCESS);
    EXPECT_EQ(part.bar1Total, parts[i]);
  }
}

TEST_F(NvmlDevice, RootChangesItsSettingsAndOthersMayNot) {
  const auto gpu = device(0);
  const auto set = NVML(library, nvmlDeviceSetComputeMode);
  if (::geteuid() != 0) {
    EXPECT_EQ(set(gpu, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS), NVML_ERROR_NO_PERMISSION);
    return;
  }
  EXPECT_EQ(set(gpu, NVML_COMPUTEMODE_EXCLUSIVE_THREAD), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(set(gpu, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS), NVML_SUCCESS);
  nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
  EXPECT_EQ(NVML(library, nvmlDeviceGetComputeMode)(gpu, &mode), NVML_SUCCESS);
  EXPECT_EQ(mode, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
  EXPECT_EQ(NVML(library, nvmlDeviceSetPowerManagementLimit)(gpu, 500'000), NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlDeviceSetPowerManagementLimit)(gpu, 900'000),
            NVML_ERROR_INVALID_ARGUMENT);
  unsigned int limit = 0;
  unsigned int usual = 0;
  EXPECT_EQ(NVML(library, nvmlDeviceGetEnforcedPowerLimit)(gpu, &limit), NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlDeviceGetPowerManagementDefaultLimit)(gpu, &usual), NVML_SUCCESS);
  EXPECT_EQ(limit, 500'000U);
  EXPECT_EQ(usual, 700'000U);
}

TEST_F(NvmlDevice, AContainerSeesOnlyTheMigDevicesItWasGiven) {
  const auto gpu = device(0);
  enable_mig(gpu);
  for (int i = 0; i < 3; ++i) make_instance(gpu, 19, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
  nvmlDevice_t mig = nullptr;
  ASSERT_EQ(NVML(library, nvmlDeviceGetMigDeviceHandleByIndex)(gpu, 2, &mig), NVML_SUCCESS);
  unsigned int gi = 0;
  ASSERT_EQ(NVML(library, nvmlDeviceGetGpuInstanceId)(mig, &gi), NVML_SUCCESS);
  const unsigned int node = 3 + gi * 9;
  library.tree.file("dev.table", library.nodes({node, node + 1}));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(77);
    nvmlDevice_t first = nullptr;
    nvmlDevice_t second = nullptr;
    auto* const get = NVML(library, nvmlDeviceGetMigDeviceHandleByIndex);
    const bool one = get(gpu, 0, &first) == NVML_SUCCESS && first == mig;
    ::_exit(one && get(gpu, 1, &second) == NVML_ERROR_NOT_FOUND ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(NvmlDevice, MigProfilesFillUpAndThenNoMoreFit) {
  const auto gpu = device(0);
  enable_mig(gpu);
  unsigned int left = 0;
  ASSERT_EQ(NVML(library, nvmlDeviceGetGpuInstanceRemainingCapacity)(gpu, 19, &left), NVML_SUCCESS);
  EXPECT_EQ(left, 7U);
  for (unsigned int i = 0; i < 7; ++i)
    make_instance(gpu, 19, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
  nvmlGpuInstance_t instance = nullptr;
  EXPECT_EQ(NVML(library, nvmlDeviceCreateGpuInstance)(gpu, 19, &instance),
            NVML_ERROR_INSUFFICIENT_RESOURCES);
  ASSERT_EQ(NVML(library, nvmlDeviceGetGpuInstanceRemainingCapacity)(gpu, 0, &left), NVML_SUCCESS);
  EXPECT_EQ(left, 0U);
}

TEST_F(NvmlDevice, WithoutWriteAccessMigCannotBeChanged) {
  ASSERT_EQ(::chmod(library.file.c_str(), 0444), 0);
  const auto gpu = device(0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(77);
    nvmlReturn_t activation = NVML_SUCCESS;
    ::_exit(static_cast<int>(NVML(library, nvmlDeviceSetMigMode)(gpu, 1, &activation)));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), NVML_ERROR_NO_PERMISSION);
}

TEST_F(NvmlDevice, AnotherProcessSeesMigChangesAtOnce) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    enable_mig(device(4));
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  unsigned int current = 0;
  unsigned int pending = 0;
  ASSERT_EQ(NVML(library, nvmlDeviceGetMigMode)(device(4), &current, &pending), NVML_SUCCESS);
  EXPECT_EQ(current, 1U);
}

TEST_F(NvmlDevice, EventsWakeTheirWaiter) {
  nvmlEventSet_t set = nullptr;
  ASSERT_EQ(NVML(library, nvmlEventSetCreate)(&set), NVML_SUCCESS);
  ASSERT_EQ(NVML(library, nvmlDeviceRegisterEvents)(device(3), nvmlEventTypeXidCriticalError, set),
            NVML_SUCCESS);
  std::thread injector([this] {
    std::this_thread::sleep_for(30ms);
    library.event(2, 0, 31);  // not registered
    library.event(3, 1, 0);   // another type
    library.event(3, 0, 79);
  });
  nvmlEventData_t data{};
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(NVML(library, nvmlEventSetWait_v2)(set, &data, 5000), NVML_SUCCESS);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 3s);
  injector.join();
  EXPECT_EQ(data.device, device(3));
  EXPECT_EQ(data.eventData, 79U);
  EXPECT_EQ(data.gpuInstanceId, 0xFFFFFFFFU);
  EXPECT_EQ(NVML(library, nvmlEventSetWait_v2)(set, &data, 10), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(NVML(library, nvmlEventSetFree)(set), NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlEventSetWait_v2)(set, &data, 10), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlDevice, MoreEventsThanTheRingHoldsDoNotConfuseAWaiter) {
  nvmlEventSet_t set = nullptr;
  ASSERT_EQ(NVML(library, nvmlEventSetCreate)(&set), NVML_SUCCESS);
  ASSERT_EQ(NVML(library, nvmlDeviceRegisterEvents)(device(0), nvmlEventTypeXidCriticalError, set),
            NVML_SUCCESS);
  library.change([](gantry_sim_state& state) {
    for (int i = 0; i < 200; ++i) {
      const auto next = ++state.event_sequence;
      state.event[next % GANTRY_SIM_MAX_EVENTS] = {next, 0, 0, next, -1, -1};
    }
  });
  nvmlEventData_t data{};
  int seen = 0;
  while (NVML(library, nvmlEventSetWait_v2)(set, &data, 0) == NVML_SUCCESS) ++seen;
  EXPECT_EQ(seen, GANTRY_SIM_MAX_EVENTS);
}

TEST_F(NvmlDevice, FieldValuesEachHaveTheirOwnResult) {
  nvmlFieldValue_t values[3] = {};
  values[0].fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT;
  values[1].fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  values[2].fieldId = 100000;
  library.change([](gantry_sim_state& state) {
    state.gpu[0].recovery_action = NVML_GPU_RECOVERY_ACTION_GPU_RESET;
  });
  ASSERT_EQ(NVML(library, nvmlDeviceGetFieldValues)(device(0), 3, values), NVML_SUCCESS);
  EXPECT_EQ(values[0].value.uiVal, 18U);
  EXPECT_EQ(values[1].value.uiVal, 1U);
  EXPECT_EQ(values[2].nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlDevice, ReadersNeverSeeHalfAChange) {
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::vector<std::thread> readers;
  readers.reserve(4);
  const auto gpu = device(0);
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        nvmlUtilization_t load{};
        NVML(library, nvmlDeviceGetUtilizationRates)(gpu, &load);
        if (load.gpu != load.memory) ++torn;
        char text[96];
        NVML(library, nvmlDeviceGetName)(gpu, text, sizeof text);
      }
    });
  }
  for (unsigned int i = 1; i < 60; ++i) {
    library.change([&](gantry_sim_state& state) {
      state.gpu[0].utilization_gpu = state.gpu[0].utilization_memory = i;
    });
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
}

TEST_F(NvmlDevice, HostileStateIsClamped) {
  library.change([](gantry_sim_state& state) {
    state.fault_count = 0;
    state.gpu[0].mig_current = 1;
    state.gpu[0].mig_count = 0xFFFFFFFF;
    auto& instance = state.gpu[0].mig[0];
    instance.used = 1;
    instance.gi_id = 4000000;
    instance.profile = 4000000;
    instance.ci_count = 4000000;
    std::memset(instance.ci[0].uuid, 'x', sizeof instance.ci[0].uuid);
    state.event_sequence = ~0ULL;
  });
  nvmlDevice_t mig = nullptr;
  for (unsigned int i = 0; i < 8; ++i) {
    EXPECT_EQ(NVML(library, nvmlDeviceGetMigDeviceHandleByIndex)(device(0), i, &mig),
              NVML_ERROR_NOT_FOUND);
  }
  nvmlGpuInstance_t instance = nullptr;
  EXPECT_EQ(NVML(library, nvmlDeviceGetGpuInstanceById)(device(0), 4000000, &instance),
            NVML_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace gantry::sim
