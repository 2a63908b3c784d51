// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/read_view.hpp"

#include "gpu/model/inventory_json.hpp"
#include "support/fake_gpus.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::nvml {
namespace {

using model::HealthState;
using model::MigMode;
using model::PciePath;
using test::FakeGpu;
using test::FakeGpus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<FakeGpu> eight() {
  std::vector<FakeGpu> gpus(8);
  for (unsigned i = 0; i < 8; ++i) {
    gpus[i].uuid = fmt::format("GPU-{}", i);
    gpus[i].bus_id = fmt::format("00000000:{:02X}:00.0", i + 1);
    gpus[i].minor = 7 - i;
    gpus[i].switch_links = 18;
  }
  return gpus;
}

model::Inventory view_of(const FakeGpus& fake, const probe::NvmlParts& parts = {}) {
  return read_view(fake.nvml(), parts).inventory;
}

TEST(NvmlView, ReadsIdentityAndVersions) {
  const FakeGpus fake(eight());
  const auto view = view_of(fake);
  EXPECT_EQ(view.driver.nvml_error, "");
  EXPECT_EQ(view.driver.version, "580.159.04");
  EXPECT_EQ(view.driver.library_version, "580.159.04");
  EXPECT_EQ(view.driver.cuda_version, "13.0");
  EXPECT_THAT(view.notes, IsEmpty());
  ASSERT_THAT(view.gpus, SizeIs(8));
  const auto& gpu = view.gpus[2];
  EXPECT_EQ(gpu.index, 2);
  EXPECT_EQ(gpu.uuid.text, "GPU-2");
  EXPECT_EQ(gpu.pci.sysfs(), "0000:03:00.0");
  EXPECT_EQ(gpu.minor, 5U);
  EXPECT_EQ(gpu.brand, "NVIDIA");
  EXPECT_EQ(gpu.architecture, "Hopper");
  EXPECT_EQ(gpu.memory_bytes, std::uint64_t{143771} << 20U);
  EXPECT_EQ(gpu.persistence, true);
  EXPECT_EQ(gpu.mig.current, MigMode::Disabled);
  EXPECT_EQ(gpu.telemetry.temperature_celsius, 35);
  EXPECT_EQ(gpu.telemetry.power_milliwatts, std::nullopt) << "the fake gives none";
  EXPECT_EQ(gpu.health.state, HealthState::Ok);
}

TEST(NvmlView, SurvivesAsJson) {
  const FakeGpus fake(eight());
  const auto view = view_of(fake);
  const auto read = model::inventory_from_json(model::to_json(view));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, view);
}

TEST(NvmlView, CountsNvlinksThroughTheSwitch) {
  const FakeGpus fake(eight());
  const auto view = view_of(fake);
  EXPECT_EQ(view.links[0][0], (model::Link{.pcie = PciePath::Self}));
  EXPECT_EQ(view.links[0][7], (model::Link{PciePath::System, 18, true}));
}

TEST(NvmlView, CountsDirectNvlinks) {
  auto gpus = eight();
  gpus.resize(3);
  for (auto& gpu : gpus) gpu.switch_links = 0;
  gpus[0].links = {gpus[1].bus_id, gpus[1].bus_id};
  gpus[1].links = {gpus[0].bus_id, gpus[0].bus_id};
  const FakeGpus fake(gpus);
  const auto view = view_of(fake);
  EXPECT_EQ(view.links[0][1].nvlinks, 2);
  EXPECT_FALSE(view.links[0][1].nvswitch);
  EXPECT_EQ(view.links[0][2].nvlinks, 0);
}

TEST(NvmlView, ReadsMigInstancesWithTheirProfiles) {
  auto gpus = eight();
  gpus.resize(1);
  gpus[0].mig_enabled = true;
  gpus[0].profiles = {{"MIG 1g.18gb+me", 20, 1, 1, 16384}, {"MIG 3g.71gb", 9, 3, 4, 71424}};
  gpus[0].mig = {{"MIG-a", 7, 0, 0, 1, 6}, {"MIG-b", 2, 1, 1, 2, 0}};
  const FakeGpus fake(gpus);
  const auto mig = view_of(fake).gpus[0].mig;
  EXPECT_EQ(mig.current, MigMode::Enabled);
  ASSERT_THAT(mig.instances, SizeIs(2));
  EXPECT_EQ(mig.instances[0].uuid.text, "MIG-a");
  EXPECT_EQ(mig.instances[0].profile, "1g.18gb+me");
  EXPECT_EQ(mig.instances[0].gpu_instance, 7);
  EXPECT_EQ(mig.instances[0].placement_start, 6);
  EXPECT_EQ(mig.instances[0].placement_size, 1);
  EXPECT_EQ(mig.instances[0].memory_bytes, std::uint64_t{16384} << 20U);
  EXPECT_EQ(mig.instances[1].profile, "2c.3g.71gb");
  EXPECT_EQ(mig.instances[1].compute_instance, 1);
  EXPECT_EQ(mig.instances[1].index, 1);
}

