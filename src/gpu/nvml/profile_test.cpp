// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/profile_internal.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gantry::nvml {
namespace {

using namespace std::chrono_literals;

// A driver's counters behind plain functions, which carry no state.
struct FakeGpm {
  int samples = 0, allocated = 0;
  unsigned instance = 0;
  double tensor_percent = 25;
  bool refuses = false;
};
FakeGpm fake_gpm;  // NOLINT: function pointers carry no state

template <class Handle>
Handle opaque(int number) {
  const auto value = static_cast<std::uintptr_t>(number) * 16;
  return reinterpret_cast<Handle>(value);  // NOLINT(performance-no-int-to-ptr): never followed
}

GpmFunctions functions() {
  fake_gpm = {};
  GpmFunctions gpm;
  gpm.support = [](nvmlDevice_t, nvmlGpmSupport_t* support) {
    support->isSupportedDevice = 1;
    return NVML_SUCCESS;
  };
  gpm.alloc = [](nvmlGpmSample_t* sample) {
    *sample = opaque<nvmlGpmSample_t>(++fake_gpm.allocated);
    return NVML_SUCCESS;
  };
  gpm.free = [](nvmlGpmSample_t) {
    --fake_gpm.allocated;
    return NVML_SUCCESS;
  };
  gpm.get = [](nvmlDevice_t, nvmlGpmSample_t) {
    ++fake_gpm.samples;
    return fake_gpm.refuses ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
  };
  gpm.get_mig = [](nvmlDevice_t, unsigned instance, nvmlGpmSample_t) {
    ++fake_gpm.samples;
    fake_gpm.instance = instance;
    return NVML_SUCCESS;
  };
  gpm.metrics = [](nvmlGpmMetricsGet_t* question) {
    EXPECT_NE(question->sample1, question->sample2);
    for (unsigned i = 0; i < question->numMetrics; ++i) {
      auto& metric = question->metrics[i];
      metric.nvmlReturn =
          metric.metricId == NVML_GPM_METRIC_FP64_UTIL ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
      metric.value =
          metric.metricId == NVML_GPM_METRIC_ANY_TENSOR_UTIL ? fake_gpm.tensor_percent : 2;
    }
    return NVML_SUCCESS;
  };
  return gpm;
}

const auto some_device = opaque<nvmlDevice_t>(1);

model::GpuReading card() {
  model::GpuReading reading;
  reading.uuid.text = "GPU-0";
  return reading;
}

TEST(Profile, IsWhatHappenedBetweenTwoReadings) {
  Profiler profiler(functions());
  const auto start = Profiler::Clock::now();
  auto reading = card();
  profiler.read(some_device, reading, start);
  EXPECT_EQ(reading.profile, model::ProfileReading{}) << "one sample says nothing";
  profiler.read(some_device, reading, start + 1s);
  EXPECT_EQ(reading.profile.tensor_active, 0.25);
  EXPECT_EQ(reading.profile.sm_active, 0.02);
  EXPECT_EQ(reading.profile.pcie_sent_bytes_per_second, 2.0 * 1024 * 1024);
  EXPECT_FALSE(reading.profile.fp64_active);
}

TEST(Profile, AsksNoFasterThanTheDriverCounts) {
  Profiler profiler(functions());
  const auto start = Profiler::Clock::now();
  auto reading = card();
  profiler.read(some_device, reading, start);
  profiler.read(some_device, reading, start + 1s);
  fake_gpm.tensor_percent = 75;
  profiler.read(some_device, reading, start + 1s + 50ms);
  EXPECT_EQ(reading.profile.tensor_active, 0.25) << "the same as before";
  EXPECT_EQ(fake_gpm.samples, 2);
}

TEST(Profile, NonsenseIsLeftOut) {
  Profiler profiler(functions());
  auto start = Profiler::Clock::now();
  auto reading = card();
  profiler.read(some_device, reading, start);
  for (const double value : {-1.0, 250.0, std::numeric_limits<double>::quiet_NaN()}) {
    fake_gpm.tensor_percent = value;
    profiler.read(some_device, reading, start += 1s);
    EXPECT_FALSE(reading.profile.tensor_active) << value;
  }
}

TEST(Profile, AFailedSampleRestarts) {
  Profiler profiler(functions());
  auto at = Profiler::Clock::now();
  auto reading = card();
  profiler.read(some_device, reading, at);
  fake_gpm.refuses = true;
  profiler.read(some_device, reading, at += 1s);
  EXPECT_EQ(reading.profile, model::ProfileReading{});
  fake_gpm.refuses = false;
  profiler.read(some_device, reading, at += 1s);
  EXPECT_EQ(reading.profile, model::ProfileReading{});
  profiler.read(some_device, reading, at += 1s);
  EXPECT_TRUE(reading.profile.tensor_active);
}

TEST(Profile, InstancesHaveTheirOwn) {
  Profiler profiler(functions());
  auto at = Profiler::Clock::now();
  auto reading = card();
  reading.instances.push_back({.uuid = {"MIG-0"}, .gpu_instance = 9});
  profiler.read(some_device, reading, at);
  profiler.read(some_device, reading, at += 1s);
  EXPECT_EQ(fake_gpm.instance, 9U);
  EXPECT_TRUE(reading.instances[0].profile.tensor_active);
  EXPECT_FALSE(reading.profile.tensor_active);
}

TEST(Profile, GivesItsBuffersBack) {
  {
    Profiler profiler(functions());
    auto reading = card();
    profiler.read(some_device, reading, Profiler::Clock::now());
    EXPECT_EQ(fake_gpm.allocated, 2);
  }
  EXPECT_EQ(fake_gpm.allocated, 0);
}

TEST(Profile, ADriverWithoutCountersHasNone) {
  Profiler profiler({});
  auto reading = card();
  profiler.read(some_device, reading, Profiler::Clock::now());
  EXPECT_EQ(reading.profile, model::ProfileReading{});
}

}  // namespace
}  // namespace gantry::nvml
