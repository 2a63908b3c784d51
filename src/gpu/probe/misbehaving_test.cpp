// SPDX-License-Identifier: Apache-2.0
// NVML that hangs, fails, lies or loses a GPU, as a real library in a real child process.
#include "base/sys/unique_fd.hpp"
#include "gpu/abi/nvml_types.h"
#include "gpu/model/inventory_json.hpp"
#include "gpu/probe/snapshot.hpp"
#include "sim/driver/image.h"
#include "sim/machine/tree.hpp"
#include "support/machine.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

namespace gantry::probe {
namespace {

using namespace std::chrono_literals;
using model::HealthState;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The changing part of the machine, inside the simulated library's file.
class State {
 public:
  explicit State(const test::Machine& machine) {
    const auto marker = sim::read_marker(machine.root());
    fd_ = sys::UniqueFd(::open(machine.path(marker->nvml_library).c_str(), O_RDWR | O_CLOEXEC));
    const auto end = ::lseek(fd_.get(), 0, SEEK_END);
    gantry_sim_footer footer{};
    GANTRY_ASSERT(::pread(fd_.get(), &footer, sizeof footer,
                          end - static_cast<off_t>(sizeof footer)) == sizeof footer);
    offset_ = static_cast<off_t>(footer.image_offset + offsetof(gantry_sim_image, state));
    GANTRY_ASSERT(::pread(fd_.get(), &value, sizeof value, offset_) == sizeof value);
  }
  void save() { GANTRY_ASSERT(::pwrite(fd_.get(), &value, sizeof value, offset_) == sizeof value); }
  gantry_sim_state value{};

 private:
  sys::UniqueFd fd_;
  off_t offset_ = 0;
};

void add_fault(const test::Machine& machine, const char* function, int result,
               std::uint32_t delay_ms, std::uint32_t every) {
  State state(machine);
  auto& fault = state.value.fault[state.value.fault_count++];
  std::snprintf(fault.function, sizeof fault.function, "%s", function);
  fault.result = result;
  fault.delay_ms = delay_ms;
  fault.every = every;
  state.save();
}

class Misbehaving : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  }
  test::Machine machine_{"h200x8"};
};

TEST_F(Misbehaving, AnswersWhenNothingIsWrong) {
  const auto inventory = snapshot(machine_.host());
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(inventory->driver.nvml_error, "");
  EXPECT_THAT(inventory->gpus, SizeIs(8));
}

TEST_F(Misbehaving, HangingCostsTheDeadlineAndNvmlsFactsOnly) {
  add_fault(machine_, "nvmlDeviceGetMemoryInfo_v2", 0, 30'000, 0);
  const auto start = std::chrono::steady_clock::now();
  const auto inventory = snapshot(machine_.host(), {.deadline = 300ms});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  ASSERT_TRUE(inventory.ok());
  EXPECT_THAT(inventory->driver.nvml_error, HasSubstr("did not answer within 300 ms"));
  ASSERT_THAT(inventory->gpus, SizeIs(8));
  EXPECT_EQ(inventory->gpus[0].health.state, HealthState::Unknown);
  EXPECT_NE(inventory->gpus[0].uuid.text, "");
}

TEST_F(Misbehaving, HangingAtTheStartIsTheSame) {
  add_fault(machine_, "nvmlInit_v2", 0, 30'000, 0);
  const auto taken = take_snapshot(machine_.host(), {.deadline = 300ms});
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->nvml_failure, NVML_ERROR_TIMEOUT);
  EXPECT_THAT(taken->inventory.driver.nvml_error, HasSubstr("did not answer"));
  EXPECT_THAT(taken->inventory.gpus, SizeIs(8));
}

TEST_F(Misbehaving, FailingToStartIsSaid) {
  add_fault(machine_, "nvmlInit_v2", NVML_ERROR_UNKNOWN, 0, 0);
  const auto inventory = snapshot(machine_.host());
  EXPECT_THAT(inventory->driver.nvml_error, HasSubstr("NVML_ERROR_UNKNOWN"));
  EXPECT_THAT(inventory->gpus, SizeIs(8));
}

TEST_F(Misbehaving, AnErrorDegradesTheGpusAndNamesTheCall) {
  add_fault(machine_, "nvmlDeviceGetTemperature", NVML_ERROR_UNKNOWN, 0, 0);
  const auto inventory = snapshot(machine_.host());
  EXPECT_EQ(inventory->driver.nvml_error, "");
  for (const auto& gpu : inventory->gpus) {
    EXPECT_EQ(gpu.health.state, HealthState::Degraded);
    EXPECT_THAT(gpu.health.reasons, Contains(HasSubstr("nvmlDeviceGetTemperature")));
  }
}

TEST_F(Misbehaving, AHandleRefusedInTheMiddleIsALostGpu) {
  add_fault(machine_, "nvmlDeviceGetHandleByIndex_v2", NVML_ERROR_GPU_IS_LOST, 0, 6);  // GPU 5
  const auto inventory = snapshot(machine_.host());
  ASSERT_THAT(inventory->gpus, SizeIs(8));
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(inventory->gpus[i].health.state, i == 5 ? HealthState::Lost : HealthState::Ok) << i;
    EXPECT_EQ(inventory->gpus[i].pci,
              snapshot(machine_.host(), {.nvml = NvmlUse::Skip})->gpus[i].pci);
  }
}