TEST(NvmlView, ComputesProfileNamesForOldDrivers) {
  auto gpus = eight();
  gpus.resize(1);
  gpus[0].mig_enabled = true;
  gpus[0].mig = {{"MIG-a", 7, 0, 0, 1, 6}};
  const FakeGpus fake(gpus);
  auto nvml = fake.nvml();
  nvml.nvmlDeviceGetGpuInstanceProfileInfoV = nullptr;
  EXPECT_EQ(read_view(nvml, {}).inventory.gpus[0].mig.instances.at(0).profile, "1g.18gb");
}

TEST(NvmlView, CallsMigUnsupportedWhereTheCardOrDriverHasNone) {
  auto gpus = eight();
  gpus[0].mig_capable = false;
  const FakeGpus fake(gpus);
  EXPECT_EQ(view_of(fake).gpus[0].mig.current, MigMode::Unsupported);
  auto nvml = fake.nvml();
  nvml.nvmlDeviceGetMigMode = nullptr;
  EXPECT_EQ(read_view(nvml, {}).inventory.gpus[1].mig.current, MigMode::Unsupported);
}

TEST(NvmlView, ListsProcessesOnceEach) {
  auto gpus = eight();
  gpus.resize(1);
  gpus[0].compute = {{10, 1U << 20U, ~0U, ~0U}, {11, ~0ULL, ~0U, ~0U}};
  gpus[0].graphics = {{10, 1U << 20U, ~0U, ~0U}, {12, 5, ~0U, ~0U}};
  for (unsigned pid = 100; pid < 140; ++pid) gpus[0].compute.push_back({pid, 1, ~0U, ~0U});
  FakeGpus fake(gpus);
  fake.process_names = {{10, "python3"}};
  const auto processes = view_of(fake).gpus[0].processes;
  ASSERT_THAT(processes, SizeIs(43)) << "more than the first guess of the buffer";
  EXPECT_EQ(processes[0], (model::GpuProcess{10, 1U << 20U, "python3", 'B'}));
  EXPECT_EQ(processes[1], (model::GpuProcess{11, std::nullopt, "", 'C'}));
  EXPECT_EQ(processes.back(), (model::GpuProcess{12, 5, "", 'G'}));
}

TEST(NvmlView, LeavesOutWhatIsNotAskedFor) {
  auto gpus = eight();
  gpus[0].compute = {{10, 1, ~0U, ~0U}};
  const FakeGpus fake(gpus);
  const auto view = view_of(fake, {.processes = false, .links = false});
  EXPECT_THAT(view.gpus[0].processes, IsEmpty());
  EXPECT_EQ(view.gpus[0].telemetry.utilization_percent, std::nullopt);
  EXPECT_EQ(view.links[0][1], model::Link{});
}

TEST(NvmlView, SeesTroubleOfEachKind) {
  auto gpus = eight();
  gpus[0].ecc_uncorrected = 2;
  gpus[1].remap_pending = 1;
  gpus[2].remap_failure = 1;
  gpus[3].recovery_action = 2;
  gpus[4].clock_reasons = nvmlClocksThrottleReasonHwThermalSlowdown;
  gpus[5].fabric_state = NVML_GPU_FABRIC_STATE_IN_PROGRESS;
  const FakeGpus fake(gpus);
  const auto view = view_of(fake);
  const std::vector<std::string> expected = {
      "uncorrectable", "waits to be remapped", "failed", "reboot", "too hot", "fabricmanager"};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(view.gpus[i].health.state, HealthState::Degraded) << expected[i];
    EXPECT_THAT(view.gpus[i].health.reasons, ElementsAre(HasSubstr(expected[i])));
  }
  EXPECT_EQ(view.gpus[6].health.state, HealthState::Ok);
}

