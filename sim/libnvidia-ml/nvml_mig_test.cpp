// SPDX-License-Identifier: Apache-2.0
#include "sim/libnvidia-ml/library_under_test.hpp"
#include "sim/libnvidia-ml/private.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace gantry::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

// Another process with a session, as an exporter has one.
class OtherClient {
 public:
  explicit OtherClient(const LoadedLibrary& library) {
    int ready[2] = {};
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      NVML(library, nvmlShutdown)();  // of the parent's session, which the child has a copy of
      const bool good = NVML(library, nvmlInit_v2)() == NVML_SUCCESS;
      (void)!::write(ready[1], good ? "y" : "n", 1);
      for (;;) ::pause();
    }
    char answer = '?';
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~OtherClient() { stop(); }
  OtherClient(const OtherClient&) = delete;
  OtherClient& operator=(const OtherClient&) = delete;

  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

// A GPU of a machine, with the calls that change its MIG instances.
class MigCard {
 public:
  explicit MigCard(const std::string& machine, const LoadedLibrary::Edit& edit = {})
      : library(machine, edit) {
    EXPECT_EQ(NVML(library, nvmlInit_v2)(), NVML_SUCCESS);
    EXPECT_EQ(NVML(library, nvmlDeviceGetHandleByIndex_v2)(0, &gpu), NVML_SUCCESS);
  }

  nvmlReturn_t set_mode(unsigned int wanted, nvmlReturn_t& activation) const {
    return NVML(library, nvmlDeviceSetMigMode)(gpu, wanted, &activation);
  }
  void enable() const {
    nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
    EXPECT_EQ(set_mode(1, activation), NVML_SUCCESS);
    EXPECT_EQ(activation, NVML_SUCCESS);
  }
  std::vector<unsigned int> mode() const {
    unsigned int current = 9;
    unsigned int pending = 9;
    EXPECT_EQ(NVML(library, nvmlDeviceGetMigMode)(gpu, &current, &pending), NVML_SUCCESS);
    return {current, pending};
  }
  nvmlReturn_t create(unsigned int profile, nvmlGpuInstance_t* out = nullptr) const {
    nvmlGpuInstance_t made = nullptr;
    const auto result = NVML(library, nvmlDeviceCreateGpuInstance)(gpu, profile, &made);
    if (out != nullptr) *out = made;
    return result;
  }
  nvmlReturn_t place_compute(nvmlGpuInstance_t instance, unsigned int profile, unsigned int start,
                             unsigned int size) const {
    const nvmlComputeInstancePlacement_t placement{start, size};
    nvmlComputeInstance_t made = nullptr;
    return NVML(library, nvmlGpuInstanceCreateComputeInstanceWithPlacement)(instance, profile,
                                                                            &placement, &made);
  }
  unsigned int left(unsigned int profile) const {
    unsigned int count = 99;
    EXPECT_EQ(NVML(library, nvmlDeviceGetGpuInstanceRemainingCapacity)(gpu, profile, &count),
              NVML_SUCCESS);
    return count;
  }
  unsigned int id_of(nvmlGpuInstance_t instance) const {
    nvmlGpuInstanceInfo_t info{};
    EXPECT_EQ(NVML(library, nvmlGpuInstanceGetInfo)(instance, &info), NVML_SUCCESS);
    return info.id;
  }
  void fault(const gantry_sim_fault& wanted) const {
    library.change([&](gantry_sim_state& state) {
      state.fault[0] = wanted;
      state.fault_count = 1;
    });
  }

  LoadedLibrary library;
  nvmlDevice_t gpu = nullptr;
};

gantry_sim_fault fault_of(const char* function, std::int32_t result, std::uint64_t call) {
  gantry_sim_fault fault{};
  std::strncpy(fault.function, function, sizeof fault.function - 1);
  fault.result = result;
  fault.call = call;
  return fault;
}

TEST(NvmlMigMode, StaysPendingOnAmpereWhileAnotherProcessHasTheGpuOpen) {
  const MigCard card("a30x2");
  OtherClient other(card.library);
  nvmlReturn_t activation = NVML_SUCCESS;
  EXPECT_EQ(card.set_mode(1, activation), NVML_SUCCESS);
  EXPECT_EQ(activation, NVML_ERROR_IN_USE);
  EXPECT_THAT(card.mode(), ElementsAre(0, 1));
  EXPECT_EQ(card.create(14), NVML_ERROR_NOT_SUPPORTED);
  other.stop();
  EXPECT_EQ(card.set_mode(1, activation), NVML_SUCCESS);
  EXPECT_EQ(activation, NVML_SUCCESS);
  EXPECT_THAT(card.mode(), ElementsAre(1, 1));
}

TEST(NvmlMigMode, PendingOnAmpereIsActivatedByAReset) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to reset a GPU";
  const MigCard card("a30x2");
  OtherClient other(card.library);
  nvmlReturn_t activation = NVML_SUCCESS;
  EXPECT_EQ(card.set_mode(1, activation), NVML_SUCCESS);
  EXPECT_EQ(NVML(card.library, gantrySimResetGpu)(card.gpu), NVML_ERROR_IN_USE);
  other.stop();
  EXPECT_EQ(NVML(card.library, gantrySimResetGpu)(card.gpu), NVML_SUCCESS);
  EXPECT_THAT(card.mode(), ElementsAre(1, 1));
  ASSERT_EQ(card.create(14), NVML_SUCCESS);
  EXPECT_EQ(NVML(card.library, gantrySimResetGpu)(card.gpu), NVML_SUCCESS);
  EXPECT_EQ(card.left(14), 4U) << "no instance survives a reset";
}