TEST_F(Misbehaving, AGpuThatIsLostKeepsItsPlaceAndTheOthersGoOn) {
  State state(machine_);
  state.value.gpu[2].lost = 1;
  state.save();
  const auto inventory = snapshot(machine_.host());
  ASSERT_THAT(inventory->gpus, SizeIs(8));
  EXPECT_EQ(inventory->gpus[2].health.state, HealthState::Lost);
  EXPECT_NE(inventory->gpus[2].uuid.text, "") << "the kernel still knows it";
  EXPECT_EQ(inventory->gpus[3].health.state, HealthState::Ok);
}

TEST_F(Misbehaving, TroubleOfTheCardShowsInItsHealth) {
  State state(machine_);
  state.value.gpu[0].ecc_uncorrected_volatile = 3;
  state.value.gpu[1].remap_pending = 1;
  state.value.gpu[2].remap_failure = 1;
  state.value.gpu[3].recovery_action = NVML_GPU_RECOVERY_ACTION_GPU_RESET;
  state.value.gpu[4].clocks_event_reasons = nvmlClocksThrottleReasonHwThermalSlowdown;
  state.value.gpu[5].reset_required = 1;
  state.save();
  const auto inventory = snapshot(machine_.host());
  ASSERT_THAT(inventory->gpus, SizeIs(8));
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(inventory->gpus[i].health.state, HealthState::Degraded) << i;
  }
  EXPECT_EQ(inventory->gpus[6].health.state, HealthState::Ok);
}

TEST_F(Misbehaving, UnloadingTheDriverIsSaid) {
  State state(machine_);
  state.value.driver_unloaded = 1;
  state.save();
  EXPECT_THAT(snapshot(machine_.host())->driver.nvml_error,
              HasSubstr("NVML_ERROR_DRIVER_NOT_LOADED: NVML cannot reach the driver"))
      << "the module is still loaded";
}

// Any call may fail: the result is complete, has all GPUs and can be converted to JSON and back.
TEST_F(Misbehaving, EveryNthCallFailing) {
  State original(machine_);
  for (const auto code : {NVML_ERROR_UNKNOWN, NVML_ERROR_GPU_IS_LOST, NVML_ERROR_TIMEOUT}) {
    for (const std::uint32_t every : {2U, 3U, 7U, 23U, 101U}) {
      original.value.fault_count = 0;
      original.save();
      add_fault(machine_, "*", code, 0, every);
      const auto inventory = snapshot(machine_.host(), {.files = FindFiles::No});
      ASSERT_TRUE(inventory.ok());
      EXPECT_THAT(inventory->gpus, SizeIs(8)) << code << " every " << every;
      const auto read = model::inventory_from_json(model::to_json(*inventory));
      ASSERT_TRUE(read.ok()) << read.error().text();
      EXPECT_EQ(*read, *inventory);
    }
  }
}

}  // namespace
}  // namespace gantry::probe