TEST(NvmlView, SaysWhyNvmlDoesNotStart) {
  FakeGpus fake(eight());
  fake.fault = [](std::string_view function, int, unsigned) {
    return function == "nvmlInit_v2" ? NVML_ERROR_LIB_RM_VERSION_MISMATCH : NVML_SUCCESS;
  };
  const auto view = read_view(fake.nvml(), {});
  EXPECT_EQ(view.failure, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
  EXPECT_THAT(view.inventory.driver.nvml_error, HasSubstr("NVML_ERROR_LIB_RM_VERSION_MISMATCH"));
  EXPECT_THAT(view.inventory.gpus, IsEmpty());
}

TEST(NvmlView, TravelsToTheParentWithItsCode) {
  const FakeGpus fake(eight());
  auto view = read_view(fake.nvml(), {});
  EXPECT_EQ(view.failure, NVML_SUCCESS);
  view.failure = NVML_ERROR_TIMEOUT;
  const auto read = probe::nvml_view_from(to_bytes(view));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->failure, NVML_ERROR_TIMEOUT);
  EXPECT_EQ(read->inventory, view.inventory);
  const auto json = model::to_json(view.inventory);
  EXPECT_EQ(probe::nvml_view_from("70000 " + json)->failure, NVML_ERROR_UNKNOWN);
  for (const auto& wrong : {json, std::string(), std::string("10"), "-1 " + json})
    EXPECT_EQ(probe::nvml_view_from(wrong).error().code(), Errc::Corrupt) << wrong.substr(0, 20);
}

TEST(NvmlView, MarksAGpuLostWhoseHandleIsRefused) {
  FakeGpus fake(eight());
  fake.fault = [](std::string_view function, int gpu, unsigned) {
    return function == "nvmlDeviceGetHandleByIndex_v2" && gpu == 5 ? NVML_ERROR_GPU_IS_LOST
                                                                   : NVML_SUCCESS;
  };
  const auto view = view_of(fake);
  ASSERT_THAT(view.gpus, SizeIs(8));
  EXPECT_EQ(view.gpus[5].health.state, HealthState::Lost);
  EXPECT_EQ(view.gpus[5].uuid.text, "");
  for (const auto i : {0U, 4U, 6U, 7U}) EXPECT_EQ(view.gpus[i].health.state, HealthState::Ok) << i;
}

TEST(NvmlView, AsksNoMoreOnceAGpuIsLost) {
  FakeGpus fake(eight());
  unsigned later = 0;
  fake.fault = [&](std::string_view function, int gpu, unsigned) {
    if (gpu != 3) return NVML_SUCCESS;
    if (function == "nvmlDeviceGetMinorNumber") return NVML_ERROR_GPU_IS_LOST;
    if (function == "nvmlDeviceGetTemperature" || function == "nvmlDeviceGetMigMode") ++later;
    return NVML_SUCCESS;
  };
  const auto view = view_of(fake);
  EXPECT_EQ(view.gpus[3].health.state, HealthState::Lost);
  EXPECT_THAT(view.gpus[3].health.reasons, ElementsAre(HasSubstr("nvmlDeviceGetMinorNumber")));
  EXPECT_EQ(view.gpus[3].uuid.text, "GPU-3") << "what was learnt before stays";
  EXPECT_EQ(later, 0U);
  EXPECT_EQ(view.gpus[4].health.state, HealthState::Ok);
}

TEST(NvmlView, DegradesAGpuWhoseCallsFailAndSaysItOnce) {
  FakeGpus fake(eight());
  fake.fault = [](std::string_view function, int gpu, unsigned) {
    return gpu == 1 && function != "nvmlDeviceGetHandleByIndex_v2" ? NVML_ERROR_UNKNOWN
                                                                   : NVML_SUCCESS;
  };
  const auto view = view_of(fake);
  EXPECT_EQ(view.gpus[1].health.state, HealthState::Degraded);
  EXPECT_THAT(view.gpus[1].health.reasons, ElementsAre(HasSubstr("more calls)")));
  EXPECT_EQ(view.gpus[2].health.state, HealthState::Ok);
}

TEST(NvmlView, NotesWhatThisUserMayNotAsk) {
  FakeGpus fake(eight());
  fake.fault = [](std::string_view function, int gpu, unsigned) {
    return gpu == 1 && function == "nvmlDeviceGetPersistenceMode" ? NVML_ERROR_NO_PERMISSION
                                                                  : NVML_SUCCESS;
  };
  const auto view = view_of(fake);
  EXPECT_EQ(view.gpus[1].health.state, HealthState::Ok);
  EXPECT_THAT(view.notes, ElementsAre(HasSubstr("nvmlDeviceGetPersistenceMode")));
}