TEST(NvmlMigMode, InAGuestNeedsARebootOnAmpere) {
  const MigCard card("a30x2", [](gantry_sim_image& image) {
    std::strcpy(image.machine.gpu[0].virtualization, "Pass-Through");
  });
  nvmlReturn_t activation = NVML_SUCCESS;
  EXPECT_EQ(card.set_mode(1, activation), NVML_SUCCESS);
  EXPECT_EQ(activation, NVML_ERROR_RESET_REQUIRED);
  EXPECT_THAT(card.mode(), ElementsAre(0, 1));
  EXPECT_EQ(card.set_mode(0, activation), NVML_SUCCESS);  // taken back
  EXPECT_EQ(activation, NVML_SUCCESS);
  EXPECT_THAT(card.mode(), ElementsAre(0, 0));
}

TEST(NvmlMigMode, ChangesAtOnceOnHopperBesideOtherClients) {
  const MigCard card("h200");
  const OtherClient other(card.library);
  card.enable();
  EXPECT_THAT(card.mode(), ElementsAre(1, 1));
}

TEST(NvmlComputeInstances, BeginWhereTheyAreWanted) {
  const MigCard card("h200");
  card.enable();
  nvmlGpuInstance_t whole = nullptr;
  ASSERT_EQ(card.create(0, &whole), NVML_SUCCESS);
  nvmlComputeInstancePlacement_t places[8] = {};
  unsigned int count = 8;
  ASSERT_EQ(NVML(card.library, nvmlGpuInstanceGetComputeInstancePossiblePlacements)(
                whole, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE, places, &count),
            NVML_SUCCESS);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(places[1].start, 4U);
  EXPECT_EQ(places[1].size, 3U);
  const auto two = NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE;
  EXPECT_EQ(card.place_compute(whole, two, 4, 2), NVML_SUCCESS);
  EXPECT_EQ(card.place_compute(whole, two, 4, 2), NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(card.place_compute(whole, two, 3, 2), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(card.place_compute(whole, two, 0, 1), NVML_ERROR_INVALID_ARGUMENT);
  nvmlComputeInstance_t made = nullptr;
  ASSERT_EQ(NVML(card.library, nvmlGpuInstanceGetComputeInstanceById)(whole, 0, &made),
            NVML_SUCCESS);
  nvmlComputeInstanceInfo_t info{};
  ASSERT_EQ(NVML(card.library, nvmlComputeInstanceGetInfo_v2)(made, &info), NVML_SUCCESS);
  EXPECT_EQ(info.placement.start, 4U);
  EXPECT_EQ(info.placement.size, 2U);
}

TEST(NvmlGpuInstances, OfFourSlicesBeginAtTheFirstPlace) {
  const MigCard card("rtxpro6000x2");
  card.enable();
  nvmlGpuInstance_t half = nullptr;
  nvmlGpuInstance_t quarter = nullptr;
  ASSERT_EQ(card.create(5, &half), NVML_SUCCESS);
  ASSERT_EQ(card.create(14, &quarter), NVML_SUCCESS);
  EXPECT_EQ(card.id_of(half), 1U);
  EXPECT_EQ(card.id_of(quarter), 5U);
  nvmlGpuInstanceInfo_t info{};
  ASSERT_EQ(NVML(card.library, nvmlGpuInstanceGetInfo)(quarter, &info), NVML_SUCCESS);
  EXPECT_EQ(info.placement.start, 6U);
  EXPECT_EQ(info.placement.size, 3U);
}

TEST(NvmlGpuInstances, ShareTheMediaEnginesOfTheCard) {
  const MigCard card("rtxpro6000x2");
  card.enable();
  ASSERT_EQ(card.create(65), NVML_SUCCESS);  // 1g.24gb+me.all
  EXPECT_EQ(card.create(14), NVML_ERROR_INSUFFICIENT_RESOURCES) << "all engines are taken";
  EXPECT_EQ(card.create(67), NVML_SUCCESS) << "1g.24gb-me has none";
  EXPECT_EQ(card.left(21), 0U);
}

TEST(NvmlGpuInstances, WithAllMediaExtensionsExistOnce) {
  const MigCard card("b200x2");
  card.enable();
  ASSERT_EQ(card.create(20), NVML_SUCCESS);
  EXPECT_EQ(card.create(20), NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(card.left(19), 6U);
}

TEST(NvmlMigCalls, AreCountedAndRemembered) {
  const MigCard card("h200");
  card.enable();
  ASSERT_EQ(card.create(9), NVML_SUCCESS);
  ASSERT_EQ(card.create(0), NVML_ERROR_INSUFFICIENT_RESOURCES);
  card.library.change([](gantry_sim_state& state) {
    EXPECT_EQ(state.mig_calls[GANTRY_SIM_MIG_CREATE], 2U);
    EXPECT_EQ(state.mig_successes[GANTRY_SIM_MIG_CREATE], 1U);
    EXPECT_EQ(state.mig_successes[GANTRY_SIM_MIG_SET_MODE], 1U);
    EXPECT_EQ(state.mig_call_sequence, 3U);
    EXPECT_EQ(state.mig_call[3].result, NVML_ERROR_INSUFFICIENT_RESOURCES);
    EXPECT_EQ(state.mig_call[2].gi_id, 2);
    EXPECT_EQ(state.mig_call[2].value, 9);
  });
}

TEST(NvmlMigFault, HitsOneCallOverAllProcesses) {
  const MigCard card("h200");
  card.enable();                                      // call 1
  card.fault(fault_of("mig", NVML_ERROR_IN_USE, 3));  // the second call from now
  const pid_t child = ::fork();
  if (child == 0) ::_exit(card.create(19) == NVML_SUCCESS ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(card.create(19), NVML_ERROR_IN_USE);
  EXPECT_EQ(card.create(19), NVML_SUCCESS);
}

TEST(NvmlMigFault, OfOneFunctionCountsItsOwnCalls) {
  const MigCard card("h200");
  card.enable();
  nvmlGpuInstance_t first = nullptr;
  ASSERT_EQ(card.create(19, &first), NVML_SUCCESS);
  card.fault(fault_of("nvmlGpuInstanceDestroy", NVML_ERROR_UNKNOWN, 1));
  EXPECT_EQ(card.create(19), NVML_SUCCESS);
  EXPECT_EQ(NVML(card.library, nvmlGpuInstanceDestroy)(first), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(NVML(card.library, nvmlGpuInstanceDestroy)(first), NVML_SUCCESS);
}

TEST(NvmlMigFault, DestroysTheInstancesInTheMiddle) {
  const MigCard card("h200");
  card.enable();
  nvmlGpuInstance_t instance = nullptr;
  ASSERT_EQ(card.create(19, &instance), NVML_SUCCESS);
  auto fault = fault_of("mig", 0, 3);
  fault.action = GANTRY_SIM_FAULT_DESTROY;
  card.fault(fault);
  nvmlComputeInstance_t compute = nullptr;
  EXPECT_EQ(NVML(card.library, nvmlGpuInstanceCreateComputeInstance)(instance, 0, &compute),
            NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(card.left(19), 7U);
}

TEST(NvmlMigFault, LosesTheGpuInTheMiddle) {
  const MigCard card("h200");
  card.enable();
  auto fault = fault_of("nvmlDeviceCreateGpuInstance", 0, 2);
  fault.action = GANTRY_SIM_FAULT_LOSE;
  card.fault(fault);
  EXPECT_EQ(card.create(19), NVML_SUCCESS);
  EXPECT_EQ(card.create(19), NVML_ERROR_GPU_IS_LOST);
}

TEST(NvmlMigFault, HangsUntilItIsCleared) {
  const MigCard card("h200");
  card.enable();
  auto fault = fault_of("nvmlDeviceCreateGpuInstance", 0, 1);
  fault.delay_ms = GANTRY_SIM_HANG;
  card.fault(fault);
  std::jthread clearing([&] {
    std::this_thread::sleep_for(100ms);
    card.library.change([](gantry_sim_state& state) { state.fault_count = 0; });
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(card.create(19), NVML_SUCCESS);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 90ms);
}

}  // namespace
}  // namespace gantry::sim
