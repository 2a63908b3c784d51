// SPDX-License-Identifier: Apache-2.0
#include "sim/libnvidia-ml/library_under_test.hpp"
#include "sim/machine/exports.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace gantry::sim {
namespace {

nvmlReturn_t start(const LoadedLibrary& library) {
  return NVML(library, nvmlInit_v2)();
}

unsigned int count(const LoadedLibrary& library) {
  unsigned int gpus = 99;
  EXPECT_EQ(NVML(library, nvmlDeviceGetCount_v2)(&gpus), NVML_SUCCESS);
  return gpus;
}

TEST(NvmlStart, NeedsInitBeforeAnythingElse) {
  const LoadedLibrary library;
  unsigned int gpus = 0;
  EXPECT_EQ(NVML(library, nvmlDeviceGetCount_v2)(&gpus), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(NVML(library, nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
}

TEST(NvmlStart, CountsItsUsers) {
  const LoadedLibrary library;
  ASSERT_EQ(start(library), NVML_SUCCESS);
  ASSERT_EQ(start(library), NVML_SUCCESS);
  EXPECT_EQ(NVML(library, nvmlShutdown)(), NVML_SUCCESS);
  EXPECT_EQ(count(library), 8U);
  EXPECT_EQ(NVML(library, nvmlShutdown)(), NVML_SUCCESS);
  unsigned int gpus = 0;
  EXPECT_EQ(NVML(library, nvmlDeviceGetCount_v2)(&gpus), NVML_ERROR_UNINITIALIZED);
}

TEST(NvmlStart, WithoutAMachineThereIsNoDriver) {
  const LoadedLibrary library("h200x8", {},
                              [](std::string& bytes) { bytes.resize(bytes.size() - 16); });
  EXPECT_EQ(start(library), NVML_ERROR_DRIVER_NOT_LOADED);
}

TEST(NvmlStart, DamagedImagesAreRefused) {
  const LoadedLibrary::Edit edits[] = {
      [](gantry_sim_image& image) { image.magic[0] = 'x'; },
      [](gantry_sim_image& image) { image.abi = 99; },
      [](gantry_sim_image& image) { image.size -= 8; },
      [](gantry_sim_image& image) { image.machine.gpu_count = 4000000000U; },
      [](gantry_sim_image& image) { image.machine.field_count = GANTRY_SIM_MAX_FIELDS + 1; },
      [](gantry_sim_image& image) { image.machine.gpu[0].nvlink_count = 77; },
      [](gantry_sim_image& image) { image.machine.gpu[0].mig_profile_count = 77; },
      [](gantry_sim_image& image) {
        std::memset(image.machine.gpu[1].name, 'x', sizeof image.machine.gpu[1].name);
      },
  };
  for (const auto& edit : edits) {
    const LoadedLibrary library("h200x8", edit);
    EXPECT_EQ(start(library), NVML_ERROR_DRIVER_NOT_LOADED);
  }
}

TEST(NvmlStart, AFooterThatPointsOutsideTheFileIsRefused) {
  for (const std::uint64_t offset :
       {std::uint64_t{4096} << 40, std::uint64_t{17}, ~std::uint64_t{4095}}) {
    const LoadedLibrary library("h200x8", {}, [&](std::string& bytes) {
      std::memcpy(bytes.data() + bytes.size() - 16, &offset, 8);
    });
    EXPECT_EQ(start(library), NVML_ERROR_DRIVER_NOT_LOADED);
  }
}

TEST(NvmlStart, AnotherKernelModuleIsAVersionMismatch) {
  const LoadedLibrary library("h200x8", [](gantry_sim_image& image) {
    std::strcpy(image.machine.kernel_version, "575.57.08");
  });
  EXPECT_EQ(start(library), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
  EXPECT_STREQ(NVML(library, nvmlErrorString)(NVML_ERROR_LIB_RM_VERSION_MISMATCH),
               "Driver/library version mismatch");
}

TEST(NvmlStart, UnloadedDriverIsNotLoaded) {
  const LoadedLibrary absent(
      "h200x8", [](gantry_sim_image& image) { image.machine.kernel_version[0] = '\0'; });
  EXPECT_EQ(start(absent), NVML_ERROR_DRIVER_NOT_LOADED);
  const LoadedLibrary library;
  library.change([](gantry_sim_state& state) { state.driver_unloaded = 1; });
  EXPECT_EQ(start(library), NVML_ERROR_DRIVER_NOT_LOADED);
  library.change([](gantry_sim_state& state) { state.driver_unloaded = 0; });
  EXPECT_EQ(start(library), NVML_SUCCESS);
}

TEST(NvmlStart, APackagedLibraryAsksTheKernel) {
  LoadedLibrary library("t4x4", [](gantry_sim_image& image) {
    auto& field = image.machine.field[image.machine.field_count++];
    field.gpu = -1;
    std::strcpy(field.name, GANTRY_SIM_PACKAGED);
  });
  EXPECT_EQ(start(library), NVML_ERROR_DRIVER_NOT_LOADED);
  const auto load = [&](const std::string& version) {
    library.tree.file("proc/driver/nvidia/version",
                      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + version + "  x\n");
  };
  library.tree.file("proc/driver/nvidia/gpus/0000:07:00.0/information",
                    "Model: \t\t Tesla T4\nGPU UUID: \t GPU-its-own\nDevice Minor: \t 2\n");
  load("460.56");
  EXPECT_EQ(start(library), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
  load("550.90.07");
  ASSERT_EQ(start(library), NVML_SUCCESS);
  ASSERT_EQ(count(library), 1U);
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(library, nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  char uuid[96] = {};
  EXPECT_EQ(NVML(library, nvmlDeviceGetUUID)(device, uuid, sizeof uuid), NVML_SUCCESS);
  EXPECT_STREQ(uuid, "GPU-its-own");
  EXPECT_EQ(NVML(library, nvmlDeviceSetPersistenceMode)(device, NVML_FEATURE_ENABLED),
            NVML_ERROR_NOT_SUPPORTED);
}

TEST(NvmlStart, GpusWithoutANodeAreNotThere) {
  LoadedLibrary library;
  library.tree.file("dev.table",
                    "/dev/nvidiactl c 195 255 0666 0 0\n"
                    "/dev/nvidia3 c 195 3 0666 0 0\n"
                    "/dev/nvidia5 c 195 7 0666 0 0\n");
  ASSERT_EQ(start(library), NVML_SUCCESS);
  ASSERT_EQ(count(library), 1U);
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(library, nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  unsigned int minor = 0;
  EXPECT_EQ(NVML(library, nvmlDeviceGetMinorNumber)(device, &minor), NVML_SUCCESS);
  EXPECT_EQ(minor, 3U);
}

TEST(NvmlStart, NoControlNodeMeansNoDriver) {
  LoadedLibrary library;
  library.tree.file("dev.table", "/dev/nvidia3 c 195 3 0666 0 0\n");
  EXPECT_EQ(start(library), NVML_ERROR_DRIVER_NOT_LOADED);
}

TEST(NvmlStart, NodesOfAnotherGroupAreAPermissionProblem) {
  LoadedLibrary library;
  library.tree.file("dev.table",
                    "/dev/nvidiactl c 195 255 0660 0 44\n"
                    "/dev/nvidia3 c 195 3 0660 0 44\n");
  // In a child that drops the capability to override permissions.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool dropped = ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
    ::_exit(dropped ? static_cast<int>(start(library)) : 77);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), NVML_ERROR_NO_PERMISSION);
}

TEST(NvmlStart, FunctionsNewerThanTheDriverAreNotFound) {
  const LoadedLibrary library("h200x8", [](gantry_sim_image& image) {
    std::strcpy(image.machine.driver_version, "450.66");
    std::strcpy(image.machine.kernel_version, "450.66");
  });
  ASSERT_EQ(start(library), NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(library, nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  nvmlMemory_t memory{};
  EXPECT_EQ(NVML(library, nvmlDeviceGetMemoryInfo)(device, &memory), NVML_SUCCESS);
  nvmlMemory_v2_t second{};
  second.version = nvmlMemory_v2;
  EXPECT_EQ(NVML(library, nvmlDeviceGetMemoryInfo_v2)(device, &second),
            NVML_ERROR_FUNCTION_NOT_FOUND);
  EXPECT_EQ(library.symbol("nvmlDeviceGetNothingOfTheKind"), nullptr);
}

TEST(NvmlStart, TreesOfOldDriversDoNotEvenExportThem) {
  const LoadedLibrary library("h200x8", {}, [](std::string& bytes) {
    const auto hidden = hide_newer_nvml_functions(bytes, 384);
    ASSERT_TRUE(hidden.ok());
    EXPECT_GT(*hidden, 100U);
  });
  EXPECT_EQ(library.symbol("nvmlDeviceGetComputeRunningProcesses_v3"), nullptr);
  EXPECT_EQ(library.symbol("nvmlDeviceGetMigMode"), nullptr);
  EXPECT_NE(library.symbol("nvmlDeviceGetComputeRunningProcesses"), nullptr);
  EXPECT_EQ(start(library), NVML_SUCCESS);
}

TEST(NvmlStart, InjectedFaultsAnswerInsteadAndChangeTheirMind) {
  const LoadedLibrary library;
  ASSERT_EQ(start(library), NVML_SUCCESS);
  library.change([](gantry_sim_state& state) {
    state.fault_count = 1;
    std::strcpy(state.fault[0].function, "nvmlDeviceGetCount_v2");
    state.fault[0].result = NVML_ERROR_UNKNOWN;
    state.fault[0].every = 2;
  });
  unsigned int gpus = 0;
  auto* const get = NVML(library, nvmlDeviceGetCount_v2);
  const nvmlReturn_t answers[] = {get(&gpus), get(&gpus), get(&gpus), get(&gpus)};
  EXPECT_THAT(answers, testing::ElementsAre(NVML_SUCCESS, NVML_ERROR_UNKNOWN, NVML_SUCCESS,
                                            NVML_ERROR_UNKNOWN));
}

}  // namespace
}  // namespace gantry::sim