TEST(NvmlView, NoticesWhenTheCountChanges) {
  FakeGpus fake(eight());
  fake.fault = [&](std::string_view, int gpu, unsigned) {
    if (gpu == 7) fake.count = 7;
    return NVML_SUCCESS;
  };
  EXPECT_THAT(view_of(fake).notes, ElementsAre("NVML counted 8 GPUs first and 7 a moment later"));
}

TEST(NvmlView, DoesNotBelieveAnAbsurdCount) {
  FakeGpus fake(eight());
  fake.count = ~0U;
  const auto view = view_of(fake, {.links = false});
  EXPECT_THAT(view.gpus, SizeIs(256));
  EXPECT_EQ(view.gpus[8].health.state, HealthState::Lost);
  EXPECT_THAT(view.notes, ElementsAre(HasSubstr("more than possible")));
}

TEST(NvmlView, MarksAGpuLostThatDisappearsAfterItWasRead) {
  FakeGpus fake(eight());
  unsigned uuids = 0;
  fake.fault = [&](std::string_view function, int gpu, unsigned) {
    if (function != "nvmlDeviceGetUUID" || gpu != 0) return NVML_SUCCESS;
    return ++uuids > 1 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
  };
  EXPECT_EQ(view_of(fake).gpus[0].health.state, HealthState::Lost);
}

TEST(NvmlView, DegradesAGpuThatChangesItsUuid) {
  FakeGpus fake(eight());
  unsigned uuids = 0;
  fake.fault = [&](std::string_view function, int gpu, unsigned) {
    if (function == "nvmlDeviceGetUUID" && gpu == 0 && ++uuids > 1) fake.gpus[0].uuid = "GPU-other";
    return NVML_SUCCESS;
  };
  const auto health = view_of(fake).gpus[0].health;
  EXPECT_EQ(health.state, HealthState::Degraded);
  EXPECT_THAT(health.reasons, ElementsAre(HasSubstr("GPU-other")));
}

// Every Nth call fails with each code: the result must always be a complete value.
TEST(NvmlView, SurvivesAnyCallFailing) {
  for (const auto code : {NVML_ERROR_UNKNOWN, NVML_ERROR_GPU_IS_LOST, NVML_ERROR_NOT_SUPPORTED,
                          NVML_ERROR_INSUFFICIENT_SIZE, NVML_ERROR_NO_PERMISSION,
                          NVML_ERROR_DRIVER_NOT_LOADED, static_cast<nvmlReturn_t>(1000)}) {
    for (const unsigned every : {1U, 2U, 3U, 5U, 11U, 17U, 31U, 64U, 150U}) {
      auto gpus = eight();
      gpus[2].mig_enabled = true;
      gpus[2].mig = {{"MIG-a", 7, 0, 0, 1, 6}};
      gpus[2].compute = {{10, 1, ~0U, ~0U}};
      FakeGpus fake(gpus);
      fake.fault = [&](std::string_view, int, unsigned call) {
        return call % every == every - 1 ? code : NVML_SUCCESS;
      };
      const auto view = view_of(fake);
      ASSERT_TRUE(!view.driver.nvml_error.empty() || view.gpus.size() == 8) << code << " " << every;
      const auto read = model::inventory_from_json(model::to_json(view));
      ASSERT_TRUE(read.ok()) << read.error().text();
    }
  }
}

TEST(NvmlView, AnswersWithTheOldestDriver) {
  const FakeGpus fake(eight());
  auto full = fake.nvml();
  Nvml old;  // only the functions of driver 331
  old.nvmlInit_v2 = full.nvmlInit_v2;
  old.nvmlSystemGetDriverVersion = full.nvmlSystemGetDriverVersion;
  old.nvmlDeviceGetCount_v2 = full.nvmlDeviceGetCount_v2;
  old.nvmlDeviceGetHandleByIndex_v2 = full.nvmlDeviceGetHandleByIndex_v2;
  old.nvmlDeviceGetUUID = full.nvmlDeviceGetUUID;
  old.nvmlDeviceGetName = full.nvmlDeviceGetName;
  old.nvmlDeviceGetCudaComputeCapability = full.nvmlDeviceGetCudaComputeCapability;
  const auto view = read_view(old, {}).inventory;
  EXPECT_EQ(view.gpus.at(0).uuid.text, "GPU-0");
  EXPECT_EQ(view.gpus[0].architecture, "Hopper") << "from the compute capability";
  EXPECT_EQ(view.gpus[0].memory_bytes, std::nullopt);
  EXPECT_EQ(view.gpus[0].health.state, HealthState::Ok);
}

}  // namespace
}  // namespace gantry::nvml
